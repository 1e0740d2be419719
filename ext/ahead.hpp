// Ahead of time: expand everything that decoding can reach, so that the runtime never has to.
//
//   1 contexts   every set of terminals that a parse can lex from ("cfg": one per LR state; "longest": those of
//                situations, found by shifting terminals on real stacks), with every watch set that can hold there
//   2 lexer      all lexer states reachable from those roots, and their profiles
//   3 tails      one universe of tails a terminal
//   4 parser     the parser DWA from every LR state, reading any state that can lie below; "longest": joint tails of
//                every situation
//
// The same functions run on demand in lazy mode; here they are only called in order.  Where the count of situations
// or the work passes a cap (a string of at most 500 characters has 500 times the states), the rest stays on demand and
// `complete()` is false; so it is, always, under "longest", and where a list has any order: its sets stay on demand.
// Caps count steps, not time: same input, same tables.
// Work comes in small slices, so that the caller can report progress and stop.
#pragma once
#include "runtime/engine.hpp"

namespace wfsa {

class Ahead {
  public:
    explicit Ahead(Engine& engine) : e_(engine), growth_(engine) {
        complete_ = e_.lr.unordered.lists.empty();
        if (!e_.longest()) { index_below(); return; }
        const Snapshot* at = e_.start(arena_, true);
        situations_.push_back({at->configs[0], {}, {}});
        add_watch(0, 0);
    }

    // One slice of work; false when all is done.
    bool advance() {
        switch (stage_) {
            case 0: return e_.longest() ? situations() : contexts();
            case 1: return lexer();
            case 2: e_.shared_universes(); ++stage_; return true;
            case 3: return e_.longest() ? read_situations() : parser();
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
        double all = stage_ == 1 ? double(e_.lexer.states.size()) : e_.longest() ? double(stage_ ? situations_.size() : todo_.size())
                   : double(e_.lr.n_states());
        return stage_ > 3 ? 1.0 : (stage_ + std::min(1.0, at_ / std::max(all, 1.0))) / 4;
    }
    bool complete() const { return complete_; }

  private:
    static constexpr int64_t kWalkCap = 1 << 20;   // trie nodes walked for profiles; the rest is left on demand
    static constexpr size_t kStateCap = 1 << 16;   // lexer states, likewise
    static constexpr int64_t kWorkCap = 4 << 20;   // "longest": steps of the parser DWA; the rest is left on demand
    static constexpr size_t kSlice = 256;          // reads between two looks at the clock
    static constexpr size_t kSituationCap = 1 << 12;  // "longest": situations told apart by the topmost states
    static constexpr int32_t kShapeDepth = 2;
    static constexpr size_t kShiftCap = 1 << 18;   // "longest": terminals shifted to find them
    struct Situation {
        Config config;
        vector<int32_t> watches;
        std::map<int32_t, int32_t> after;  // terminal -> situation, -1: none
    };
    Engine& e_;
    const Engine::Growth growth_;
    int stage_ = 0;
    size_t at_ = 0, lexed_ = 0, united_ = 0;
    bool complete_ = true;
    vector<vector<int32_t>> below_;           // LR state -> states that can lie under it
    vector<vector<int32_t>> universes_of_;    // terminal -> universes
    std::set<std::pair<int32_t, int32_t>> read_;
    std::deque<std::pair<int32_t, int32_t>> starts_;  // (universe, LR state)
    vector<std::pair<int32_t, int32_t>> todo_;  // (machine state, LR state) from the last start; "longest": (situation, watch set)
    Arena arena_;
    size_t n_shifted_ = 0;
    std::deque<Situation> situations_;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> by_shape_;
    std::map<int32_t, vector<Accept>> accepts_;  // root -> what can be cut before the next root
    vector<size_t> seen_;                        // lexer state -> the last root that reached it

    vector<uint8_t> is_read_;                    // "cfg": LR state -> can it lie on a stack?

    void index_below() {
        is_read_.assign(size_t(e_.lr.n_states()), 1);
        for (const UnorderedList& list : e_.lr.unordered.lists)  // those of unordered lists do so with a set only
            is_read_[size_t(list.after_member)] = is_read_[size_t(list.after_separator)] = 0;
        below_.resize(size_t(e_.lr.n_states()));
        for (int32_t s = 0; s < e_.lr.n_states(); ++s)
            if (is_read_[size_t(s)]) for (int32_t k = e_.lr.goto_indptr[s]; k < e_.lr.goto_indptr[s + 1]; ++k)
                if (e_.lr.goto_symbol[k] != e_.end_term && e_.lr.goto_target[k] < e_.lr.unordered.first)
                    below_[size_t(e_.lr.goto_target[k])].push_back(s);
        for (auto& b : below_) {
            std::sort(b.begin(), b.end());
            b.erase(std::unique(b.begin(), b.end()), b.end());
        }
    }

    bool contexts() {
        for (int32_t q = 0; q < e_.lr.n_states(); ++q) if (e_.lr.n_shifts[q] && is_read_[size_t(q)]) e_.lexer.root(e_.state_context[q], 0);
        return next_stage();
    }

    // "longest": which terminals compete depends on all stacks at once, so real ones are tried, from the start on,
    // breadth first; situations with the same topmost states count as one.
    bool situations() {
        for (size_t stop = std::min(at_ + 16, todo_.size()); at_ < stop; ++at_) {
            auto [n, watch] = todo_[at_];
            for (const Accept& a : accepts(e_.lexer.root(e_.context(situations_[n].config), watch))) {
                const int32_t to = e_.lexer.terms.ignore[a.term] ? n : after(n, a.term);
                if (to >= 0) add_watch(to, a.watch);
            }
            for (int32_t k = 0; k < int32_t(e_.token_ids.size()); ++k)
                if (!watch && k != e_.end_term && e_.lexer.terms.start[k] < 0 && after(n, k) >= 0) add_watch(after(n, k), 0);
        }
        return at_ < todo_.size() ? true : next_stage();
    }
    void add_watch(int32_t n, int32_t watch) {
        vector<int32_t>& known = situations_[n].watches;
        if (std::find(known.begin(), known.end(), watch) != known.end()) return;
        known.push_back(watch);
        todo_.push_back({n, watch});
    }
    int32_t after(int32_t n, int32_t term) {
        auto got = situations_[n].after.emplace(term, -1);
        if (!got.second) return got.first->second;
        if (++n_shifted_ > kShiftCap) return -1;
        const Config to = e_.shifted(situations_[n].config, term, arena_);
        if (!to.n_tops) return -1;
        vector<int32_t> shape;
        Engine::shape(to, kShapeDepth, shape);
        auto known = by_shape_.find(shape);
        if (known != by_shape_.end()) return got.first->second = known->second;
        if (situations_.size() >= kSituationCap) return -1;
        by_shape_.emplace(std::move(shape), int32_t(situations_.size()));
        situations_.push_back({to, {}, {}});
        return got.first->second = int32_t(situations_.size()) - 1;
    }
    const vector<Accept>& accepts(int32_t root) {
        auto got = accepts_.emplace(root, vector<Accept>{});
        if (!got.second) return got.first->second;
        std::set<std::pair<int32_t, int32_t>> found;
        vector<int32_t> todo{root};
        for (size_t i = 0; i < todo.size(); ++i) {
            e_.lexer.expand(todo[i]);
            const LexState& y = e_.lexer.states[todo[i]];
            for (const Accept& a : y.accepts) found.insert({a.term, a.watch});
            for (const Edge& e : y.edges) {
                if (seen_.size() <= size_t(e.target)) seen_.resize(size_t(e.target) + 1, 0);
                if (seen_[e.target] == accepts_.size()) continue;
                seen_[e.target] = accepts_.size();
                todo.push_back(e.target);
            }
        }
        for (auto [t, w] : found) got.first->second.push_back({t, w});
        return got.first->second;
    }

    bool lexer() {
        if (e_.profiler.work() > kWalkCap || e_.lexer.states.size() > kStateCap) {
            complete_ = false;
            lexed_ = e_.lexer.states.size();
        }
        for (size_t stop = std::min(lexed_ + 16, e_.lexer.states.size()); lexed_ < stop; ++lexed_) {
            const int32_t y = int32_t(lexed_);
            e_.lexer.expand(y);
            e_.profiler.profile(y);
        }
        at_ = lexed_;
        return lexed_ < e_.lexer.states.size() ? true : next_stage();
    }

    bool parser() {
        index_universes();
        // A start can lead to very many reads, so a slice is a number of reads.
        for (size_t n = 0; n < kSlice && !(todo_.empty() && starts_.empty()); ++n) todo_.empty() ? start() : read();
        if (!(todo_.empty() && starts_.empty())) return true;
        for (size_t stop = std::min(at_ + 8, size_t(e_.lr.n_states())); at_ < stop; ++at_) {
            const int32_t q = int32_t(at_);
            if (!is_read_[size_t(q)]) continue;
            for (int32_t k = e_.lr.goto_indptr[q]; k < e_.lr.goto_indptr[q] + e_.lr.n_shifts[q]; ++k)
                for (int32_t u : universes_of_[e_.lr.goto_symbol[k]]) starts_.push_back({u, q});
        }
        if (!starts_.empty() || at_ < size_t(e_.lr.n_states())) return true;
        if (lexed_ == e_.lexer.states.size() || !complete_) return next_stage();
        stage_ = 1;  // tails were lexed in states not met before: profile them, too
        at_ = lexed_;
        return true;
    }
    void index_universes() {
        universes_of_.resize(e_.token_ids.size());
        for (; united_ < e_.universes.size(); ++united_)
            universes_of_[e_.universes[united_].term].push_back(int32_t(united_));
    }
    bool read_situations() {
        index_universes();
        for (size_t stop = std::min(at_ + 16, situations_.size()); at_ < stop && e_.joint.work() < kWorkCap; ++at_) {
            const Situation& s = situations_[at_];
            std::set<int32_t> terms;
            for (int32_t w : s.watches)
                for (const Accept& a : accepts(e_.lexer.root(e_.context(s.config), w)))
                    for (int32_t u : universes_of_[a.term]) terms.insert(u);
            e_.read_tails(terms, s.config);
        }
        if (at_ < situations_.size() && e_.joint.work() < kWorkCap) return true;
        e_.fill_bulk();
        return next_stage();
    }
    void visit(int32_t d, int32_t state) {
        if (read_.insert({d, state}).second) todo_.push_back({d, state});
    }
    void start() {
        auto [universe, q] = starts_.front();
        starts_.pop_front();
        visit(e_.dwa.start(universe), q);
    }
    void read() {
        auto [d, c] = todo_.back();
        todo_.pop_back();
        const int32_t next = e_.dwa.step(d, c).next;
        if (next < 0) return;
        for (int32_t b : below_[c]) if (e_.dwa.possible(next, b)) visit(next, b);
    }
    bool next_stage() {
        ++stage_;
        at_ = 0;
        return true;
    }
};

}  // namespace wfsa
