// Where a parse stands, to be compared: lexer states and stacks, whatever nodes these are made of.
#pragma once
#include "parser/gss.hpp"

namespace wfsa {

// Two snapshots of one constraint that append the same can go on the same.  Not always the other way round: stacks are
// written out as far as kWritten nodes below the tops.
inline void put_situation(const Snapshot* at, vector<int64_t>& out) {
    constexpr size_t kWritten = 48;
    vector<const Node*> nodes;
    for (int32_t i = 0; i < at->n; ++i) {
        const Config& c = at->configs[i];
        out.insert(out.end(), {c.lex, c.count, c.n_tops});
        nodes.insert(nodes.end(), c.tops, c.tops + c.n_tops);
    }
    const size_t n_tops = nodes.size();
    for (size_t k = 0; k < nodes.size(); ++k) {
        if (k >= n_tops + kWritten) {  // far down: the nodes themselves, which are shared
            out.push_back(reinterpret_cast<intptr_t>(nodes[k]));
            continue;
        }
        out.push_back(int64_t(nodes[k]->n_below) << 32 | nodes[k]->state);
        for (int32_t b = 0; b < nodes[k]->n_below; ++b) {
            const size_t to = size_t(std::find(nodes.begin(), nodes.end(), nodes[k]->below[b]) - nodes.begin());
            if (to == nodes.size()) nodes.push_back(nodes[k]->below[b]);
            out.push_back(int64_t(to));
        }
    }
}

}  // namespace wfsa
