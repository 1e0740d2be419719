// The unordered lists of a grammar in normal form, as UnorderedList has them.
#pragma once
#include "parser/normalise.hpp"

namespace wfsa {

// The rules of a list in a grammar: visit(rule) for each of a nonterminal's.
template <class Visit> void each_rule(const NormalGrammar& g, int32_t symbol, const Visit& visit) {
    const size_t a = size_t(symbol - g.n_terms);
    for (int32_t i = g.rule_indptr[a]; i < g.rule_indptr[a + 1]; ++i) visit(g.rules[i]);
}

// A list without its LR states; its pairs are numbered as the rules of its body.
inline UnorderedList unordered_list(const NormalGrammar& g, const UnorderedRule& u) {
    vector<int32_t> pairs;
    each_rule(g, u.body, [&](const Rule& r) { pairs.push_back(r.a); });
    UnorderedList list = bounds_of(u, pairs);
    each_rule(g, u.rest, [&](const Rule& r) { (r.b < 0 ? list.close : list.separator) = r.a; });
    for (size_t k = 0; k < pairs.size(); ++k)
        each_rule(g, pairs[k], [&](const Rule& r) { list.keys.push_back({r.a, int32_t(k)}); });
    std::sort(list.keys.begin(), list.keys.end());
    return list;
}

}  // namespace wfsa
