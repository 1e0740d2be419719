// Ahead under "cfg": every LR state can be a top, so its context is a root, and the parser DWA starts on it and reads
// whatever states can lie below.
//
// The states of unordered lists are met with sets of members only (unordered.hpp); those stay on demand.
#pragma once
#include "ahead/reach.hpp"

namespace wfsa {

class LrStates : public Reach {
  public:
    explicit LrStates(Tables& tables)
        : Reach(tables), is_read_(size_t(tables.lr.n_states()), 1), below_(is_read_.size()) {
        const LrTables& lr = t_.lr;
        for (const UnorderedList& list : lr.unordered.lists)
            is_read_[size_t(list.after_member)] = is_read_[size_t(list.after_separator)] = 0;
        for (int32_t s = 0; s < lr.n_states(); ++s) {
            if (!is_read_[size_t(s)]) continue;
            for (int32_t k = lr.goto_indptr[size_t(s)]; k < lr.goto_indptr[size_t(s) + 1]; ++k)
                if (lr.goto_symbol[size_t(k)] != t_.end_term && lr.goto_target[size_t(k)] < lr.unordered.first)
                    below_[size_t(lr.goto_target[size_t(k)])].push_back(s);
        }
        for (vector<int32_t>& states : below_) sort_unique(states);
    }

    bool find_roots() override {
        for (int32_t q = 0; q < t_.lr.n_states(); ++q)
            if (t_.lr.n_shifts[size_t(q)] && is_read_[size_t(q)]) t_.lexer.root(t_.contexts.of_state[size_t(q)], 0);
        return false;
    }
    bool read_tails() override {
        universes_of_.resize(t_.token_ids.size());
        each_new_universe([&](int32_t term, int32_t u) {
            universes_of_[size_t(term)].push_back(u);
            at_ = 0;
        });
        for (size_t n = 0; n < kReads && !(todo_.empty() && starts_.empty()); ++n) todo_.empty() ? start() : read();
        if (!(todo_.empty() && starts_.empty())) return true;
        for (int32_t stop = std::min(at_ + kStates, t_.lr.n_states()); at_ < stop; ++at_) {
            if (!is_read_[size_t(at_)]) continue;
            const int32_t* symbol = t_.lr.goto_symbol.data() + t_.lr.goto_indptr[size_t(at_)];
            for (int32_t k = 0; k < t_.lr.n_shifts[size_t(at_)]; ++k)
                for (int32_t u : universes_of_[size_t(symbol[k])]) starts_.push_back({u, at_});
        }
        return !starts_.empty() || at_ < t_.lr.n_states();
    }
    double fraction() const override { return double(at_) / std::max(t_.lr.n_states(), 1); }
    bool complete() const override { return t_.lr.unordered.lists.empty(); }

  private:
    static constexpr size_t kReads = 256;  // of the parser DWA in one slice; one start can lead to very many
    static constexpr int32_t kStates = 8;  // LR states looked at in one slice
    vector<uint8_t> is_read_;              // LR state -> can it lie on a stack?
    vector<vector<int32_t>> below_;        // LR state -> states that can lie under it
    vector<vector<int32_t>> universes_of_;  // terminal -> universes
    std::set<std::pair<int32_t, int32_t>> seen_;
    std::deque<std::pair<int32_t, int32_t>> starts_;  // (universe, LR state)
    vector<std::pair<int32_t, int32_t>> todo_;        // (machine state, LR state) from the last start
    int32_t at_ = 0;

    void visit(int32_t d, int32_t state) {
        if (seen_.insert({d, state}).second) todo_.push_back({d, state});
    }
    void start() {
        const auto [universe, state] = starts_.front();
        starts_.pop_front();
        visit(t_.dwa.start(universe), state);
    }
    void read() {
        const auto [d, state] = todo_.back();
        todo_.pop_back();
        const int32_t next = t_.dwa.step(d, state)->next;
        if (next < 0) return;
        for (int32_t b : below_[size_t(state)]) if (t_.dwa.possible(next, b)) visit(next, b);
    }
};

}  // namespace wfsa
