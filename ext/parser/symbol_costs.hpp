// What symbols cost at least, given what terminals do: read off the LR automaton.
//
//   of(symbol)   a terminal's own cost; a nonterminal's over the ways N -> X Y in which the automaton completes it (Knuth's
//                generalisation of Dijkstra's algorithm, 1977, here by rounds)
//   ways(q)      what shifting one symbol in state q completes, and the least cost of it, ascending; -1: it is the end of the
//                text
//
// Cost: some steps for each pair of gotos one behind the other, once for a grammar and a kind of cost.
#pragma once
#include <array>
#include <map>
#include <set>

#include "parser/lr_tables.hpp"

namespace wfsa {

class SymbolCosts {
  public:
    static constexpr int64_t kNever = int64_t(1) << 40;
    struct Way { int64_t least; int32_t completed; };

    // terminals: their costs.
    SymbolCosts(const LrTables& lr, int32_t end_term, vector<int64_t> terminals, int32_t n_symbols)
        : lr_(lr), end_term_(end_term), least_(std::move(terminals)) {
        least_.resize(size_t(n_symbols), kNever);
        find_least();
        find_ways();
    }
    int64_t of(int32_t symbol) const { return least_[size_t(symbol)]; }
    const vector<Way>& ways(int32_t q) const { return ways_[size_t(q)]; }

    // A state without its set, if it has one.
    int32_t base(int32_t q) const { return q < lr_.unordered.first ? q : lr_.unordered.base_of(q); }
    // May the text end in state q?
    bool ends(int32_t q) const { return lr_.base_go(base(q), end_term_) >= 0; }

  private:
    const LrTables& lr_;
    const int32_t end_term_;
    vector<int64_t> least_;
    vector<vector<Way>> ways_;

    void find_least() {
        std::set<std::array<int32_t, 3>> completions;
        for (int32_t q = 0; q < lr_.n_states(); ++q)
            each_goto(q, [&](int32_t x, int32_t middle) {
                each_goto(base(middle), [&](int32_t y, int32_t to) {
                    each_completed(to, [&](int32_t n) { completions.insert({n, x, y}); });
                });
            });
        for (bool changed = true; changed;) {
            changed = false;
            for (const auto& [n, x, y] : completions)
                if (least_[size_t(x)] + least_[size_t(y)] < least_[size_t(n)]) {
                    least_[size_t(n)] = least_[size_t(x)] + least_[size_t(y)];
                    changed = true;
                }
        }
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
                each_completed(to, [&](int32_t n) { way(n, least_[size_t(symbol)]); });
                if (ends(to)) way(-1, least_[size_t(symbol)]);
            });
            vector<Way>& ways = ways_[size_t(q)];
            for (const auto& [completed, least] : best) ways.push_back({least, completed});
            std::stable_sort(ways.begin(), ways.end(), [](const Way& a, const Way& b) { return a.least < b.least; });
        }
    }
    template <class F> void each_goto(int32_t q, const F& f) const {
        for (int32_t k = lr_.goto_indptr[size_t(q)]; k < lr_.goto_indptr[size_t(q) + 1]; ++k)
            f(lr_.goto_symbol[size_t(k)], lr_.goto_target[size_t(k)]);
    }
    template <class F> void each_completed(int32_t q, const F& f) const {
        for (const int32_t *d = lr_.completed_begin(q), *end = lr_.completed_end(q); d != end; ++d) f(*d);
    }
};

}  // namespace wfsa
