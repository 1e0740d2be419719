// The parser DWA ("cfg"): reads a stack from the top down and says which tails of a finish it takes, without parsing.
//
// A tail is what a token still spells after the terminal that it completed.  Whether a stack takes it depends on the
// states near its top only.  The machine is deterministic, reads one LR state at a time and carries weights:
//
//   start of a terminal  --q1-->  (tails decided by q1)  --q2-->  (tails decided by q2)  --> ...  until nothing is open
//
// Stack effects.  Shifting a terminal and applying every reduction is, in the polycyclic monoid over LR states, a sum
// of "pop this word, push that one".  The effects of the terminals of a tail are concatenated symbolically: a pop
// meets an earlier push and cancels, or goes below what has been read and stays open.  Every top lexes for itself and
// every reduction can be followed for itself, so a machine state is a set of open places:
//
//   node            how much of the tail has been consumed by complete terminals
//   symbol, depth   a reduction to this nonterminal; its base lies so many states further down
//
// States are interned, so the machine is as large as what can be distinguished.  It reads a state or two a reduction;
// a chain of reductions without end (right recursion through several nonterminals) makes it cyclic.  The composition
// follows the construction of GLRMask's parser DWA and of the stack-effect view of LR parsing in the design; the
// symbolic places and their interning are this project's. Under "longest" stacks do not lex for themselves:
// joint_tails.hpp.
#pragma once
#include <set>

#include "containers/growth_lock.hpp"
#include "parser/contexts.hpp"
#include "tails/universe.hpp"

namespace wfsa {

class ParserDwa {
    typedef vector<int32_t> Stack;
    struct Place {
        int32_t node, symbol, depth;
        bool operator<(const Place& o) const {
            return std::tie(node, symbol, depth) < std::tie(o.node, o.symbol, o.depth);
        }
    };

  public:
    struct Transition {
        int32_t weight;  // tails decided here: number in `weights`
        int32_t next;    // machine state that reads the next stack state, or -1
    };
    Interner& weights;

    ParserDwa(LrTables& lr, Contexts& contexts, Lexer& lexer, Staying& staying, const StableVector<Universe>& universes,
              Interner& weights_)
        : weights(weights_), lr_(lr), contexts_(contexts), lexer_(lexer), staying_(staying), universes_(universes) {}

    int32_t start(int32_t universe) {
        if (universe >= int32_t(starts_.size())) starts_.resize(size_t(universe) + 1, -1);
        if (starts_[universe] < 0) {
            starts_[universe] = int32_t(states_.size());
            states_.push_back({universe, true, {}});
        }
        return starts_[universe];
    }
    int32_t find_start(int32_t universe) const { return universe < int32_t(starts_.size()) ? starts_[universe] : -1; }
    const Transition* find(int32_t d, int32_t c) const {
        auto got = transitions_.find(pair_key(d, c));
        return got == transitions_.end() ? nullptr : &got->second;
    }
    const Transition* step(int32_t d, int32_t c) {  // good as long as the machine lives
        if (const Transition* got = find(d, c)) return got;
        universe_ = &universes_[states_[d].universe];
        open_.clear();
        slots_.clear();
        seen_.clear();
        todo_.clear();
        if (states_[d].start) shift({c}, universe_->term, 0);
        const vector<int32_t> places = states_[d].places;
        for (size_t i = 0; i < places.size(); i += 3) {
            const Place p{places[i], places[i + 1], places[i + 2]};
            if (p.depth > 1) { open_.insert({p.node, p.symbol, p.depth - 1}); continue; }
            const int32_t g = lr_.make_go(c, p.symbol);
            if (g >= 0) todo_.push_back({{c, g}, p.node});
        }
        reduce_all();
        sort_unique(slots_);
        Transition out{weights.intern(slots_), -1};
        if (!open_.empty()) {
            vector<int32_t> code{states_[d].universe};
            for (const Place& p : open_) code.insert(code.end(), {p.node, p.symbol, p.depth});
            auto got = ids_.emplace(code, int32_t(states_.size()));
            if (got.second) states_.push_back({states_[d].universe, false, {code.begin() + 1, code.end()}});
            out.next = got.first->second;
        }
        return &transitions_.emplace(pair_key(d, c), out).first->second;
    }

    // Can c lie where machine state d reads next?  In an LR(0) stack every base has a goto for what is reduced to it.
    bool possible(int32_t d, int32_t c) const {
        const vector<int32_t>& p = states_[d].places;
        for (size_t i = 0; i < p.size(); i += 3) if (p[i + 2] == 1 && lr_.go(c, p[i + 1]) == -1) return false;
        return true;
    }
    size_t n_states() const { return states_.size(); }
    size_t n_transitions() const { return transitions_.size(); }
    const std::unordered_map<uint64_t, Transition>& transitions() const { return transitions_; }
    int32_t universe_of(int32_t d) const { return states_[d].universe; }
    bool is_start(int32_t d) const { return states_[d].start; }
    const vector<int32_t>& places(int32_t d) const { return states_[d].places; }
    size_t heap_bytes() const {
        size_t n = wfsa::heap_bytes(starts_) + wfsa::heap_bytes(ids_) + wfsa::heap_bytes(transitions_);
        for (const State& s : states_) n += sizeof(State) + wfsa::heap_bytes(s.places);
        return n;
    }
    // All that can be read is there: let go of what more of it would be made from.
    void close(Retired& out) {
        vector<vector<int32_t>> places(states_.size());
        for (size_t d = 0; d < places.size(); ++d) places[d].swap(states_[d].places);
        out.take(places);
        out.take(ids_);
    }

    void restore_state(int32_t universe, bool is_start, vector<int32_t> places) {
        int32_t d = int32_t(states_.size());
        if (is_start) {
            if (universe >= int32_t(starts_.size())) starts_.resize(size_t(universe) + 1, -1);
            starts_[universe] = d;
        } else {
            vector<int32_t> k{universe};
            k.insert(k.end(), places.begin(), places.end());
            ids_.emplace(k, d);
        }
        states_.push_back({universe, is_start, std::move(places)});
    }
    void restore_transition(int32_t d, int32_t c, Transition t) { transitions_.emplace(pair_key(d, c), t); }

  private:
    struct State {
        int32_t universe;
        bool start;
        vector<int32_t> places;  // node, symbol, depth of each
    };
    LrTables& lr_;  // and what it grows by: contexts, lexer states
    Contexts& contexts_;
    Lexer& lexer_;
    Staying& staying_;
    const StableVector<Universe>& universes_;
    StableVector<State> states_;
    vector<int32_t> starts_;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    std::unordered_map<uint64_t, Transition> transitions_;

    // While one step is computed. Chains of reductions go as deep as the stacks, and tails are as long as tokens: all
    // of it is lists of work.
    struct Shifted { Stack stack; int32_t node; };  // a stack whose top has just been pushed, at a tail node
    struct Level { int32_t child, end, y, count; };  // children of a tail node still to be entered from lexer state y
    const Universe* universe_ = nullptr;
    std::set<Place> open_;
    std::set<std::pair<int32_t, Stack>> seen_;  // stacks closed at a tail node
    vector<int32_t> slots_;
    vector<Shifted> todo_;
    vector<Level> levels_;
    uint32_t n_entered_ = 0;

    // What is to be done, and what follows from it: apply all reductions to each stack, lex from what can shift,
    // leave open what needs more states.
    void reduce_all() {
        while (!todo_.empty()) {
            GrowthLock::let_read();
            const Shifted at = std::move(todo_.back());
            todo_.pop_back();
            if (!seen_.insert({at.node, at.stack}).second) continue;
            const int32_t top = at.stack.back();
            for (const int32_t *d = lr_.completed_begin(top), *end = lr_.completed_end(top); d != end; ++d) {
                const int32_t n = *d, left = int32_t(at.stack.size()) - 2;
                if (left <= 0) { open_.insert({at.node, n, 1 - left}); continue; }
                const int32_t g = lr_.make_go(at.stack[size_t(left) - 1], n);
                if (g < 0) continue;
                todo_.push_back({Stack(at.stack.begin(), at.stack.begin() + left), at.node});
                todo_.back().stack.push_back(g);
            }
            if (lr_.shifts(top)) lex(at.stack, at.node);
        }
    }
    void shift(const Stack& stack, int32_t term, int32_t node) {
        const int32_t q = lr_.go(stack.back(), term);
        if (q < 0) return;
        todo_.push_back({stack, node});
        todo_.back().stack.push_back(q);
    }
    // The tails behind a node, from the root of the stack's top.
    void lex(const Stack& stack, int32_t node) {
        const Trie& tails = universe_->tails();
        levels_.clear();
        enter(node, lexer_.root(contexts_.make(stack.back()), 0), 0);
        while (!levels_.empty()) {
            Level& level = levels_.back();
            if (level.child == level.end) { levels_.pop_back(); continue; }
            const int32_t c = level.child++;
            if (++n_entered_ % 64 == 0) GrowthLock::let_read();
            const Edge* e = lexer_.states[size_t(level.y)].edge(tails.byte[size_t(c)]);
            if (!e) continue;
            const int32_t to = e->target, after = lexer_.count_after(lexer_.states[size_t(to)], level.count, *e);
            if (!lexer_.alive(lexer_.states[size_t(to)], after)) continue;
            if (tails[c].own) slots_.push_back(tails[c].slot_lo);
            if (tails[c].first_child == tails[c].end_child) continue;
            lexer_.expand(to);
            const LexState& in = lexer_.states[size_t(to)];
            if (staying_.stays(to, tails[c]) && lexer_.alive(in, after + tails[c].height)) {
                for (int32_t s = tails[c].slot_lo + tails[c].own; s < tails[c].slot_hi; ++s)
                    slots_.push_back(s);
                continue;
            }
            for (const Accept& a : in.accepts) if (lexer_.terms.takes(a.term, after)) shift(stack, a.term, c);
            enter(c, to, after);
        }
    }
    void enter(int32_t node, int32_t y, int32_t count) {
        const Trie& tails = universe_->tails();
        lexer_.expand(y);
        levels_.push_back({tails[node].first_child, tails[node].end_child, y, count});
    }
};

}  // namespace wfsa
