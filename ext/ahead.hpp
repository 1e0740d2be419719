// Ahead of time: expand everything that decoding can reach, so that the runtime never has to.
//
//   1 contexts   every set of terminals that a parse can lex from ("cfg": one per LR state; "longest": what the
//                reductions after a shift can leave, for any stack below), with every watch set that can hold there
//   2 lexer      all lexer states reachable from those roots, and their profiles
//   3 tails      one universe of tails a terminal
//   4 parser     the parser DWA from every LR state, reading any state that can lie below
//
// The same functions run on demand in lazy mode; here they are only called in order.  Where the count of contexts
// or the work passes a cap (a string of at most 500 characters has 500 times the states), the rest stays on demand and
// `complete()` is false; so it is, always, under "longest".  Caps count steps, not time: same input, same tables.
// Work comes in small slices, so that the caller can report progress and stop.
#pragma once
#include "engine.hpp"

namespace wfsa {

class Ahead {
  public:
    explicit Ahead(Engine& engine)
        : e_(engine), flow_(engine.dwa, below_, [this](int32_t a, int32_t b) {
              vector<int32_t> out;
              const vector<int32_t>&x = e_.lexer.contexts[a], &y = e_.lexer.contexts[b];
              std::set_union(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(out));
              return e_.lexer.contexts(out);
          }) {
        index_below();
    }

    // One slice of work; false when all is done.
    bool advance() {
        switch (stage_) {
            case 0: return contexts();
            case 1: return lexer();
            case 2: e_.shared_universes(); ++stage_; return true;
            case 3: return parser();
            default:
                // Under "longest" what competes depends on all stacks at once; tables there may always grow.
                e_.frozen = complete_ = complete_ && !e_.longest();
                return false;
        }
    }
    const char* stage() const {
        static const char* names[] = {"contexts", "lexer states", "tails", "parser DWA", "done"};
        return names[stage_];
    }
    double fraction() const {
        double all = stage_ == 0 ? double(e_.lr.n_states()) : stage_ == 1 ? double(e_.lexer.states.size())
                   : stage_ == 3 ? double(e_.lr.n_states()) : 1.0;
        return stage_ > 3 ? 1.0 : (stage_ + std::min(1.0, at_ / std::max(all, 1.0))) / 4;
    }
    bool complete() const { return complete_; }

  private:
    static constexpr int64_t kWalkCap = 1 << 20;   // trie nodes walked for profiles; the rest is left on demand
    static constexpr size_t kStateCap = 1 << 16;   // lexer states, likewise
    static constexpr int64_t kWorkCap = 4 << 20;   // "longest": steps of the parser DWA; the rest is left on demand
    static constexpr size_t kReadCap = 128;       // "longest": reads from one start; chains that never end keep all tops
    static constexpr size_t kSlice = 256;         // reads between two looks at the clock
    Engine& e_;
    int stage_ = 0;
    size_t at_ = 0, lexed_ = 0, united_ = 0;
    bool complete_ = true;
    ParserDwa::ContextFlow flow_;
    vector<vector<int32_t>> below_;           // LR state -> states that can lie under it
    std::map<int32_t, std::set<int32_t>> after_;  // "longest": shift result -> contexts
    vector<vector<int32_t>> watches_after_;   // "longest": terminal -> watch sets it can be cut with
    vector<std::set<int32_t>> contexts_of_term_;  // "longest": terminal -> contexts after it
    vector<vector<int32_t>> universes_of_;    // terminal -> universes
    std::set<std::pair<int32_t, int32_t>> read_;
    std::deque<std::pair<int32_t, int32_t>> starts_;  // (universe, LR state)
    vector<std::pair<int32_t, int32_t>> todo_;        // reads from the last start
    size_t reads_ = 0;                                // how many so far

    void index_below() {
        below_.resize(size_t(e_.lr.n_states()));
        for (int32_t s = 0; s < e_.lr.n_states(); ++s)
            for (int32_t k = e_.lr.goto_indptr[s]; k < e_.lr.goto_indptr[s + 1]; ++k)
                if (e_.lr.goto_symbol[k] != e_.end_term) below_[e_.lr.goto_target[k]].push_back(s);
        for (auto& b : below_) {
            std::sort(b.begin(), b.end());
            b.erase(std::unique(b.begin(), b.end()), b.end());
        }
    }

    bool contexts() {
        const int32_t n = e_.lr.n_states();
        if (!e_.longest()) {
            for (int32_t q = 0; q < n; ++q) if (e_.lr.n_shifts[q]) e_.lexer.root(e_.state_context[q], 0);
            return next_stage();
        }
        if (at_ == 0) {
            const int32_t zero = 0;
            e_.lexer.root(e_.context_of(&zero, 1), 0);
            contexts_of_term_.resize(e_.token_ids.size());
            watches_after_.resize(e_.token_ids.size());
        }
        for (size_t stop = std::min(at_ + 8, size_t(n)); at_ < stop; ++at_) {
            const int32_t q = int32_t(at_);
            for (int32_t k = e_.lr.goto_indptr[q]; k < e_.lr.goto_indptr[q] + e_.lr.n_shifts[q]; ++k) {
                const int32_t t = e_.lr.goto_symbol[k], raw = e_.lr.goto_target[k];
                if (t == e_.end_term) continue;
                auto got = after_.emplace(raw, std::set<int32_t>{});
                if (got.second) got.first->second = flow_.after(raw);
                for (int32_t c : got.first->second) {
                    contexts_of_term_[t].insert(c);
                    if (e_.lexer.terms.start[t] < 0) e_.lexer.root(c, 0);
                }
            }
        }
        return at_ < size_t(n) ? true : next_stage();
    }

    bool lexer() {
        if (e_.profiler.work() > kWalkCap || e_.lexer.states.size() > kStateCap) {
            complete_ = false;
            lexed_ = e_.lexer.states.size();
        }
        for (size_t stop = std::min(lexed_ + 16, e_.lexer.states.size()); lexed_ < stop; ++lexed_) {
            const int32_t y = int32_t(lexed_);
            e_.lexer.expand(y);
            if (e_.longest())
                for (size_t k = 0; k < e_.lexer.states[y].accepts.size(); ++k) {
                    const Accept a = e_.lexer.states[y].accepts[k];
                    vector<int32_t>& known = watches_after_[a.term];
                    if (std::find(known.begin(), known.end(), a.watch) != known.end()) continue;
                    known.push_back(a.watch);
                    if (e_.lexer.terms.ignore[a.term]) {  // the same contexts again, under watch
                        for (int32_t c = 0, n = e_.lexer.contexts.size(); c < n; ++c) e_.lexer.root(c, a.watch);
                        continue;
                    }
                    for (int32_t c : contexts_of_term_[a.term]) { e_.lexer.root(c, a.watch); if (a.watch) e_.lexer.root(c, 0); }
                }
            e_.profiler.profile(y);
        }
        at_ = lexed_;
        return lexed_ < e_.lexer.states.size() ? true : next_stage();
    }

    bool parser() {
        if (at_ == 0) {
            universes_of_.resize(e_.token_ids.size());
            for (; united_ < e_.dwa.universes.size(); ++united_)
                universes_of_[e_.dwa.universes[united_].term].push_back(int32_t(united_));
        }
        // A start can lead to very many reads, so a slice is a number of reads.
        for (size_t n = 0; n < kSlice && !(todo_.empty() && starts_.empty()); ++n) todo_.empty() ? start() : read();
        if (!(todo_.empty() && starts_.empty())) return true;
        for (size_t stop = std::min(at_ + 8, size_t(e_.lr.n_states())); at_ < stop; ++at_) {
            const int32_t q = int32_t(at_);
            if (!e_.longest()) {
                for (int32_t k = e_.lr.goto_indptr[q]; k < e_.lr.goto_indptr[q] + e_.lr.n_shifts[q]; ++k)
                    for (int32_t u : universes_of_[e_.lr.goto_symbol[k]]) starts_.push_back({u, q});
            } else if (q == 0 || after_.count(q)) {
                // Every terminal that can be admissible once q is on the stack.
                std::set<int32_t> terms;
                if (q == 0) for (int32_t k = 0; k < e_.lr.n_shifts[0]; ++k) terms.insert(e_.lr.goto_symbol[k]);
                else for (int32_t c : after_[q]) terms.insert(e_.lexer.contexts[c].begin(), e_.lexer.contexts[c].end());
                for (int32_t t : terms)
                    for (int32_t u : universes_of_[t]) starts_.push_back({u, q});
            }
        }
        if (!starts_.empty() || at_ < size_t(e_.lr.n_states())) return true;
        if (lexed_ == e_.lexer.states.size() || !complete_) return next_stage();
        stage_ = 1;  // tails were lexed in states not met before: profile them, too
        at_ = lexed_;
        return true;
    }
    void visit(int32_t d, int32_t state) {
        if (read_.insert({d, state}).second) todo_.push_back({d, state});
    }
    void start() {
        auto [universe, q] = starts_.front();
        starts_.pop_front();
        reads_ = 0;
        if (e_.longest() && e_.dwa.work() > kWorkCap) { complete_ = false; return; }
        visit(e_.dwa.start(universe), q);
    }
    void read() {
        if (e_.longest() && (reads_++ > kReadCap || e_.dwa.work() > kWorkCap)) {
            complete_ = false;
            todo_.clear();
            return;
        }
        auto [d, c] = todo_.back();
        todo_.pop_back();
        const int32_t next = e_.dwa.step(d, c).next;
        if (next < 0) return;
        for (int32_t b : below_[c]) if (e_.dwa.possible(next, b)) visit(next, b);
        if (c == 0) e_.dwa.step(next, ParserDwa::kBottom);
    }
    bool next_stage() {
        ++stage_;
        at_ = 0;
        return true;
    }
};

}  // namespace wfsa
