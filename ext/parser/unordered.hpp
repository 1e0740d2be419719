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
#include <string>

#include "containers/interner.hpp"
#include "errors.hpp"

namespace wfsa {

struct UnorderedList {
    static constexpr int32_t kNoMost = INT32_MAX;
    int32_t separator = -1, close = -1;                  // terminals
    int32_t after_member = -1, after_separator = -1;     // LR states without a set
    int32_t n_members = 0, least = 0, most = kNoMost;    // least, most: of members and others together
    int32_t n_bits = 0;                                  // members, then the others that groups name
    bool ordered = false;                                // members as they are numbered, then others; without counts
    bool others = false;                                 // members of no name of their own, in any number
    vector<uint64_t> required;                           // by member
    vector<vector<uint64_t>> groups;                     // of each of these something has to be there; without `most`
    vector<std::pair<int32_t, int32_t>> keys;            // terminal that begins a member -> member (-1: others)

    size_t n_words() const { return (size_t(n_bits) + 63) / 64; }
    uint64_t once(size_t w) const {  // which bits of a word are members
        const int64_t n = int64_t(n_members) - 64 * int64_t(w);
        return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1;
    }
    int32_t member_of(int32_t terminal) const {
        auto got = std::lower_bound(keys.begin(), keys.end(), std::make_pair(terminal, INT32_MIN));
        return got == keys.end() || got->first != terminal ? -1 : got->second;
    }
};

class UnorderedStates {
  public:
    static constexpr int32_t kUnmade = -2;  // a set that has no number yet
    vector<UnorderedList> lists;
    vector<int32_t> list_of, member_of;  // by symbol: the list that it is a member of, or -1; which one, -1: others
    int32_t first = INT32_MAX;           // number of the first state with a set: 2 a set, after a member and a separator
    Interner sets;                       // list, number of others, members as bits
    int32_t n_terms = 0;

    int32_t n_states() const { return 2 * sets.size(); }
    // The same with the first n sets only.
    UnorderedStates first_sets(int32_t n) const {
        UnorderedStates out;
        out.lists = lists;
        out.list_of = list_of;
        out.member_of = member_of;
        out.first = first;
        out.n_terms = n_terms;
        for (int32_t id = 0; id < n; ++id) out.sets.intern(sets[id]);
        return out;
    }

    // Where `symbol` leads from state s: a state, -1, or kUnmade. `base(state, symbol)` asks the LR table without
    // sets.
    template <class Base> int32_t go(int32_t s, int32_t symbol, const Base& base) const {
        const List set = sets[(s - first) >> 1];
        const UnorderedList& list = lists[size_t(set[0])];
        if (((s - first) & 1) == 0) {
            if (symbol == list.separator) return goes_on(list, set) ? s + 1 : -1;
            if (symbol == list.close && !may_close(list, set)) return -1;
            return base(list.after_member, symbol);
        }
        if (list_of[size_t(symbol)] == set[0]) {
            const vector<int32_t> to = after(set, member_of[size_t(symbol)]);
            const int32_t id = to.empty() ? -1 : sets.find(to);
            return to.empty() ? -1 : id < 0 ? kUnmade : first + 2 * id;
        }
        const int32_t to = base(list.after_separator, symbol);
        return to >= 0 && symbol < n_terms && !takes(list, set, list.member_of(symbol)) ? -1 : to;
    }
    // ... where `go` said kUnmade: with a number.
    int32_t make(int32_t s, int32_t symbol) { return number(after(sets[(s - first) >> 1], member_of[size_t(symbol)])); }
    // ... or without one: the state that it leads to if what was written before is forgotten.
    int32_t forgotten(int32_t s) const { return lists[size_t(sets[(s - first) >> 1][0])].after_member; }
    int32_t base_of(int32_t s) const {
        const UnorderedList& list = lists[size_t(sets[(s - first) >> 1][0])];
        return (s - first) & 1 ? list.after_separator : list.after_member;
    }
    // The state after the first member.
    int32_t begin(int32_t symbol) {
        const int32_t n = list_of[size_t(symbol)];
        vector<int32_t> set(2 + 2 * lists[size_t(n)].n_words(), 0);
        set[0] = n;
        set = after(set, member_of[size_t(symbol)]);
        return set.empty() ? -1 : number(set);
    }

  private:
    static constexpr int32_t kMaxSets = 1 << 22;

    static uint64_t word(List set, size_t w) {
        return uint64_t(uint32_t(set[2 + 2 * w])) | uint64_t(uint32_t(set[3 + 2 * w])) << 32;
    }
    // The bits of word w that are before bit k.
    static uint64_t below(int32_t k, size_t w) {
        const int64_t n = int64_t(k) - 64 * int64_t(w);
        return n >= 64 ? ~0ull : n <= 0 ? 0 : (1ull << n) - 1;
    }
    static void count(const UnorderedList& list, List set, int64_t& written, int64_t& missing) {
        written = set[1];
        missing = 0;
        for (size_t w = 0; w < list.n_words(); ++w) {
            written += __builtin_popcountll(word(set, w) & list.once(w));
            missing += __builtin_popcountll(list.required[w] & ~word(set, w));
        }
        for (const vector<uint64_t>& group : list.groups) {  // nothing of a group that is missing has been written
            uint64_t met = 0;
            for (size_t w = 0; w < group.size(); ++w) met |= group[w] & word(set, w);
            missing += !met;
        }
    }
    bool takes(const UnorderedList& list, List set, int32_t k) const {
        bool required = false;
        if (k >= 0 && k < list.n_members) {
            if (word(set, size_t(k) >> 6) >> (k & 63) & 1) return false;
            required = list.required[size_t(k) >> 6] >> (k & 63) & 1;
        }
        if (list.most == UnorderedList::kNoMost && !list.ordered) return true;
        int64_t written, missing;
        count(list, set, written, missing);
        if (list.ordered && missing > required) {  // what is passed is never written
            if (k < 0 || k >= list.n_members) return false;
            for (size_t w = 0; w <= size_t(k) >> 6; ++w)
                if (list.required[w] & ~word(set, w) & below(k, w)) return false;
        }
        return list.most == UnorderedList::kNoMost || written + 1 + missing - required <= list.most;
    }
    bool goes_on(const UnorderedList& list, List set) const {
        int64_t written, missing;
        count(list, set, written, missing);
        return missing || (written < list.most && (list.others || written < list.n_members));
    }
    bool may_close(const UnorderedList& list, List set) const {
        int64_t written, missing;
        count(list, set, written, missing);
        return !missing && written >= list.least;
    }
    // The set with member k, or with one of the others (-1); empty: not taken.
    vector<int32_t> after(List set, int32_t k) const {
        const UnorderedList& list = lists[size_t(set[0])];
        if (!takes(list, set, k)) return {};
        vector<int32_t> to = set.vector();
        if (k >= 0) to[2 + size_t(k) / 32] = int32_t(uint32_t(to[2 + size_t(k) / 32]) | 1u << (k & 31));
        if (list.ordered)
            for (size_t w = 0; w < list.n_words(); ++w) {
                const uint64_t passed = k < 0 || k >= list.n_members ? list.once(w) : below(k, w);
                to[2 + 2 * w] |= int32_t(uint32_t(passed));
                to[3 + 2 * w] |= int32_t(uint32_t(passed >> 32));
            }
        const int32_t enough = list.most == UnorderedList::kNoMost ? list.least : list.most;
        if (k < 0 || k >= list.n_members) to[1] = std::min(to[1] + 1, enough);
        return to;
    }
    int32_t number(List set) {
        if (sets.size() >= kMaxSets && sets.find(set) < 0)
            throw LimitExceeded("documents had more than " + std::to_string(kMaxSets) + " sets of properties");
        return first + 2 * sets.intern(set);
    }
};

}  // namespace wfsa
