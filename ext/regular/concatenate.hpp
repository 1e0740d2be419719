// Automata one behind the other, where that stays deterministic.
//
// A key between white space and its colon, or a string that is none of some names: in every state in which a part may
// end, the next byte tells whether it goes on.  Then nothing has to be determinized; a third of the time of it.
#pragma once
#include "regular/minimise.hpp"

namespace wfsa {

// False: somewhere the next byte does not tell, or there are more than `limit` states.
inline bool concatenate(const vector<const Dfa*>& parts, int64_t limit, Dfa& out) {
    int64_t n = 0;
    vector<int32_t> offset;
    for (const Dfa* d : parts) {
        if (d->size() == 0) { out = Dfa{}; return true; }
        offset.push_back(int32_t(n));
        if ((n += d->size()) > limit) return false;
    }
    Dfa draft;
    vector<Edge> row;
    for (size_t i = 0; i < parts.size(); ++i) {
        const Dfa& d = *parts[i];
        for (int32_t s = 0; s < d.size(); ++s) {
            poll();
            row.clear();
            for (const Edge& e : d.row(s)) row.push_back({e.lo, e.hi, offset[i] + e.target, e.count});
            bool ends = d.accept[s] != 0;
            for (size_t k = i + 1; ends && k < parts.size(); ++k) {
                for (const Edge& e : parts[k]->row(0)) row.push_back({e.lo, e.hi, offset[k] + e.target, e.count});
                ends = parts[k]->accept[0] != 0;
            }
            tidy(row);
            for (size_t k = 1; k < row.size(); ++k) if (row[k].lo <= row[k - 1].hi) return false;
            draft.add_row(row);
            draft.accept.push_back(ends);
        }
    }
    out = finish(0, draft);
    return true;
}

inline Dfa chain(const uint8_t* p, size_t n) {
    Dfa out;
    for (size_t k = 0; k < n; ++k) {
        out.edges.push_back({p[k], p[k], int32_t(k) + 1});
        out.indptr.push_back(int32_t(out.edges.size()));
        out.accept.push_back(0);
    }
    out.indptr.push_back(int32_t(out.edges.size()));
    out.accept.push_back(1);
    return out;
}

}  // namespace wfsa
