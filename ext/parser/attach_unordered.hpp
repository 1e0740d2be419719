// Finds the LR states of unordered lists in finished tables (unordered.hpp), and lets what leads to them lead to
// states with sets. The states are pure, because a member occurs in its list only, so any goto on a member names
// them.
#pragma once
#include "parser/lr_tables.hpp"
#include "parser/normalise.hpp"

namespace wfsa {

inline void attach_unordered(const NormalGrammar& g, LrTables& lr) {
    if (g.unordered.empty()) return;
    UnorderedStates& out = lr.unordered;
    out.first = lr.n_states();
    out.n_terms = g.n_terms;
    out.list_of.assign(size_t(g.n_symbols), -1);
    out.member_of.assign(size_t(g.n_symbols), -1);
    auto rules = [&](int32_t symbol, auto visit) {
        const size_t a = size_t(symbol - g.n_terms);
        for (int32_t i = g.rule_indptr[a]; i < g.rule_indptr[a + 1]; ++i) visit(g.rules[size_t(i)]);
    };
    for (const UnorderedRule& u : g.unordered) {
        UnorderedList list;
        list.n_members = list.n_bits = int32_t(u.members.size());
        list.least = u.least;
        list.most = u.most;
        list.ordered = u.ordered;
        rules(u.rest, [&](const Rule& r) { (r.b < 0 ? list.close : list.separator) = r.a; });
        rules(u.body, [&](const Rule& r) { out.list_of[size_t(r.a)] = int32_t(out.lists.size()); });
        for (size_t k = 0; k < u.members.size(); ++k)
            if (u.members[k] >= 0) out.member_of[size_t(u.members[k])] = int32_t(k);
        for (const auto& group : u.groups)
            for (int32_t m : group)
                if (m >= 0 && out.member_of[size_t(m)] < 0) out.member_of[size_t(m)] = list.n_bits++;
        list.required.assign(list.n_words(), 0);
        for (size_t k = 0; k < u.members.size(); ++k) if (u.required[k]) list.required[k >> 6] |= 1ull << (k & 63);
        for (const auto& group : u.groups) {
            list.groups.emplace_back(list.n_words(), 0);
            for (int32_t m : group) {
                const int32_t k = m < 0 ? -1 : out.member_of[size_t(m)];
                if (k >= 0) list.groups.back()[size_t(k) >> 6] |= 1ull << (k & 63);
            }
        }
        rules(u.body, [&](const Rule& r) {
            const int32_t k = out.member_of[size_t(r.a)];
            list.others |= k < 0 || k >= list.n_members;
            rules(r.a, [&](const Rule& pair) { list.keys.push_back({pair.a, k}); });
        });
        std::sort(list.keys.begin(), list.keys.end());
        out.lists.push_back(std::move(list));
    }
    for (size_t i = 0; i < lr.goto_symbol.size(); ++i) {
        const int32_t n = out.list_of[size_t(lr.goto_symbol[i])];
        if (n < 0) continue;
        UnorderedList& list = out.lists[size_t(n)];
        list.after_member = lr.goto_target[i];
        list.after_separator = lr.base_go(list.after_member, list.separator);
        const int32_t begun = out.begin(lr.goto_symbol[i]);
        if (begun >= 0) lr.goto_target[i] = begun;  // else it is behind a separator, where sets are asked in its place
    }
}

}  // namespace wfsa
