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
// symbolic places and their interning are this project's.  Under "longest" stacks do not lex for themselves: joint_tails.hpp.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "parser/lr0.hpp"
#include "profiles/profile.hpp"

namespace wfsa {

// One universe of tails for several finishes: the union, and for every finish the slots of its tails.
struct SharedTails {
    Trie all;
    vector<uint8_t> text;  // of the tails, when they come from a file
    vector<std::shared_ptr<const vector<int32_t>>> slots;
};

// The tails that are asked about together.  Ahead of time there is one universe a terminal, with the tails of all its
// finishes; on demand each finish brings its own.
struct Universe {
    int32_t term;
    std::shared_ptr<const SharedTails> shared;
    const Trie& tails() const { return shared->all; }  // its slots are the weights' elements
};

class ParserDwa {
    typedef vector<int32_t> Stack;
    struct Place {
        int32_t node, symbol, depth;
        bool operator<(const Place& o) const { return std::tie(node, symbol, depth) < std::tie(o.node, o.symbol, o.depth); }
    };

  public:
    struct Transition {
        int32_t weight;  // tails decided here: number in `weights`
        int32_t next;    // machine state that reads the next stack state, or -1
    };
    Interner& weights;

    ParserDwa(const LrTables& lr, Lexer& lexer, const std::deque<Universe>& universes, Interner& weights_)
        : weights(weights_), lr_(lr), lexer_(lexer), universes_(universes) {}
    // The context of an LR state, as the engine numbers them.
    std::function<int32_t(int32_t)> context_of;

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
        auto got = transitions_.find(key(d, c));
        return got == transitions_.end() ? nullptr : &got->second;
    }
    Transition step(int32_t d, int32_t c) {
        if (const Transition* got = find(d, c)) return *got;
        universe_ = &universes_[states_[d].universe];
        open_.clear();
        slots_.clear();
        seen_.clear();
        if (states_[d].start) shift({c}, universe_->term, 0);
        const vector<int32_t> places = states_[d].places;
        for (size_t i = 0; i < places.size(); i += 3) {
            const Place p{places[i], places[i + 1], places[i + 2]};
            if (p.depth > 1) { open_.insert({p.node, p.symbol, p.depth - 1}); continue; }
            const int32_t g = lr_.go(c, p.symbol);
            if (g >= 0) close({c, g}, p.node);
        }
        std::sort(slots_.begin(), slots_.end());
        slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
        Transition out{weights.intern(slots_), -1};
        if (!open_.empty()) {
            vector<int32_t> code{states_[d].universe};
            for (const Place& p : open_) code.insert(code.end(), {p.node, p.symbol, p.depth});
            auto got = ids_.emplace(code, int32_t(states_.size()));
            if (got.second) states_.push_back({states_[d].universe, false, {code.begin() + 1, code.end()}});
            out.next = got.first->second;
        }
        transitions_.emplace(key(d, c), out);
        return out;
    }

    // Can c lie where machine state d reads next?  In an LR(0) stack every base has a goto for what is reduced to it.
    bool possible(int32_t d, int32_t c) const {
        const vector<int32_t>& p = states_[d].places;
        for (size_t i = 0; i < p.size(); i += 3) if (p[i + 2] == 1 && lr_.go(c, p[i + 1]) < 0) return false;
        return true;
    }
    size_t n_states() const { return states_.size(); }
    size_t n_transitions() const { return transitions_.size(); }
    const std::unordered_map<uint64_t, Transition>& transitions() const { return transitions_; }
    int32_t universe_of(int32_t d) const { return states_[d].universe; }
    bool is_start(int32_t d) const { return states_[d].start; }
    const vector<int32_t>& places(int32_t d) const { return states_[d].places; }

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
    void restore_transition(int32_t d, int32_t c, Transition t) { transitions_.emplace(key(d, c), t); }

  private:
    struct State {
        int32_t universe;
        bool start;
        vector<int32_t> places;  // node, symbol, depth of each
    };
    const LrTables& lr_;
    Lexer& lexer_;
    const std::deque<Universe>& universes_;
    std::deque<State> states_;
    vector<int32_t> starts_;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    std::unordered_map<uint64_t, Transition> transitions_;

    // While one step is computed:
    const Universe* universe_ = nullptr;
    std::set<Place> open_;
    std::set<std::pair<int32_t, Stack>> seen_;  // stacks closed at a tail node
    vector<int32_t> slots_;

    static uint64_t key(int32_t d, int32_t c) { return uint64_t(uint32_t(d)) << 32 | uint32_t(c); }

    // Apply all reductions to a stack, lex from what can shift, leave open what needs more states.
    void close(const Stack& w, int32_t node) {
        if (!seen_.insert({node, w}).second) return;
        const int32_t top = w.back();
        if (lr_.shifts(top)) {
            const int32_t y = lexer_.root(context_of(top), 0);
            lex(w, y, node, 0);
        }
        for (const int32_t *d = lr_.completed_begin(top), *end = lr_.completed_end(top); d != end; ++d) {
            const int32_t n = *d, left = int32_t(w.size()) - 2;
            if (left <= 0) { open_.insert({node, n, 1 - left}); continue; }
            const int32_t g = lr_.go(w[left - 1], n);
            if (g < 0) continue;
            Stack to(w.begin(), w.begin() + left);
            to.push_back(g);
            close(to, node);
        }
    }
    void shift(Stack w, int32_t t, int32_t node) {
        const int32_t q = lr_.go(w.back(), t);
        if (q < 0) return;
        w.push_back(q);
        close(w, node);
    }
    void lex(const Stack& w, int32_t y, int32_t node, int32_t count) {
        const Trie& tails = universe_->tails();
        lexer_.expand(y);
        for (int32_t c = tails.first_child[node]; c < tails.first_child[node + 1]; ++c) {
            const Edge* e = lexer_.states[y].edge(tails.byte[c]);
            if (!e) continue;
            const int32_t to = e->target, after = lexer_.count_after(lexer_.states[to], count, *e);
            if (!lexer_.alive(lexer_.states[to], after)) continue;
            if (tails.own[c]) slots_.push_back(tails.slot_lo[c]);
            if (tails.first_child[c] == tails.first_child[c + 1]) continue;
            lexer_.expand(to);
            if (lexer_.decided(to, tails.below[c]) && lexer_.alive(lexer_.states[to], after + tails.height[c])) {
                for (int32_t s = tails.slot_lo[c] + tails.own[c]; s < tails.slot_hi[c]; ++s) slots_.push_back(s);
                continue;
            }
            for (const Accept& a : lexer_.states[to].accepts) if (lexer_.terms.takes(a.term, after)) shift(w, a.term, c);
            lex(w, to, c, after);
        }
    }
};

}  // namespace wfsa
