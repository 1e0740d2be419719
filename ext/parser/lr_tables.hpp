// The tables of an LR(0) automaton, and of states with sets of members beside it.
//
//   goto_indptr[s] .. goto_indptr[s+1]            into goto_symbol (ascending), goto_target; terminals come first
//   n_shifts[s]                                   how many of them are terminals
//   completed_indptr[s] .. completed_indptr[s+1]  into completed: the nonterminals of which a rule is complete
//
// State 0 is the start. Symbols: terminals below n_terms, then nonterminals. States from `unordered.first` on are
// pairs of one of the tables' states and a set of members (unordered.hpp); sets are numbered when a document first
// has them, so a goto may be known and have no number yet: `go` then says kUnmade, and `make_go` makes the number.
#pragma once
#include <algorithm>

#include "parser/unordered.hpp"

namespace wfsa {

struct LrTables {
    static constexpr int32_t kUnmade = UnorderedStates::kUnmade;
    vector<int32_t> goto_indptr{0}, goto_symbol, goto_target, n_shifts, completed_indptr{0}, completed;
    UnorderedStates unordered;
    int32_t n_states() const { return int32_t(n_shifts.size()); }  // without those with a set

    // Where a symbol leads: a state, -1, or kUnmade (never for a terminal).
    int32_t go(int32_t s, int32_t symbol) const {
        if (s < unordered.first) return base_go(s, symbol);
        return unordered.go(s, symbol, [this](int32_t base, int32_t x) { return base_go(base, x); });
    }
    int32_t make_go(int32_t s, int32_t symbol) {
        const int32_t to = go(s, symbol);
        return to == kUnmade ? unordered.make(s, symbol) : to;
    }
    // Does s shift terminals?  Is a rule complete in it, and which?
    bool shifts(int32_t s) const { return s >= unordered.first || n_shifts[size_t(s)]; }
    bool completes(int32_t s) const {
        return s < unordered.first && completed_indptr[size_t(s)] < completed_indptr[size_t(s) + 1];
    }
    const int32_t* completed_begin(int32_t s) const {
        return completed.data() + (completes(s) ? completed_indptr[size_t(s)] : 0);
    }
    const int32_t* completed_end(int32_t s) const {
        return completed.data() + (completes(s) ? completed_indptr[size_t(s) + 1] : 0);
    }
    // Append the terminals that s shifts.
    void shifted(int32_t s, vector<int32_t>& out) const {
        const int32_t base = s < unordered.first ? s : unordered.base_of(s);
        const int32_t* at = goto_symbol.data() + goto_indptr[size_t(base)];
        for (int32_t k = 0; k < n_shifts[size_t(base)]; ++k) if (base == s || go(s, at[k]) >= 0) out.push_back(at[k]);
    }
    // The same tables with no more sets than the automaton itself leads to: those of one member.
    LrTables without_sets_of_texts() const {
        int32_t n = 0;
        for (int32_t to : goto_target) if (to >= unordered.first) n = std::max(n, (to - unordered.first) / 2 + 1);
        return {goto_indptr,      goto_symbol, goto_target,        n_shifts,
                completed_indptr, completed,   unordered.first_sets(n)};
    }
    int32_t base_go(int32_t s, int32_t symbol) const {
        const int32_t* b = goto_symbol.data() + goto_indptr[size_t(s)];
        const int32_t* e = goto_symbol.data() + goto_indptr[size_t(s) + 1];
        const int32_t* p = std::lower_bound(b, e, symbol);
        return p != e && *p == symbol ? goto_target[size_t(p - goto_symbol.data())] : -1;
    }
};

}  // namespace wfsa
