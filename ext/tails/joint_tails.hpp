// Which tails of a finish are taken under "longest", where all stacks of a configuration lex together.
//
// What a tail may begin with depends on the tops of all stacks after the finished terminal: on a set of LR states, and
// not on how the stacks branch below.  So the machine reads sets of tops, and the stacks themselves are moved by the
// same shifts and reductions that a commit uses (engine.hpp):
//
//   state       tails of one universe, each behind what whole terminals have consumed of it, with the longer candidates
//               that may not match: a set of (tail node, watch set)
//   transition  read the set of tops: the tails decided by it, and cuts, each a terminal that ends inside tails and the
//               state that reads the tops after it
//
// A cut needs no stack when the tops after it are known without: if no shift result completes a rule, or if what the
// shift results can take is all that can ever follow the terminal and all tails turn out taken or dead.  Most tails
// end inside their first or second terminal, and are decided by one set of tops.
//
// There are few sets of tops (about as many as contexts), so nearly all transitions are known ahead of time.
#pragma once
#include "tails/parser_dwa.hpp"

namespace wfsa {

class JointTails {
  public:
    struct Cut {
        int32_t term;
        int32_t from;  // the stacks to shift on: those after an earlier cut of the list, or -1: those being read
        int32_t next;  // machine state that reads the tops, or -1: known, the stacks are for later cuts
    };
    struct Transition {
        uint64_t key = kFree;  // machine state, number of the set of tops
        int32_t weight = 0;    // tails decided here: number in the weights of the parser DWA
        int32_t cut_lo = 0, cut_hi = 0;  // into `cuts`
    };
    vector<Cut> cuts;
    Interner states;  // universe, then the node and watch set of each
    Interner tops;    // ascending LR states
    vector<vector<int32_t>> follow;  // terminal -> terminals that can ever follow it

    JointTails(const LrTables& lr, Lexer& lexer, const std::deque<Universe>& universes, Interner& weights)
        : lr_(lr), lexer_(lexer), universes_(universes), weights_(weights) {}
    // Contexts of sets of LR states, as the engine numbers them.
    std::function<int32_t(const int32_t*, int32_t)> context_of;

    // Where reading begins: with the tops after the terminal that the universe follows, or with those before it.
    int32_t start(int32_t universe, bool before) { return state(before ? vector<int32_t>{universe} : vector<int32_t>{universe, 0, 0}); }
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
        const Transition& x = table_[slot(key(d, t))];
        return x.key == kFree ? nullptr : &x;
    }
    Transition step(int32_t d, int32_t t) {
        if (const Transition* got = find(d, t)) return *got;
        const vector<int32_t>& code = states[d];
        universe_ = code[0];
        slots_.clear();
        cuts_.clear();
        Nodes nodes;
        for (size_t i = 1; i < code.size(); i += 2) nodes.insert({code[i], code[i + 1]});
        const int32_t term = universes_[universe_].term;
        if (!nodes.empty()) read(nodes, tops[t], -1);
        else if (lexer_.terms.ignore[term]) read({{0, 0}}, tops[t], -1);
        else cut(term, {{0, 0}}, tops[t], -1);
        std::sort(slots_.begin(), slots_.end());
        slots_.erase(std::unique(slots_.begin(), slots_.end()), slots_.end());
        return add(d, t, weights_.intern(slots_), cuts_);
    }
    size_t n_states() const { return size_t(states.size()); }
    size_t n_transitions() const { return n_transitions_; }
    int64_t work() const { return work_; }  // steps taken so far, a measure of time that does not vary
    vector<Transition> transitions() const {  // by ascending keys
        vector<Transition> out;
        for (const Transition& x : table_) if (x.key != kFree) out.push_back(x);
        std::sort(out.begin(), out.end(), [](const Transition& a, const Transition& b) { return a.key < b.key; });
        return out;
    }
    Transition add(int32_t d, int32_t t, int32_t weight, const vector<Cut>& more) {
        if (++n_transitions_ * 2 > table_.size()) {
            vector<Transition> old(table_.size() * 2);
            old.swap(table_);
            for (const Transition& x : old) if (x.key != kFree) table_[slot(x.key)] = x;
        }
        const int32_t lo = int32_t(cuts.size());
        cuts.insert(cuts.end(), more.begin(), more.end());
        return table_[slot(key(d, t))] = {key(d, t), weight, lo, int32_t(cuts.size())};
    }

  private:
    typedef std::set<std::pair<int32_t, int32_t>> Nodes;  // (tail node, watch set)
    const LrTables& lr_;
    Lexer& lexer_;
    const std::deque<Universe>& universes_;
    Interner& weights_;
    static constexpr uint64_t kFree = UINT64_MAX;
    vector<Transition> table_ = vector<Transition>(64);  // open addressing: masks ask it a lot
    size_t n_transitions_ = 0;
    int64_t work_ = 0;
    vector<int32_t> starts_[2];  // by universe
    int32_t universe_ = 0;  // while one step is computed
    vector<int32_t> slots_;
    vector<Cut> cuts_;

    static uint64_t key(int32_t d, int32_t t) { return uint64_t(uint32_t(d)) << 32 | uint32_t(t); }

    size_t slot(uint64_t key) const {
        uint64_t h = key * 0x9E3779B97F4A7C15ull;
        size_t k = (h ^ h >> 32) & (table_.size() - 1);
        while (table_[k].key != key && table_[k].key != kFree) k = (k + 1) & (table_.size() - 1);
        return k;
    }
    vector<int32_t> shift(const vector<int32_t>& tops, int32_t term) const {
        vector<int32_t> out;
        for (int32_t q : tops) {
            const int32_t to = lr_.go(q, term);
            if (to >= 0) out.push_back(to);
        }
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }
    std::map<int32_t, Nodes> lex(const Nodes& nodes, const vector<int32_t>& tops) {
        std::map<int32_t, Nodes> cuts;  // terminal -> what is left of the tails
        const int32_t context = context_of(tops.data(), int32_t(tops.size()));
        vector<std::pair<int32_t, int32_t>> todo(nodes.begin(), nodes.end());
        Nodes seen = nodes;
        for (size_t i = 0; i < todo.size(); ++i)
            lex(lexer_.root(context, todo[i].second), todo[i].first, [&](const Accept& a, int32_t node) {
                if (!lexer_.terms.ignore[a.term]) cuts[a.term].insert({node, a.watch});
                else if (seen.insert({node, a.watch}).second) todo.push_back({node, a.watch});
            });
        return cuts;
    }
    template <class F> void lex(int32_t y, int32_t node, const F& cut) {
        const Trie& tails = universes_[universe_].tails();
        lexer_.expand(y);
        for (int32_t c = tails.first_child[node]; c < tails.first_child[node + 1]; ++c) {
            ++work_;
            const Edge* e = lexer_.states[y].edge(tails.byte[c]);
            if (!e) continue;
            const int32_t to = e->target;
            if (tails.own[c]) slots_.push_back(tails.slot_lo[c]);
            if (tails.first_child[c] == tails.first_child[c + 1]) continue;
            lexer_.expand(to);
            if (lexer_.decided(to, tails.below[c])) {
                for (int32_t s = tails.slot_lo[c] + tails.own[c]; s < tails.slot_hi[c]; ++s) slots_.push_back(s);
                continue;
            }
            for (const Accept& a : lexer_.states[to].accepts) cut(a, c);
            lex(to, c, cut);
        }
    }

    // The tops of all stacks after cut `from` are known: lex, and go on behind every cut.
    void read(const Nodes& nodes, const vector<int32_t>& tops, int32_t from) {
        for (const auto& [term, rest] : lex(nodes, tops)) cut(term, rest, tops, from);
    }
    void cut(int32_t term, const Nodes& rest, const vector<int32_t>& tops, int32_t from) {
        const vector<int32_t> to = shift(tops, term);
        if (to.empty()) return;
        const size_t n = slots_.size(), at = cuts_.size();
        bool known = true;
        for (int32_t q : to) known &= !lr_.completes(q);
        if (!known && certain(rest, to, term)) return;
        if (!known) slots_.resize(n);
        cuts_.push_back({term, from, -1});
        if (known) {
            read(rest, to, int32_t(at));
            if (cuts_.size() == at + 1) cuts_.pop_back();
            return;
        }
        vector<int32_t> code{universe_};
        for (auto [node, watch] : rest) { code.push_back(node); code.push_back(watch); }
        cuts_[at].next = state(code);
    }
    // Some of the tops after `term` are known, and they take all that can follow it, so that more stacks change nothing
    // for the lexer.  False: some tail depends on the others.
    bool certain(const Nodes& nodes, const vector<int32_t>& tops, int32_t term) {
        const vector<int32_t>& takes = lexer_.contexts[context_of(tops.data(), int32_t(tops.size()))];
        if (!std::includes(takes.begin(), takes.end(), follow[term].begin(), follow[term].end())) return false;
        for (const auto& [t, rest] : lex(nodes, tops)) {
            const vector<int32_t> to = shift(tops, t);
            if (to.empty() || !certain(rest, to, t)) return false;
        }
        return true;
    }
};

}  // namespace wfsa
