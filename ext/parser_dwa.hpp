// The parser DWA: reads a stack from the top down and says which tails of a finish it takes, without parsing.
//
// A tail is what a token still spells after the terminal that it completed.  Whether a stack takes it depends on the
// states near its top only.  The machine is deterministic, reads one LR state at a time and carries weights:
//
//   start of a terminal  --q1-->  (tails decided by q1)  --q2-->  (tails decided by q2)  --> ...  until nothing is open
//
// Stack effects.  Shifting a terminal and applying every reduction is, in the polycyclic monoid over LR states, a sum
// of "pop this word, push that one".  The effects of the terminals of a tail are concatenated symbolically: a pop
// meets an earlier push and cancels, or goes below what has been read and stays open.  So a machine state is a set of
// open places:
//
//   Place   tail node   how much of the tail has been consumed by complete terminals
//           words       stacks built so far on top of the part not read yet (bottom first)
//           pending     reductions that wait for states below: nonterminal N, and how many states further its base lies
//           term        a terminal to shift once nothing is pending, or -1
//           watch       longer candidates that may not match (lexer.hpp)
//
// Under "cfg" every top lexes for itself, so a place is one pending reduction.  Under "longest" all tops of one
// stack lex together, so a place waits until its reductions are resolved.
//
// States are interned, so the machine is as large as what can be distinguished.  It reads a state or two a reduction;
// a chain of reductions without end (right recursion through several nonterminals) makes it cyclic.  The composition follows the construction of GLRMask's parser DWA and of the
// stack-effect view of LR parsing in the design; the symbolic places and their interning are this project's.
#pragma once
#include <functional>
#include <map>
#include <set>

#include "lr0.hpp"
#include "profile.hpp"

namespace wfsa {

// One universe of tails for several finishes: the union, and for every finish the slots of its tails.
struct SharedTails {
    Trie all;
    vector<uint8_t> text;  // of the tails, when they come from a file
    vector<std::shared_ptr<const vector<int32_t>>> slots;
};

class ParserDwa {
    typedef vector<int32_t> Word;  // an anchor (kBottom: nothing lies below), then states, bottom first
    struct Need { int32_t symbol, depth, anchor; };
    struct Place {
        int32_t node, watch, term;
        vector<Word> words;
        vector<Need> pending;
    };

  public:
    struct Transition {
        int32_t weight;  // tails decided here: number in `weights`
        int32_t next;    // machine state that reads the next stack state, or -1
    };
    // What one step reads, for every anchor of a machine state in order:
    //     -1, new anchor                      not read, only numbered anew
    //     n, then n times (state, new anchor) its states, ascending, and the stacks below each; kBottom has anchor kBottom
    // Of the new anchors the next machine state needs those in `keep`, and numbers them in that order.
    struct WideTransition : Transition { vector<int32_t> keep; };
    typedef std::unordered_map<vector<int32_t>, WideTransition, VectorHash> WideTransitions;  // (machine state, what it reads)
    static constexpr int32_t kBottom = -1;   // read below the last state of a stack
    static constexpr int32_t kMaxAnchors = 16;

    // The tails that are asked about together.  Ahead of time there is one universe a terminal, with the tails of all
    // its finishes; on demand each finish brings its own.
    struct Universe {
        int32_t term;
        std::shared_ptr<const SharedTails> shared;
        const Trie& tails() const { return shared->all; }  // its slots are the weights' elements
    };
    std::deque<Universe> universes;

    Interner weights;

    ParserDwa(const LrTables& lr, Lexer& lexer) : lr_(lr), lexer_(lexer) {
        weights({});
    }
    // Contexts of sets of LR states, as the engine numbers them.
    std::function<int32_t(const int32_t*, int32_t)> context_of;

    int32_t start(int32_t universe) {
        if (universe >= int32_t(starts_.size())) starts_.resize(size_t(universe) + 1, -1);
        if (starts_[universe] < 0) {
            starts_[universe] = int32_t(states_.size());
            states_.push_back({universe, true, 1, 1, {}});
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
        const WideTransition out = compute(d, {1, c, c == kBottom ? kBottom : 0});
        transitions_.emplace(key(d, c), out);
        return out;
    }
    // The same for sets of stacks; `key` is the machine state and what it reads.
    const WideTransition* find(const vector<int32_t>& key) const {
        auto got = wide_.find(key);
        return got == wide_.end() ? nullptr : &got->second;
    }
    const WideTransition& step(const vector<int32_t>& key) {
        if (const WideTransition* got = find(key)) return *got;
        return wide_.emplace(key, compute(key[0], {key.begin() + 1, key.end()})).first->second;
    }
    // How many new anchors a key names, -1: the key is damaged.
    static int32_t count_anchors(const vector<int32_t>& key) {
        int32_t out = 0;
        for (size_t i = 1; i < key.size();) {
            const int64_t n = key[i] < 0 ? 1 : 2 * int64_t(key[i]);
            if (int64_t(key.size() - ++i) < n) return -1;
            for (int64_t k = 0; k < n; ++k, ++i) if (n == 1 || k % 2) out = std::max(out, key[i] + 1);
        }
        return out;
    }
    int32_t n_anchors(int32_t d) const { return states_[d].n_anchors; }
    uint32_t reads(int32_t d) const { return states_[d].reads; }  // a bit for every anchor that reductions wait for
    // "longest", ahead of time: every context that can follow a shift result, whatever lies below.
    //
    // What the reductions add depends on the pending ones and on what is read, not on the tops found so far; so it is
    // computed once per (pending, last state read), as the least fixed point of
    //     added(P, last) = { tops(c) + a : c can lie under last, a in added(P after c, c) }
    // with contexts as interned terminal sets.  below(s) lists the states that can lie under s.
    class ContextFlow {
      public:
        ContextFlow(ParserDwa& dwa, const vector<vector<int32_t>>& below, std::function<int32_t(int32_t, int32_t)> unite)
            : dwa_(dwa), below_(below), unite_(std::move(unite)) {}

        std::set<int32_t> after(int32_t raw) {
            Place first{0, 0, -1, {}, {}};
            dwa_.close({0, raw}, first);
            const int32_t here = context(first);
            if (first.pending.empty()) return {here};
            const int32_t n = node(first, raw);
            solve();
            std::set<int32_t> out;
            for (int32_t a : nodes_[n].added) out.insert(join(here, a));
            return out;
        }

      private:
        struct Flow { int32_t context, parent; };
        struct FlowNode {
            Place pending;
            int32_t last;
            std::set<int32_t> added;  // contexts; -1: nothing
            vector<Flow> parents;
        };
        ParserDwa& dwa_;
        const vector<vector<int32_t>>& below_;
        std::function<int32_t(int32_t, int32_t)> unite_;
        std::deque<FlowNode> nodes_;
        std::map<std::pair<vector<int32_t>, int32_t>, int32_t> ids_;
        std::map<std::pair<int32_t, int32_t>, int32_t> joined_;
        vector<int32_t> fresh_;
        vector<std::pair<int32_t, int32_t>> news_;  // (node, context added)

        int32_t join(int32_t a, int32_t b) {
            if (a < 0 || b < 0 || a == b) return std::max(a, b);
            auto got = joined_.emplace(std::make_pair(std::min(a, b), std::max(a, b)), -1);
            if (got.second) got.first->second = unite_(a, b);
            return got.first->second;
        }
        int32_t context(const Place& p) {
            vector<int32_t> tops;
            for (const Word& w : p.words) tops.push_back(w.back());
            return tops.empty() ? -1 : dwa_.context_of(tops.data(), int32_t(tops.size()));
        }
        int32_t node(const Place& p, int32_t last) {
            Place bare{0, 0, -1, {}, p.pending};
            auto got = ids_.emplace(std::make_pair(encode(bare), last), int32_t(nodes_.size()));
            if (got.second) {
                fresh_.push_back(int32_t(nodes_.size()));
                nodes_.push_back({std::move(bare), last, {}, {}});
            }
            return got.first->second;
        }
        void add(int32_t n, int32_t context) {
            if (nodes_[n].added.insert(context).second) news_.push_back({n, context});
        }
        void solve() {
            while (!fresh_.empty()) {
                const int32_t n = fresh_.back();
                fresh_.pop_back();
                const Place from = nodes_[n].pending;
                const int32_t last = nodes_[n].last;
                if (last == 0) add(n, -1);
                for (int32_t c : below_[last]) {
                    if (!dwa_.fits(from, c)) continue;
                    Place p{0, 0, -1, {}, {}};
                    for (const Need& x : from.pending) {
                        if (x.depth > 1) p.pending.push_back({x.symbol, x.depth - 1, 0});
                        else dwa_.close({0, c, dwa_.lr_.go(c, x.symbol)}, p);
                    }
                    const int32_t here = context(p);
                    if (p.pending.empty()) { add(n, here); continue; }
                    const int32_t to = node(p, c);
                    nodes_[to].parents.push_back({here, n});
                    const std::set<int32_t> known = nodes_[to].added;
                    for (int32_t a : known) add(n, join(here, a));
                }
            }
            while (!news_.empty()) {
                auto [n, context] = news_.back();
                news_.pop_back();
                for (size_t i = 0; i < nodes_[n].parents.size(); ++i) {
                    const Flow f = nodes_[n].parents[i];
                    add(f.parent, join(f.context, context));
                }
            }
        }
    };

    // Can c lie where machine state d reads next?  In an LR(0) stack every base has a goto for what is reduced to it.
    bool possible(int32_t d, int32_t c) const {
        if (states_[d].start) return true;
        for (const Place& p : decode(states_[d].places)) if (!fits(p, c)) return false;
        return true;
    }
    int64_t work() const { return work_; }  // steps taken so far, a measure of time that does not vary
    size_t n_states() const { return states_.size(); }
    size_t n_transitions() const { return transitions_.size() + wide_.size(); }
    const std::unordered_map<uint64_t, Transition>& transitions() const { return transitions_; }
    const vector<int32_t>& starts() const { return starts_; }
    int32_t universe_of(int32_t d) const { return states_[d].universe; }

    const WideTransitions& wide_transitions() const { return wide_; }

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
        add_state(universe, is_start, std::move(places));
    }
    void restore_transition(int32_t d, int32_t c, Transition t) { transitions_.emplace(key(d, c), t); }
    void restore_transition(vector<int32_t> key, WideTransition t) { wide_.emplace(std::move(key), std::move(t)); }
    bool is_start(int32_t d) const { return states_[d].start; }
    const vector<int32_t>& places(int32_t d) const { return states_[d].places; }

  private:
    struct State {
        int32_t universe;
        bool start;
        int32_t n_anchors;
        uint32_t reads;
        vector<int32_t> places;
    };
    const LrTables& lr_;
    Lexer& lexer_;
    int64_t work_ = 0;
    std::deque<State> states_;
    vector<int32_t> starts_;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    std::unordered_map<uint64_t, Transition> transitions_;
    WideTransitions wide_;

    // While one step is computed:
    const Universe* universe_ = nullptr;
    std::set<vector<int32_t>> open_, seen_;  // encoded places: left open; already lexed
    vector<int32_t> slots_;

    static uint64_t key(int32_t d, int32_t c) { return uint64_t(uint32_t(d)) << 32 | uint32_t(c); }

    void add_state(int32_t universe, bool is_start, vector<int32_t> places) {
        State s{universe, is_start, 1, is_start, {}};
        for (const Place& p : decode(places)) {
            for (const Word& w : p.words) s.n_anchors = std::max(s.n_anchors, w[0] + 1);
            for (const Need& n : p.pending) {
                s.n_anchors = std::max(s.n_anchors, n.anchor + 1);
                s.reads |= 1u << n.anchor;
            }
        }
        s.places = std::move(places);
        states_.push_back(std::move(s));
    }

    WideTransition compute(int32_t d, const vector<int32_t>& reading) {
        const int32_t universe = states_[d].universe;
        universe_ = &universes[universe];
        open_.clear();
        slots_.clear();
        seen_.clear();
        struct Letter { int32_t state, anchor; };
        vector<vector<Letter>> letters;
        vector<int32_t> unread;  // old anchor -> new one, or kBottom if it is read
        for (size_t i = 0; i < reading.size();) {
            letters.emplace_back();
            unread.push_back(reading[i] < 0 ? reading[i + 1] : kBottom);
            if (reading[i] < 0) { i += 2; continue; }
            int32_t n = reading[i++];
            for (; n; --n, i += 2) letters.back().push_back({reading[i], reading[i + 1]});
        }
        if (states_[d].start) {
            Place p{0, 0, universe_->term, {}, {}};
            for (const Letter& x : letters[0]) {
                if (lexer_.terms.longest) close({x.anchor, x.state}, p);
                else p.words.push_back({x.anchor, x.state});
            }
            settle(std::move(p));
        } else {
            for (const Place& from : decode(states_[d].places)) {
                Place p{from.node, from.watch, from.term, {}, {}};
                for (const Word& w : from.words) {
                    if (w[0] < 0) { add(p.words, w); continue; }
                    Word to = w;
                    if ((to[0] = unread[w[0]]) >= 0) add(p.words, to);
                    else for (const Letter& x : letters[w[0]]) {
                        to.assign(1, x.anchor);
                        if (x.state != kBottom) to.push_back(x.state);
                        to.insert(to.end(), w.begin() + 1, w.end());
                        add(p.words, to);
                    }
                }
                for (const Need& need : from.pending) {
                    if (unread[need.anchor] >= 0) { wait(p, {need.symbol, need.depth, unread[need.anchor]}); continue; }
                    for (const Letter& x : letters[need.anchor]) {
                        if (x.state == kBottom) continue;
                        if (need.depth > 1) { wait(p, {need.symbol, need.depth - 1, x.anchor}); continue; }
                        const int32_t g = lr_.go(x.state, need.symbol);
                        if (g >= 0) close({x.anchor, x.state, g}, p);
                    }
                }
                settle(std::move(p));
            }
        }
        std::sort(slots_.begin(), slots_.end());
        slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
        WideTransition out;
        out.weight = weights(slots_);
        out.next = -1;
        if (open_.empty()) return out;
        vector<int32_t> places{universe};
        out.keep = number_anchors();
        for (const vector<int32_t>& p : open_) places.insert(places.end(), p.begin(), p.end());
        auto got = ids_.emplace(places, int32_t(states_.size()));
        if (got.second) add_state(universe, false, {places.begin() + 1, places.end()});
        out.next = got.first->second;
        return out;
    }
    // Number the anchors that open places need 0, 1, ...; returns what they were.
    vector<int32_t> number_anchors() {
        vector<Place> places;
        vector<int32_t> used;
        for (const vector<int32_t>& code : open_) {
            places.push_back(std::move(decode(code)[0]));
            for (const Word& w : places.back().words) if (w[0] >= 0) used.push_back(w[0]);
            for (const Need& n : places.back().pending) used.push_back(n.anchor);
        }
        std::sort(used.begin(), used.end());
        used.erase(std::unique(used.begin(), used.end()), used.end());
        if (used.back() + 1 == int32_t(used.size())) return used;
        open_.clear();
        for (Place& p : places) {
            auto number = [&](int32_t& a) { if (a >= 0) a = int32_t(std::lower_bound(used.begin(), used.end(), a) - used.begin()); };
            for (Word& w : p.words) number(w[0]);
            for (Need& n : p.pending) number(n.anchor);
            leave_open(p);
        }
        return used;
    }

    bool fits(const Place& p, int32_t c) const {
        for (const Need& n : p.pending) if (n.depth == 1 && lr_.go(c, n.symbol) < 0) return false;
        return true;
    }
    static void add(vector<Word>& words, const Word& w) {
        if (std::find(words.begin(), words.end(), w) == words.end()) words.push_back(w);
    }
    static void wait(Place& p, Need need) {
        for (const Need& n : p.pending) if (n.symbol == need.symbol && n.depth == need.depth && n.anchor == need.anchor) return;
        p.pending.push_back(need);
    }

    // Apply all reductions to a stack: what can shift joins p.words, what needs more states joins p.pending.
    void close(Word w, Place& p) {
        work_ += int64_t(w.size()) - 1;
        const int32_t top = w.back();
        if (lr_.n_shifts[top]) add(p.words, w);
        for (int32_t d = lr_.done_indptr[top]; d < lr_.done_indptr[top + 1]; ++d) {
            const int32_t n = lr_.done[d], left = int32_t(w.size()) - 3;
            if (left <= 0) {
                if (w[0] >= 0) wait(p, {n, 1 - left, w[0]});
                continue;
            }
            int32_t g = lr_.go(w[left], n);
            if (g < 0) continue;
            Word to(w.begin(), w.begin() + left + 1);
            to.push_back(g);
            close(std::move(to), p);
        }
    }

    void settle(Place p) {
        if (p.words.empty() && p.pending.empty()) return;
        if (!lexer_.terms.longest && p.term < 0) {
            // Every top for itself; every pending reduction for itself.
            for (const Need& need : p.pending) leave_open({p.node, p.watch, -1, {}, {need}});
            for (Word& w : p.words) lex({p.node, p.watch, -1, {std::move(w)}, {}});
            return;
        }
        if (!p.pending.empty()) { leave_open(std::move(p)); return; }
        if (p.term >= 0) shift(p, p.term, p.node, 0);
        else lex(p);
    }

    // Shift t on every top that takes it, and go on at tail node `node`.
    void shift(const Place& from, int32_t t, int32_t node, int32_t watch) {
        Place p{node, watch, -1, {}, {}};
        if (lexer_.terms.ignore[t]) p.words = from.words;
        else for (const Word& w : from.words) {
            int32_t q = lr_.go(w.back(), t);
            if (q < 0) continue;
            Word to = w;
            to.push_back(q);
            close(std::move(to), p);
        }
        settle(std::move(p));
    }

    void lex(const Place& p) {
        if (!seen_.insert(encode(p)).second) return;
        vector<int32_t> tops;
        for (const Word& w : p.words) tops.push_back(w.back());
        lex_tail(p, lexer_.root(context_of(tops.data(), int32_t(tops.size())), p.watch), p.node);
    }
    void lex_tail(const Place& p, int32_t y, int32_t node) {
        const Trie& tails = universe_->tails();
        lexer_.expand(y);
        for (int32_t c = tails.first_child[node]; c < tails.first_child[node + 1]; ++c) {
            ++work_;
            int32_t to = lexer_.states[y].step(tails.byte[c]);
            if (to < 0) continue;
            if (tails.own[c]) slots_.push_back(tails.slot_lo[c]);
            if (tails.first_child[c] == tails.first_child[c + 1]) continue;
            lexer_.expand(to);
            if (lexer_.decided(to, tails.below[c])) {
                for (int32_t s = tails.slot_lo[c] + tails.own[c]; s < tails.slot_hi[c]; ++s) slots_.push_back(s);
                continue;
            }
            for (size_t k = 0; k < lexer_.states[to].accepts.size(); ++k) {
                Accept a = lexer_.states[to].accepts[k];
                shift(p, a.term, c, a.watch);
            }
            lex_tail(p, to, c);
        }
    }

    void leave_open(const Place& p) { open_.insert(encode(p)); }

    static vector<int32_t> encode(const Place& p) {
        vector<Word> words = p.words;
        vector<Need> pending = p.pending;
        std::sort(words.begin(), words.end());
        std::sort(pending.begin(), pending.end(), [](const Need& a, const Need& b) {
            return std::tie(a.symbol, a.depth, a.anchor) < std::tie(b.symbol, b.depth, b.anchor);
        });
        vector<int32_t> out{p.node, p.watch, p.term, int32_t(words.size()), int32_t(pending.size())};
        for (const Word& w : words) {
            out.push_back(int32_t(w.size()));
            out.insert(out.end(), w.begin(), w.end());
        }
        for (const Need& n : pending) { out.push_back(n.symbol); out.push_back(n.depth); out.push_back(n.anchor); }
        return out;
    }
    static vector<Place> decode(const vector<int32_t>& v) {
        vector<Place> out;
        for (size_t i = 0; i < v.size();) {
            Place p{v[i], v[i + 1], v[i + 2], {}, {}};
            int32_t n_words = v[i + 3], n_pending = v[i + 4];
            i += 5;
            for (; n_words; --n_words) {
                p.words.emplace_back(v.begin() + int64_t(i) + 1, v.begin() + int64_t(i) + 1 + v[i]);
                i += 1 + size_t(v[i]);
            }
            for (; n_pending; --n_pending, i += 3) p.pending.push_back({v[i], v[i + 1], v[i + 2]});
            out.push_back(std::move(p));
        }
        return out;
    }
};

}  // namespace wfsa
