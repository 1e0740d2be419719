// Ahead under "cfg": every LR state can be a top, so its context is a root, and the parser DWA starts on it and reads
// whatever states can lie below.
//
// The states of unordered lists are met with sets of members only (unordered.hpp); those stay on demand.
// A type that stands in a thousand places can end on as many states, for each of its own: past a number of transitions
// the rest stays on demand, too, where each costs some microseconds.
#pragma once
#include "ahead/reach.hpp"

namespace wfsa {

class LrStates : public Reach {
  public:
    explicit LrStates(Tables& tables)
        : Reach(tables), is_read_(size_t(tables.lr.n_states()), 1), below_(is_read_.size()), shifting_(tables.token_ids.size()) {
        const LrTables& lr = t_.lr;
        for (const UnorderedList& list : lr.unordered.lists)
            is_read_[list.after_member] = is_read_[list.after_separator] = 0;
        for (int32_t s = 0; s < lr.n_states(); ++s) {
            if (s % 64 == 0) GrowthLock::let_read();
            if (!is_read_[s]) continue;
            const int32_t first = lr.goto_indptr[s];
            for (int32_t k = first; k < lr.goto_indptr[s + 1]; ++k) {
                const int32_t symbol = lr.goto_symbol[k];
                if (k < first + lr.n_shifts[s]) shifting_[symbol].push_back(s);
                if (symbol != t_.end_term && lr.goto_target[k] < lr.unordered.first)
                    below_[lr.goto_target[k]].push_back(s);
            }
        }
        for (vector<int32_t>& states : below_) sort_unique(states);
    }

    bool find_roots() override {
        for (int32_t q = 0; q < t_.lr.n_states(); ++q)
            if (t_.lr.n_shifts[q] && is_read_[q]) t_.lexer.root(t_.contexts.of_state[q], 0);
        return false;
    }
    bool read_tails() override {
        each_new_universe([&](int32_t term, int32_t u) { starts_.push_back({term, u}); });
        for (size_t n = 0; n < kReads; ++n) {
            if (reading_.next >= 0) go_below();
            else if (!todo_.empty()) read();
            else if (n_started_ < starts_.size()) start();
            else return false;
        }
        is_cut_ = t_.dwa.n_transitions() > kTransitionCap;
        return !is_cut_;
    }
    double fraction() const override { return double(n_started_) / double(std::max<size_t>(starts_.size(), 1)); }
    bool complete() const override { return !is_cut_ && t_.lr.unordered.lists.empty(); }

  private:
    static constexpr size_t kReads = 256;  // of the parser DWA in one slice; one start can lead to very many
    static constexpr size_t kBelow = 64;   // states tried at once
    static constexpr size_t kTransitionCap = 1 << 17;
    bool is_cut_ = false;                  // the cap was met
    vector<uint8_t> is_read_;              // LR state -> can it lie on a stack?
    vector<vector<int32_t>> below_;        // LR state -> states that can lie under it
    vector<vector<int32_t>> shifting_;     // terminal -> LR states that shift it
    struct Nothing {};
    OpenTable<uint64_t, Nothing, PairHash> seen_;  // (machine state, LR state)
    vector<std::pair<int32_t, int32_t>> starts_;  // (terminal, universe)
    size_t n_started_ = 0, n_tops_ = 0;           // of starts_; of the LR states that shift the terminal of the next one
    vector<std::pair<int32_t, int32_t>> todo_;    // (machine state, LR state) from the last start
    struct { int32_t next = -1, state = 0; size_t at = 0; } reading_;  // next: the machine state behind `state`

    void visit(int32_t d, int32_t state) {
        if (seen_.insert(pair_key(d, state)).second) todo_.push_back({d, state});
    }
    void start() {
        const auto [term, universe] = starts_[n_started_];
        const vector<int32_t>& tops = shifting_[term];
        if (n_tops_ < tops.size()) visit(t_.dwa.start(universe), tops[n_tops_++]);
        else ++n_started_, n_tops_ = 0;
    }
    void read() {
        GrowthLock::let_read();
        const auto [d, state] = todo_.back();
        reading_ = {t_.dwa.step(d, state)->next, state, 0};
        todo_.pop_back();
    }
    // Some of the states that can lie below the one that was read.
    void go_below() {
        GrowthLock::let_read();
        const vector<int32_t>& below = below_[reading_.state];
        for (const size_t stop = std::min(reading_.at + kBelow, below.size()); reading_.at < stop; ++reading_.at)
            if (t_.dwa.possible(reading_.next, below[reading_.at])) visit(reading_.next, below[reading_.at]);
        if (reading_.at == below.size()) reading_.next = -1;
    }
};

}  // namespace wfsa
