// The LR(0) automaton over binary rules, with transparent unit rules.
//
// Why LR(0), without lookahead: a GLR stack that reduces as soon as it can carries every reduced form as a top of
// its own, so what the parser can shift is read off the tops' states and never overestimated; lookahead sets would
// only repeat, per state, what the stack already knows, and they cost most of an LALR table's construction.
//
// Why transparent units: for a unit rule B -> A, both gotos start from the same state c.  Let goto(c, A) contain the
// items of goto(c, B) and the reduction need not happen at all; chains of precedence levels vanish (Pager 1977 removes
// unit reductions from a finished table; here it is part of the construction, because semantics are not needed).
//
// A state is a set of
//   halves     (N, Y): "N -> X . Y" for any X; the first symbol no longer matters once it is on the stack
//   completes  N:      "N -> X Y ." was just completed: pop two states, go to N from the state below
// So every reduction pops exactly two, and the state below the popped ones is the base.
//
// State 0 is the start.  Symbols: terminals below n_terms, then nonterminals.
//
//   goto_indptr[s] .. goto_indptr[s+1]     into goto_symbol (ascending), goto_target; terminals come first
//   n_shifts[s]                            how many of them are terminals
//   done_indptr[s] .. done_indptr[s+1]     into done: completed nonterminal symbols
//
// States from `unordered.first` on are pairs of one of these and a set of members (unordered.hpp).
//
// Source: DeRemer & Knuth's LR(0) construction; Tomita 1986 for carrying conflicts as data.
#pragma once
#include "parser/normalise.hpp"
#include "parser/unordered.hpp"

namespace wfsa {

struct LrTables {
    vector<int32_t> goto_indptr{0}, goto_symbol, goto_target, n_shifts, done_indptr{0}, done;
    mutable UnorderedStates unordered;
    int32_t n_states() const { return int32_t(n_shifts.size()); }  // without those with a set

    int32_t go(int32_t s, int32_t symbol) const {
        if (s < unordered.first) return base_go(s, symbol);
        return unordered.go(s, symbol, [this](int32_t base, int32_t x) { return base_go(base, x); });
    }
    // Does s shift terminals?  Is a rule complete in it, and which?
    bool shifts(int32_t s) const { return s >= unordered.first || n_shifts[s]; }
    bool completes(int32_t s) const { return s < unordered.first && done_indptr[s] < done_indptr[s + 1]; }
    const int32_t* done_begin(int32_t s) const { return done.data() + (completes(s) ? done_indptr[s] : 0); }
    const int32_t* done_end(int32_t s) const { return done.data() + (completes(s) ? done_indptr[s + 1] : 0); }
    // Append the terminals that s shifts.
    void shifted(int32_t s, vector<int32_t>& out) const {
        const int32_t base = s < unordered.first ? s : unordered.base_of(s);
        const int32_t* at = goto_symbol.data() + goto_indptr[base];
        for (int32_t k = 0; k < n_shifts[base]; ++k) if (base == s || go(s, at[k]) >= 0) out.push_back(at[k]);
    }
    int32_t base_go(int32_t s, int32_t symbol) const {
        const int32_t *b = goto_symbol.data() + goto_indptr[s], *e = goto_symbol.data() + goto_indptr[s + 1];
        const int32_t* p = std::lower_bound(b, e, symbol);
        return p != e && *p == symbol ? goto_target[size_t(p - goto_symbol.data())] : -1;
    }
};

class Lr0Builder {
  public:
    // Rules may not contain ε.  The grammar's own start must already be augmented (S' -> S END).
    Lr0Builder(const NormalGrammar& g, int64_t max_states) : g_(g), limit_(max_states) {}

    LrTables build() {
        LrTables out;
        int32_t n_nt = g_.n_symbols - g_.n_terms;
        mark_.assign(n_nt, 0);
        unit_mark_.assign(g_.n_symbols, 0);
        vector<int32_t> kernel{-1};  // the start: no halves, no completes, predicts the start symbol
        intern(kernel);
        vector<Entry> entries;
        vector<int32_t> todo, group_of(g_.n_symbols, -1), chain;
        for (size_t s = 0; s < kernels_.size(); ++s) {
            poll();
            // Closure: every rule reachable at the left edge, as (first symbol -> what follows it).
            entries.clear();
            todo.clear();
            auto predict = [&](int32_t symbol) {
                int32_t a = symbol - g_.n_terms;
                if (a >= 0 && mark_[a] != int32_t(s) + 1) { mark_[a] = int32_t(s) + 1; todo.push_back(a); }
            };
            const vector<int32_t> key = *kernels_[s];
            size_t k = 0;
            if (key[0] == -1) { predict(g_.start); k = 1; }
            else {
                int32_t n_halves = key[0];
                for (k = 1; k <= size_t(n_halves); ++k) {
                    auto [n, y] = halves_[key[k]];
                    entries.push_back({y, kDone, n});
                    predict(y);
                }
                for (; k < key.size(); ++k) out.done.push_back(key[k]);
            }
            out.done_indptr.push_back(int32_t(out.done.size()));
            while (!todo.empty()) {
                int32_t a = todo.back(); todo.pop_back();
                for (int32_t i = g_.rule_indptr[a]; i < g_.rule_indptr[a + 1]; ++i) {
                    const Rule& r = g_.rules[i];
                    if (r.b < 0) entries.push_back({r.a, kUnit, g_.n_terms + a});
                    else entries.push_back({r.a, kHalf, half(g_.n_terms + a, r.b)});
                    predict(r.a);
                }
            }
            std::sort(entries.begin(), entries.end());
            // Group by symbol, then give each group the entries of the units it completes.
            vector<std::pair<int32_t, int32_t>> groups;  // [begin, end) in entries
            for (size_t i = 0; i < entries.size();) {
                size_t j = i;
                while (j < entries.size() && entries[j].symbol == entries[i].symbol) ++j;
                group_of[entries[i].symbol] = int32_t(groups.size());
                groups.push_back({int32_t(i), int32_t(j)});
                i = j;
            }
            int32_t shifts = 0;
            for (auto [lo, hi] : groups) {
                int32_t symbol = entries[lo].symbol;
                new_halves_.clear();
                new_done_.clear();
                chain.assign(1, symbol);
                unit_mark_[symbol] = ++unit_stamp_;
                while (!chain.empty()) {
                    int32_t x = chain.back(); chain.pop_back();
                    if (group_of[x] < 0) continue;
                    auto [b, e] = groups[group_of[x]];
                    for (int32_t i = b; i < e; ++i) {
                        const Entry& t = entries[i];
                        if (t.kind == kHalf) new_halves_.push_back(t.value);
                        else if (t.kind == kDone) new_done_.push_back(t.value);
                        else if (unit_mark_[t.value] != unit_stamp_) {
                            unit_mark_[t.value] = unit_stamp_;
                            chain.push_back(t.value);
                        }
                    }
                }
                sort_unique(new_halves_);
                sort_unique(new_done_);
                // Both empty: the start symbol itself is complete (S' -> END); an accepting state without successors.
                kernel.assign(1, int32_t(new_halves_.size()));
                kernel.insert(kernel.end(), new_halves_.begin(), new_halves_.end());
                kernel.insert(kernel.end(), new_done_.begin(), new_done_.end());
                int32_t target = intern(kernel);
                out.goto_symbol.push_back(symbol);
                out.goto_target.push_back(target);
                shifts += symbol < g_.n_terms;
            }
            for (auto [lo, hi] : groups) group_of[entries[lo].symbol] = -1;
            out.goto_indptr.push_back(int32_t(out.goto_symbol.size()));
            out.n_shifts.push_back(shifts);
        }
        return out;
    }

  private:
    enum Kind : int32_t { kHalf, kDone, kUnit };
    struct Entry {
        int32_t symbol; Kind kind; int32_t value;
        bool operator<(const Entry& o) const {
            return symbol != o.symbol ? symbol < o.symbol : kind != o.kind ? kind < o.kind : value < o.value;
        }
    };
    const NormalGrammar& g_;
    int64_t limit_;
    vector<int32_t> mark_, new_halves_, new_done_;
    vector<int64_t> unit_mark_;  // by symbol: the last chain of unit rules that met it
    int64_t unit_stamp_ = 0;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    vector<const vector<int32_t>*> kernels_;
    std::unordered_map<uint64_t, int32_t> half_ids_;
    vector<std::pair<int32_t, int32_t>> halves_;

    static void sort_unique(vector<int32_t>& v) {
        std::sort(v.begin(), v.end());
        v.erase(std::unique(v.begin(), v.end()), v.end());
    }
    int32_t half(int32_t n, int32_t y) {
        auto got = half_ids_.emplace(uint64_t(uint32_t(n)) << 32 | uint32_t(y), int32_t(halves_.size()));
        if (got.second) halves_.push_back({n, y});
        return got.first->second;
    }
    int32_t intern(const vector<int32_t>& kernel) {
        auto got = ids_.emplace(kernel, int32_t(kernels_.size()));
        if (got.second) {
            if (int64_t(kernels_.size()) >= limit_)
                throw LimitExceeded("the LR automaton needs more than " + std::to_string(limit_) + " states");
            kernels_.push_back(&got.first->first);
        }
        return got.first->second;
    }
};

// Find the states of unordered lists, and let what leads to them lead to states with sets.
inline void attach_unordered(const NormalGrammar& g, LrTables& lr) {
    if (g.unordered.empty()) return;
    UnorderedStates& out = lr.unordered;
    out.first = lr.n_states();
    out.n_terms = g.n_terms;
    out.growing = true;
    out.list_of.assign(size_t(g.n_symbols), -1);
    out.member_of.assign(size_t(g.n_symbols), -1);
    auto rules = [&](int32_t symbol, auto visit) {
        for (int32_t i = g.rule_indptr[symbol - g.n_terms]; i < g.rule_indptr[symbol - g.n_terms + 1]; ++i) visit(g.rules[i]);
    };
    for (const UnorderedRule& u : g.unordered) {
        UnorderedList list;
        list.n_members = list.n_bits = int32_t(u.members.size());
        list.least = u.least;
        list.most = u.most;
        rules(u.rest, [&](const Rule& r) { (r.b < 0 ? list.close : list.separator) = r.a; });
        rules(u.body, [&](const Rule& r) { out.list_of[size_t(r.a)] = int32_t(out.lists.size()); });
        for (size_t k = 0; k < u.members.size(); ++k) if (u.members[k] >= 0) out.member_of[size_t(u.members[k])] = int32_t(k);
        for (const auto& group : u.groups)
            for (int32_t m : group) if (m >= 0 && out.member_of[size_t(m)] < 0) out.member_of[size_t(m)] = list.n_bits++;
        list.required.assign(list.n_words(), 0);
        for (size_t k = 0; k < u.members.size(); ++k) if (u.required[k]) list.required[k >> 6] |= 1ull << (k & 63);
        for (const auto& group : u.groups) {
            list.groups.emplace_back(list.n_words(), 0);
            for (int32_t m : group) if (m >= 0) list.groups.back()[size_t(out.member_of[size_t(m)]) >> 6] |= 1ull << (out.member_of[size_t(m)] & 63);
        }
        rules(u.body, [&](const Rule& r) {
            const int32_t k = out.member_of[size_t(r.a)];
            list.others |= k < 0 || k >= list.n_members;
            rules(r.a, [&](const Rule& pair) { list.keys.push_back({pair.a, k}); });
        });
        std::sort(list.keys.begin(), list.keys.end());
        out.lists.push_back(std::move(list));
    }
    for (size_t i = 0; i < lr.goto_symbol.size(); ++i) {
        const int32_t n = out.list_of[size_t(lr.goto_symbol[i])];
        if (n < 0) continue;
        UnorderedList& list = out.lists[size_t(n)];
        list.after_member = lr.goto_target[i];
        list.after_separator = lr.base_go(list.after_member, list.separator);
        lr.goto_target[i] = out.begin(lr.goto_symbol[i]);
    }
    out.growing = false;
}

}  // namespace wfsa
