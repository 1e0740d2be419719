// What symbols cost at least, given what terminals do: read off the LR automaton.
//
//   of(symbol)   a terminal's own cost; a nonterminal's over the ways N -> X Y in which the automaton completes it (Knuth's
//                generalisation of Dijkstra's algorithm, 1977, here by rounds)
//   ways(q)      what shifting one symbol in state q completes, and the least cost of it, ascending; -1: it is the end of the
//                text
//   list(n)      of a list whose members have a set beside the LR states: its body and its rest cost what list_costs.hpp
//                says, in a set's state and at the beginning
//   lead(q, n)   where a nonterminal leads from a state, and at what cost: a set that has no number is gone through to the
//                list's end
//   of_set(q)    of a state with a set: what its one symbol costs, and what that completes
//
// Cost: some steps for each pair of gotos one behind the other, once for a grammar and a kind of cost.
#pragma once
#include <array>
#include <map>
#include <set>

#include "parser/list_costs.hpp"
#include "parser/lr_tables.hpp"

namespace wfsa {

class SymbolCosts {
  public:
    static constexpr int64_t kNever = ListCosts::kNever;
    struct Way { int64_t least; int32_t completed; };
    struct ListSymbols {
        int32_t body = -1, rest = -1;
        vector<int32_t> pairs;
    };

    // terminals: their costs.  is_lower_bound: of lists, as of ListCosts.
    SymbolCosts(const LrTables& lr, int32_t end_term, vector<int64_t> terminals, int32_t n_symbols, bool is_lower_bound)
        : lr_(lr), end_term_(end_term), is_lower_bound_(is_lower_bound), least_(std::move(terminals)) {
        symbols_.resize(lr.unordered.lists.size());
        least_.resize(size_t(n_symbols), kNever);
        find_least();
        find_ways();
    }
    int64_t of(int32_t symbol) const { return least_[symbol]; }
    const vector<Way>& ways(int32_t q) const { return ways_[q]; }

    // A state without its set, if it has one.
    int32_t base(int32_t q) const { return q < lr_.unordered.first ? q : lr_.unordered.base_of(q); }
    std::pair<int32_t, int64_t> lead(int32_t state, int32_t nonterminal) const {
        const int32_t to = lr_.go(state, nonterminal);
        if (to != LrTables::kUnmade) return {to, 0};
        const UnorderedStates& u = lr_.unordered;
        const List set = u.sets[(state - u.first) >> 1];
        const vector<int32_t> after = u.lists[set[0]].after(set, u.pair_of[nonterminal]);
        return {lr_.go(state, symbols_[set[0]].body), lists_[set[0]].rest(after)};
    }
    std::pair<int64_t, int32_t> of_set(int32_t state) const {
        const List set = lr_.unordered.sets[(state - lr_.unordered.first) >> 1];
        const ListCosts& list = lists_[set[0]];
        const ListSymbols& symbols = symbols_[set[0]];
        const bool is_behind_separator = (state - lr_.unordered.first) & 1;
        return is_behind_separator ? std::make_pair(list.body(set), symbols.rest) : std::make_pair(list.rest(set), symbols.body);
    }
    // May the text end in state q?
    bool ends(int32_t q) const { return lr_.base_go(base(q), end_term_) >= 0; }

  private:
    const LrTables& lr_;
    const int32_t end_term_;
    const bool is_lower_bound_;
    vector<int64_t> least_;
    vector<vector<Way>> ways_;
    vector<ListSymbols> symbols_;  // by list
    vector<ListCosts> lists_;

    void find_least() {
        std::set<std::array<int32_t, 3>> completions;
        for (int32_t q = 0; q < lr_.n_states(); ++q)
            each_goto(q, [&](int32_t x, int32_t middle) {
                each_goto(base(middle), [&](int32_t y, int32_t to) {
                    each_completed(to, [&](int32_t n) { completions.insert({n, x, y}); });
                });
            });
        find_symbols(completions);
        for (bool changed = true; changed;) {
            changed = false;
            lists_.clear();
            for (size_t k = 0; k < symbols_.size(); ++k) {
                lists_.push_back(costs_of(int32_t(k)));
                int64_t& body = least_[symbols_[k].body];
                const int64_t least = lists_[k].body(lr_.unordered.lists[k].begin(int32_t(k)));
                changed |= least < body;
                body = std::min(body, least);
            }
            for (const auto& [n, x, y] : completions)
                if (least_[x] + least_[y] < least_[n]) {
                    least_[n] = least_[x] + least_[y];
                    changed = true;
                }
        }
    }
    // A list's pairs, and what they are first in: its body; behind a separator that makes a rest.
    // What is completed there is taken out of `completions`.
    void find_symbols(std::set<std::array<int32_t, 3>>& completions) {
        if (symbols_.empty()) return;
        const UnorderedStates& u = lr_.unordered;
        for (size_t x = 0; x < u.list_of.size(); ++x) {
            if (u.list_of[x] < 0) continue;
            vector<int32_t>& pairs = symbols_[u.list_of[x]].pairs;
            pairs.resize(std::max(pairs.size(), size_t(u.pair_of[x]) + 1), -1);
            pairs[u.pair_of[x]] = int32_t(x);
        }
        for (const auto& [n, x, y] : completions) if (u.list_of[x] >= 0) symbols_[u.list_of[x]].body = n;
        for (const auto& [n, x, y] : completions)
            for (size_t k = 0; k < symbols_.size(); ++k)
                if (x == u.lists[k].separator && y == symbols_[k].body) symbols_[k].rest = n;
        std::set<int32_t> of_lists;
        for (const ListSymbols& of : symbols_) of_lists.insert({of.body, of.rest});
        for (auto at = completions.begin(); at != completions.end();)
            at = of_lists.count((*at)[0]) ? completions.erase(at) : std::next(at);
    }
    ListCosts costs_of(int32_t k) const {
        vector<int64_t> pairs;
        for (const int32_t x : symbols_[k].pairs) pairs.push_back(least_[x]);
        const UnorderedList& list = lr_.unordered.lists[k];
        return ListCosts(list, std::move(pairs), least_[list.separator], least_[list.close], is_lower_bound_);
    }
    void find_ways() {
        ways_.resize(size_t(lr_.n_states()));
        for (int32_t q = 0; q < lr_.n_states(); ++q) {
            std::map<int32_t, int64_t> best;
            const auto way = [&](int32_t completed, int64_t least) {
                if (least >= kNever) return;
                const auto got = best.emplace(completed, least);
                got.first->second = std::min(got.first->second, least);
            };
            each_goto(q, [&](int32_t symbol, int32_t to) {
                each_completed(to, [&](int32_t n) { way(n, least_[symbol]); });
                if (ends(to)) way(-1, least_[symbol]);
            });
            vector<Way>& ways = ways_[q];
            for (const auto& [completed, least] : best) ways.push_back({least, completed});
            std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.least < b.least; });
        }
    }
    template <class F> void each_goto(int32_t q, const F& f) const {
        for (int32_t k = lr_.goto_indptr[q]; k < lr_.goto_indptr[q + 1]; ++k)
            f(lr_.goto_symbol[k], lr_.goto_target[k]);
    }
    template <class F> void each_completed(int32_t q, const F& f) const {
        for (const int32_t *d = lr_.completed_begin(q), *end = lr_.completed_end(q); d != end; ++d) f(*d);
    }
};

}  // namespace wfsa
