// Which tails of a finish are taken under "longest", where all stacks of a configuration lex together.
//
// What a tail may begin with depends on the tops of all stacks after the finished terminal: on a set of LR states, and
// not on how the stacks branch below.  So the machine reads sets of tops, and the stacks themselves are moved by the
// same shifts and reductions that a commit uses (longest.hpp):
//
//   state       tails of one universe, each behind what whole terminals have consumed of it, with the longer candidates
//               that may not match: a set of (tail node, watch set)
//   transition  read the set of tops: the tails decided by it, and cuts, each a terminal that ends inside tails and the
//               state that reads the tops after it
//
// A cut needs no stack when the tops after it are known without: if every rule that a shift result completes leads to
// one state, whatever lies below (returns.hpp), or if what the shift results can take is all that can ever follow the
// terminal and all tails turn out taken or dead.  Most tails end inside their first or second terminal, and are decided
// by one set of tops; a row of sixty minus signs is as many cuts that come back to the stacks that they began on.
//
// Terminals that lead to the same stacks are followed once, and so is what was decided without a cut: a tail of a
// hundred blanks that two terminals take has 2^100 ways through them.
//
// There are few sets of tops (about as many as contexts), so nearly all transitions are known ahead of time.
#pragma once
#include <set>
#include <unordered_set>

#include "containers/growth_lock.hpp"
#include "containers/heap_bytes.hpp"
#include "containers/open_table.hpp"
#include "errors.hpp"
#include "parser/contexts.hpp"
#include "parser/returns.hpp"
#include "tails/universe.hpp"

namespace wfsa {

class JointTails {
  public:
    struct Cut {
        int32_t term;
        int32_t from;  // the stacks to shift on: those after an earlier cut of the list, or -1: those being read
        int32_t next;  // machine state that reads the tops, or -1: known, the stacks are for later cuts
    };
    struct Transition {
        int32_t weight = 0;  // tails decided here: number in the weights of the parser DWA
        int32_t cut_lo = 0, cut_hi = 0;  // into `cuts`
    };
    vector<Cut> cuts;
    Interner states;  // universe, then the node and watch set of each
    Interner tops;    // ascending LR states
    vector<vector<int32_t>> follow;  // terminal -> terminals that can ever follow it

    JointTails(const LrTables& lr, Contexts& contexts, Lexer& lexer, Staying& staying,
               const StableVector<Universe>& universes, Interner& weights)
        : lr_(lr), returns_(lr), contexts_(contexts), lexer_(lexer), staying_(staying), universes_(universes), weights_(weights) {}

    // Where reading begins: with the tops after the terminal that the universe follows, or with those before it.
    int32_t start(int32_t universe, bool before) {
        return state(before ? vector<int32_t>{universe} : vector<int32_t>{universe, 0, 0});
    }
    int32_t find_start(int32_t universe, bool before) const {
        const vector<int32_t>& known = starts_[before];
        return universe < int32_t(known.size()) ? known[size_t(universe)] : -1;
    }
    int32_t state(const vector<int32_t>& code) {
        const int32_t d = states.intern(code);
        if (code.size() == 1 || (code.size() == 3 && code[1] == 0 && code[2] == 0)) {
            vector<int32_t>& known = starts_[code.size() == 1];
            if (size_t(code[0]) >= known.size()) known.resize(size_t(code[0]) + 1, -1);
            known[size_t(code[0])] = d;
        }
        return d;
    }
    const Transition* find(int32_t d, int32_t t) const {
        return table_.find(pair_key(d, t));
    }
    const Transition* step(int32_t d, int32_t t) {  // good until the next step
        if (const Transition* got = find(d, t)) return got;
        const List code = states[d];
        universe_ = code[0];
        slots_.clear();
        cuts_.clear();
        decided_.clear();
        most_work_ = work_ + kMostWork;
        Nodes nodes;
        for (size_t i = 1; i < code.size(); i += 2) nodes.insert({code[i], code[i + 1]});
        const int32_t term = universes_[universe_].term;
        if (!nodes.empty()) read(nodes, tops[t], -1, 0);
        else if (lexer_.terms.ignore[term]) read({{0, 0}}, tops[t], -1, 0);
        else cut(term, {{0, 0}}, tops[t], -1, 0);
        sort_unique(slots_);
        return add(d, t, weights_.intern(slots_), cuts_);
    }
    size_t n_states() const { return size_t(states.size()); }
    size_t n_transitions() const { return table_.size(); }
    size_t heap_bytes() const {
        return states.heap_bytes() + tops.heap_bytes() + table_.heap_bytes() + wfsa::heap_bytes(cuts) +
               wfsa::heap_bytes(follow) + wfsa::heap_bytes(starts_[0]) + wfsa::heap_bytes(starts_[1]);
    }
    int64_t work() const { return work_; }  // steps taken so far, a measure of time that does not vary
    // By ascending (machine state, number of the set of tops).
    vector<std::pair<uint64_t, Transition>> transitions() const {
        vector<std::pair<uint64_t, Transition>> out;
        table_.each([&](uint64_t key, const Transition& x) { out.push_back({key, x}); });
        std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
        return out;
    }
    const Transition* add(int32_t d, int32_t t, int32_t weight, const vector<Cut>& more) {
        const int32_t lo = int32_t(cuts.size());
        cuts.insert(cuts.end(), more.begin(), more.end());
        Transition& out = table_.insert(pair_key(d, t)).first;
        out.weight = weight;
        out.cut_lo = lo;
        out.cut_hi = int32_t(cuts.size());
        return &out;
    }

  private:
    typedef std::set<std::pair<int32_t, int32_t>> Nodes;  // (tail node, watch set)
    static constexpr int64_t kMostWork = 1 << 22;  // steps of one transition: some hundred milliseconds
    static constexpr int32_t kMaxDepth = 256;  // terminals of a tail followed in one step; real tokens have a tenth of it
    const LrTables& lr_;
    Returns returns_;
    Contexts& contexts_;
    Lexer& lexer_;
    Staying& staying_;
    const StableVector<Universe>& universes_;
    Interner& weights_;
    OpenTable<uint64_t, Transition, PairHash> table_;  // (machine state, number of the set of tops); masks ask it a lot
    int64_t work_ = 0;
    vector<int32_t> starts_[2];  // by universe
    struct Level { int32_t child, end, y; };  // children of a tail node that are still to be entered from lexer state y
    int32_t universe_ = 0;  // while one step is computed
    vector<Level> levels_;
    vector<int32_t> slots_;
    vector<Cut> cuts_;
    std::unordered_set<vector<int32_t>, VectorHash> seen_;     // what `certain` was asked since a cut
    std::unordered_set<vector<int32_t>, VectorHash> decided_;  // what was read, and needed no cut
    int64_t most_work_ = 0;                                    // when it ends

    vector<int32_t> shift(List tops, int32_t term) const {
        vector<int32_t> out;
        for (int32_t q : tops) {
            const int32_t to = lr_.go(q, term);
            if (to >= 0) out.push_back(to);
        }
        sort_unique(out);
        return out;
    }
    std::map<int32_t, Nodes> lex(const Nodes& nodes, List tops) {
        std::map<int32_t, Nodes> cuts;  // terminal -> what is left of the tails
        const int32_t context = contexts_.make(tops);
        vector<std::pair<int32_t, int32_t>> todo(nodes.begin(), nodes.end());
        Nodes seen = nodes;
        for (size_t i = 0; i < todo.size(); ++i)
            lex(lexer_.root(context, todo[i].second), todo[i].first, [&](const Accept& a, int32_t node) {
                if (!lexer_.terms.ignore[a.term]) cuts[a.term].insert({node, a.watch});
                else if (seen.insert({node, a.watch}).second) todo.push_back({node, a.watch});
            });
        return cuts;
    }
    // The tails behind a node, from lexer state y; `cut(accept, node)` where a terminal may end.
    template <class F> void lex(int32_t y, int32_t node, const F& cut) {
        const Trie& tails = universes_[size_t(universe_)].tails();
        levels_.clear();  // as deep as a token is long
        enter(node, y);
        while (!levels_.empty()) {
            Level& level = levels_.back();
            if (level.child == level.end) { levels_.pop_back(); continue; }
            const int32_t c = level.child++;
            if (++work_ % 64 == 0) {
                GrowthLock::let_read();
                if (work_ > most_work_) throw LimitExceeded("a token can be cut into terminals in too many ways");
            }
            const Edge* e = lexer_.states[size_t(level.y)].edge(tails.byte[size_t(c)]);
            if (!e) continue;
            const int32_t to = e->target;
            if (tails[c].own) slots_.push_back(tails[c].slot_lo);
            if (tails[c].first_child == tails[c].end_child) continue;
            lexer_.expand(to);
            if (staying_.stays(to, tails[c])) {
                for (int32_t s = tails[c].slot_lo + tails[c].own; s < tails[c].slot_hi; ++s)
                    slots_.push_back(s);
                continue;
            }
            for (const Accept& a : lexer_.states[size_t(to)].accepts) cut(a, c);
            enter(c, to);
        }
    }
    void enter(int32_t node, int32_t y) {
        const Trie& tails = universes_[size_t(universe_)].tails();
        lexer_.expand(y);
        levels_.push_back({tails[node].first_child, tails[node].end_child, y});
    }

    // The tops of all stacks after cut `from` are known: lex, and go on behind every cut. `depth`: terminals so far;
    // past kMaxDepth stacks are moved instead, so that no token is too long for the C stack.
    void read(const Nodes& nodes, List tops, int32_t from, int32_t depth) {
        const vector<int32_t> asked = code_of(nodes, tops, -1);
        if (decided_.count(asked)) return;
        const size_t n = cuts_.size();
        const std::map<int32_t, Nodes> cuts = lex(nodes, tops);
        for (auto at = cuts.begin(); at != cuts.end(); ++at) {
            const auto alike = [&](const auto& other) {
                return other.second == at->second && shift_alike(tops, other.first, at->first);
            };
            if (std::none_of(cuts.begin(), at, alike)) cut(at->first, at->second, tops, from, depth + 1);
        }
        if (cuts_.size() == n) decided_.insert(asked);
    }
    static vector<int32_t> code_of(const Nodes& nodes, List tops, int32_t term) {
        vector<int32_t> out{term, int32_t(tops.size())};
        out.insert(out.end(), tops.begin(), tops.end());
        for (auto [node, watch] : nodes) { out.push_back(node); out.push_back(watch); }
        return out;
    }
    // Do two terminals lead to the same stacks?
    bool shift_alike(List tops, int32_t a, int32_t b) const {
        return std::all_of(tops.begin(), tops.end(), [&](int32_t q) { return lr_.go(q, a) == lr_.go(q, b); });
    }
    void cut(int32_t term, const Nodes& rest, List tops, int32_t from, int32_t depth) {
        const vector<int32_t> to = shift(tops, term);
        if (to.empty()) return;
        const size_t n = slots_.size(), at = cuts_.size();
        const Returns::Tops after = returns_.after(tops, term);
        const bool known = after.known && depth < kMaxDepth;
        if (known && after.tops.empty()) return;
        if (known && after.same) return read(rest, tops, from, depth);
        seen_.clear();
        if (!known && certain(rest, to, term, depth)) return;
        if (!known) slots_.resize(n);
        cuts_.push_back({term, from, -1});
        if (known) {
            read(rest, after.tops, int32_t(at), depth);
            if (cuts_.size() == at + 1) cuts_.pop_back();
            return;
        }
        vector<int32_t> code{universe_};
        for (auto [node, watch] : rest) { code.push_back(node); code.push_back(watch); }
        cuts_[at].next = state(code);
    }
    // Some of the tops after `term` are known, and they take all that can follow it, so that more stacks change nothing
    // for the lexer.  False: some tail depends on the others.  What was asked before, since a cut, is not asked again.
    bool certain(const Nodes& nodes, List tops, int32_t term, int32_t depth) {
        if (depth >= kMaxDepth) return false;
        if (!seen_.insert(code_of(nodes, tops, term)).second) return true;
        const List takes = lexer_.contexts[contexts_.make(tops)];
        const vector<int32_t>& all = follow[size_t(term)];
        if (!std::includes(takes.begin(), takes.end(), all.begin(), all.end())) return false;
        for (const auto& [t, rest] : lex(nodes, tops)) {
            const vector<int32_t> to = shift(tops, t);
            if (to.empty() || !certain(rest, to, t, depth + 1)) return false;
        }
        return true;
    }
};

}  // namespace wfsa
