// Finds the LR states of unordered lists in finished tables (unordered.hpp), and lets what leads to them lead to
// states with sets. The states are pure, because a member occurs in its list only, so any goto on a member names
// them.
#pragma once
#include "parser/listed_rules.hpp"
#include "parser/lr_tables.hpp"

namespace wfsa {

inline void attach_unordered(const NormalGrammar& g, LrTables& lr) {
    if (g.unordered.empty()) return;
    UnorderedStates& out = lr.unordered;
    out.first = lr.n_states();
    out.n_terms = g.n_terms;
    out.list_of.assign(size_t(g.n_symbols), -1);
    out.pair_of.assign(size_t(g.n_symbols), -1);
    for (const UnorderedRule& u : g.unordered) {
        int32_t n_pairs = 0;
        each_rule(g, u.body, [&](const Rule& r) {
            out.list_of[r.a] = int32_t(out.lists.size());
            out.pair_of[r.a] = n_pairs++;
        });
        out.lists.push_back(unordered_list(g, u));
    }
    for (size_t i = 0; i < lr.goto_symbol.size(); ++i) {
        const int32_t n = out.list_of[lr.goto_symbol[i]];
        if (n < 0) continue;
        UnorderedList& list = out.lists[n];
        list.after_member = lr.goto_target[i];
        list.after_separator = lr.base_go(list.after_member, list.separator);
        const int32_t begun = out.begin(lr.goto_symbol[i]);
        if (begun >= 0) lr.goto_target[i] = begun;  // else it is behind a separator, where sets are asked in its place
    }
}

}  // namespace wfsa
