// What can follow a terminal, whatever the stack: the least sets that are closed under the rules (FOLLOW of LL and SLR
// parsers).  Only to leave out what no stack takes; the stack decides.
#pragma once
#include <set>

#include "lexer/terminals.hpp"
#include "parser/normalise.hpp"

namespace wfsa {

// Into terms.follow: which bytes can begin what follows a terminal, ignored terminals between them included.
inline void find_following_bytes(const NormalGrammar& g, const vector<int32_t>& ignored, Terminals& terms) {
    const int32_t n_terms = g.n_terms;
    vector<ByteBits> first(size_t(g.n_symbols)), after(size_t(g.n_symbols));
    for (int32_t t = 0; t < n_terms; ++t) {
        const int32_t c = terms.start[size_t(t)];
        if (c < 0) continue;
        for (int32_t e = terms.indptr[size_t(c)]; e < terms.indptr[size_t(c) + 1]; ++e)
            first[size_t(t)].add_range(terms.edges[size_t(e)].lo, terms.edges[size_t(e)].hi);
    }
    auto merge = [](ByteBits& to, const ByteBits& from) {
        if (from.subset_of(to)) return false;
        to.merge(from);
        return true;
    };
    // Sets flow from symbol to symbol along the rules; who has got more hands it on, so a long chain costs its length.
    vector<vector<int32_t>> flows(size_t(g.n_symbols));
    vector<uint8_t> waits(size_t(g.n_symbols), 1);
    vector<int32_t> todo;
    auto spread = [&](vector<ByteBits>& sets) {
        waits.assign(size_t(g.n_symbols), 1);
        for (int32_t s = 0; s < g.n_symbols; ++s) todo.push_back(s);
        while (!todo.empty()) {
            const int32_t s = todo.back();
            todo.pop_back();
            waits[size_t(s)] = 0;
            for (int32_t to : flows[size_t(s)])
                if (merge(sets[size_t(to)], sets[size_t(s)]) && !waits[size_t(to)]) {
                    waits[size_t(to)] = 1;
                    todo.push_back(to);
                }
        }
    };
    for (const Rule& r : g.rules) flows[size_t(r.a)].push_back(n_terms + r.lhs);
    spread(first);
    for (auto& out : flows) out.clear();
    for (const Rule& r : g.rules) {
        if (r.b >= 0) merge(after[size_t(r.a)], first[size_t(r.b)]);
        flows[size_t(n_terms + r.lhs)].push_back(r.b >= 0 ? r.b : r.a);
    }
    spread(after);
    terms.follow.assign(after.begin(), after.begin() + n_terms);
    for (int32_t t : ignored)
        for (int32_t u = 0; u < n_terms; ++u) {
            terms.follow[size_t(u)].merge(first[size_t(t)]);
            terms.follow[size_t(t)].merge(first[size_t(u)]);
        }
}

// For every terminal which byte terminals can follow it, ignored ones aside, ascending.
inline vector<vector<int32_t>> following_terminals(const NormalGrammar& g, const Terminals& terms) {
    const int32_t n_terms = g.n_terms;
    vector<std::set<int32_t>> first(size_t(g.n_symbols)), after(size_t(g.n_symbols));
    for (int32_t t = 0; t < n_terms; ++t) if (terms.start[size_t(t)] >= 0) first[size_t(t)].insert(t);
    bool changed = true;
    auto merge = [&](std::set<int32_t>& to, const std::set<int32_t>& from) {
        const size_t before = to.size();
        to.insert(from.begin(), from.end());
        changed |= to.size() != before;
    };
    while (changed) {
        changed = false;
        for (const Rule& r : g.rules) {
            merge(first[size_t(n_terms + r.lhs)], first[size_t(r.a)]);
            if (r.b >= 0) merge(after[size_t(r.a)], first[size_t(r.b)]);
            merge(after[size_t(r.b >= 0 ? r.b : r.a)], after[size_t(n_terms + r.lhs)]);
        }
    }
    vector<vector<int32_t>> out;
    for (int32_t t = 0; t < n_terms; ++t) out.emplace_back(after[size_t(t)].begin(), after[size_t(t)].end());
    return out;
}

}  // namespace wfsa
