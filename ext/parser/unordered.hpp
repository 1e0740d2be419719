// Lists whose members come in any order, each at most once: LR states with a set of members, made when they are met.
//
// The rules of such a list are an ordinary right-recursive grammar that forgets which members have been written:
//
//   body -> m rest   for every member m       rest -> separator body | close
//
// Spelled out exactly, body and rest would be a nonterminal for every set of members, 2^n of them.  They differ in
// nothing but what is left to write, so the LR automaton is built once from the rules as they are, and two of its
// states get the set beside them (the members written, and how many others if their number matters):
//
//   after a member       {body -> m . rest}          may close if all that is required is there
//   after a separator    {rest -> separator . body}  takes a member that is not in the set
//
// These two states hold the items of one list only, because m occurs nowhere else.  A pair (state, set) is one more LR
// state.  A document meets one for each member it has, where the spelled-out automaton would need all sets; everything
// behind the LR tables (stack, lexer contexts, parser DWA, masks) takes them as it takes any state.  The list is right
// recursive, so a set never has to be found again after a reduction: it lies on the stack.
//
// No state is a dead end: a member is taken only if what is still required fits in behind it.
//
// A list may also be long and have an order. Then the members that a set has are those that have been passed, and a
// document meets a state for each member it has, where tables of all suffixes would be the square of the list.
// Sources: XML's and SGML's "&" connector; the derivatives of interleaving (Brzozowski-style sets of what is left).
#pragma once
#include "parser/unordered_list.hpp"

namespace wfsa {

class UnorderedStates {
  public:
    static constexpr int32_t kUnmade = -2;  // a set that has no number yet
    vector<UnorderedList> lists;
    vector<int32_t> list_of, pair_of;    // by symbol: the list that it is a pair of, or -1; which one
    int32_t first = INT32_MAX;           // number of the first state with a set: 2 a set, after a member and a separator
    Interner sets;                       // as UnorderedList has them
    int32_t n_terms = 0;

    int32_t n_states() const { return 2 * sets.size(); }
    template <class Self, class V>
    static void fields(Self& u, V& v, int64_t n_terms, int64_t n_symbols, int64_t n_lr_states) {
        const int64_t big = int64_t(1) << 31;
        v.given("lists", u.lists);
        v.then(u, [&](auto& states) { for (UnorderedList& list : states.lists) list.restored(n_terms, n_lr_states); });
        const int64_t n_lists = int64_t(u.lists.size());
        v.given("list_of", u.list_of, Within{-1, n_lists}, size_t(n_lists ? n_symbols : 0));
        v.given("pair_of", u.pair_of, Within{-1, big}, u.list_of.size());
        v.kept("sets", u.sets, Within{-big, big});
        v.copied(u.first, u.n_terms);
    }
    void restored(int64_t n_terms_, int64_t, int64_t n_lr_states) {
        for (size_t s = 0; s < list_of.size(); ++s) {
            const int32_t list = list_of[s], pair = pair_of[s];
            check((pair >= 0) == (list >= 0) && (list < 0 || size_t(pair) < lists[size_t(list)].pairs.size()), "a pair is out of range");
        }
        for (int32_t i = 0; i < sets.size(); ++i) {
            const List set = sets[i];
            check(!set.empty() && set[0] >= 0 && size_t(set[0]) < lists.size() && set[1] >= 0 &&
                      set.size() == lists[size_t(set[0])].set_size(), "a set of members does not fit its list");
        }
        if (!lists.empty()) first = int32_t(n_lr_states);
        n_terms = int32_t(n_terms_);
    }

    // Where `symbol` leads from state s: a state, -1, or kUnmade. `base(state, symbol)` asks the LR table without
    // sets.
    template <class Base> int32_t go(int32_t s, int32_t symbol, const Base& base) const {
        const List set = sets[(s - first) >> 1];
        const UnorderedList& list = lists[size_t(set[0])];
        if (((s - first) & 1) == 0) {
            if (symbol == list.separator) return list.goes_on(set) ? s + 1 : -1;
            if (symbol == list.close && !list.may_close(set)) return -1;
            return base(list.after_member, symbol);
        }
        if (list_of[size_t(symbol)] == set[0]) {
            const vector<int32_t> to = list.after(set, pair_of[size_t(symbol)]);
            const int32_t id = to.empty() ? -1 : sets.find(to);
            return to.empty() ? -1 : id < 0 ? kUnmade : first + 2 * id;
        }
        const int32_t to = base(list.after_separator, symbol);
        if (to < 0 || symbol >= n_terms) return to;
        const int32_t pair = list.pair_of(symbol);
        return pair >= 0 && !list.takes(set, pair) ? -1 : to;
    }
    // ... where `go` said kUnmade: with a number.
    int32_t make(int32_t s, int32_t symbol) {
        const List set = sets[(s - first) >> 1];
        return number(lists[size_t(set[0])].after(set, pair_of[size_t(symbol)]));
    }
    int32_t base_of(int32_t s) const {
        const UnorderedList& list = lists[size_t(sets[(s - first) >> 1][0])];
        return (s - first) & 1 ? list.after_separator : list.after_member;
    }
    // The state after the first pair, -1 if it is not taken there.
    int32_t begin(int32_t symbol) {
        const int32_t n = list_of[size_t(symbol)];
        const UnorderedList& list = lists[size_t(n)];
        const vector<int32_t> set = list.after(list.begin(n), pair_of[size_t(symbol)]);
        return set.empty() ? -1 : number(set);
    }

  private:
    static constexpr int32_t kMaxSets = 1 << 22;

    int32_t number(List set) {
        if (sets.size() >= kMaxSets && sets.find(set) < 0)
            throw LimitExceeded("documents had more than " + std::to_string(kMaxSets) + " sets of properties");
        return first + 2 * sets.intern(set);
    }
};

}  // namespace wfsa
