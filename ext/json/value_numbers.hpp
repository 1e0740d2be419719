// Values by key, for copying: what is added gives a new root, and shares all but the path to it.
//
// A binary tree over the bits of the keys, from the highest that tells two of them apart down (crit-bit).  Its shape
// depends on the keys alone, not on the order in which they came: `join` makes a branch's value from those of its two
// sides, so that what it makes of a set is the same for equal sets (Merkle).
#pragma once
#include <cstdint>
#include <new>
#include <utility>

#include "json/normal_scalar.hpp"
#include "json/prefix_tree.hpp"
#include "parser/arena.hpp"

namespace wfsa {

struct KeyTree {
    const KeyTree* child[2];
    uint64_t key;    // of one below
    uint32_t value;  // joined, where it is a branch
    int32_t bit;     // that tells the children apart; -1: no branch

    static const KeyTree* find(const KeyTree* at, uint64_t key) {
        while (at && at->bit >= 0) at = at->child[key >> at->bit & 1];
        return at && at->key == key ? at : nullptr;
    }
    // Has a key that begins with these 32 bits been added?
    static bool has_high(const KeyTree* at, uint32_t high) {
        while (at && at->bit >= 32) at = at->child[high >> (at->bit - 32) & 1];
        return at && at->key >> 32 == high;
    }
    // A value that the key had before is replaced.
    static const KeyTree* add(const KeyTree* root, uint64_t key, uint32_t value, Arena& arena) {
        return add(root, key, value, arena, [](uint32_t, uint32_t) { return 0u; });
    }
    template <class Join>
    static const KeyTree* add(const KeyTree* root, uint64_t key, uint32_t value, Arena& arena, const Join& join) {
        const KeyTree* out = fresh(arena, {{nullptr, nullptr}, key, value, -1});
        std::pair<const KeyTree*, int32_t> path[64];  // with the child that is taken
        int32_t n = 0;
        for (const KeyTree* at = root; at; at = at->child[path[n - 1].second]) {
            const uint64_t differ = at->key ^ key;
            const int32_t bit = differ ? 63 - __builtin_clzll(differ) : -1;
            if (bit > at->bit) {  // above all that is below
                const bool right = key >> bit & 1;
                KeyTree branch{{right ? at : out, right ? out : at}, key, 0, bit};
                branch.value = join(branch.child[0]->value, branch.child[1]->value);
                out = fresh(arena, branch);
                break;
            }
            if (at->bit < 0) break;
            path[n++] = {at, int32_t(key >> at->bit & 1)};
        }
        while (n-- > 0) {
            KeyTree copy = *path[n].first;
            copy.child[path[n].second] = out;
            copy.value = join(copy.child[0]->value, copy.child[1]->value);
            out = fresh(arena, copy);
        }
        return out;
    }

  private:
    static const KeyTree* fresh(Arena& arena, const KeyTree& value) {
        return new (arena.bytes(sizeof(KeyTree))) KeyTree(value);
    }
};

// Numbers of JSON values, as they are written: equal values have one number, others have others.
//
//   scalar   where the normal form (normal_scalar.hpp) of the first one like it lies; odd
//   array    of its items so far and one more (hash consing; Filliâtre and Conchon 2006)
//   object   of the tree of its members by name, joined from the leaves up: the tree's shape depends on the names alone
//
// A scalar is looked for while it is written: a cursor walks along the scalars before it, so at its end nothing is read
// again.  An item or a member more costs the logarithm of what there is.  Nothing is hashed: a pair of numbers is a key.
//
// All of it is shared and never changed, so that copying it is a checkpoint; numbers are good for the copies, too.

// Of an array or object that is open.
struct ValueParts {
    uint32_t list = kNoItems;          // an array's items so far: the number of the array if it ended here
    uint32_t name = 0;                 // of the current member
    const KeyTree* members = nullptr;  // an object's values by name; of equal names the last one counts
    bool seen = true;                  // has some array begun like it, or have its names and members been before?

    uint32_t object() const { return members ? members->value : kNoMembers; }

    static constexpr uint32_t kNoItems = 0, kNoMembers = 2;
};

class ValueNumbers {
  public:
    static constexpr uint32_t kNone = ~0u;

    // The scalar before is put to the others; what is tried behind it need not do it again.
    void settle(Arena& arena) {
        if (is_waiting_) scalars_ = PrefixTree::add(scalars_, begin_, normal_.size(), shared_, normal_, arena);
        is_waiting_ = false;
    }
    void begin_scalar(char first, Arena& arena) {
        settle(arena);
        begin_ = normal_.size();
        shared_ = 0;
        same_ = scalars_;
        scalar_ = NormalScalar(first, [&](char unit) { put(unit, arena); });
    }
    void push_scalar(char c, Arena& arena) {
        scalar_.push(c, [&](char unit) { put(unit, arena); });
    }
    uint32_t end_scalar(Arena& arena) {
        scalar_.end([&](char unit) { put(unit, arena); });
        const int32_t k = normal_.size() - begin_;
        if (const PrefixTree* known = same_ ? same_->ended(k, normal_) : nullptr) return number_of(known->begin);
        if (same_) shared_ = k;
        is_waiting_ = true;
        return number_of(begin_);
    }
    // The number of the scalar if it ended here; kNone: there is no earlier one like it.
    uint32_t find_scalar() const {
        const PrefixTree* at = same_;
        int32_t k = normal_.size() - begin_;
        scalar_.end([&](char unit) { if (at) at = at->step(k++, uint8_t(unit), normal_); });
        if (at) at = at->ended(k, normal_);
        return at ? number_of(at->begin) : kNone;
    }
    // May the scalar go on so that it equals an earlier one?
    bool begins_like_another() const { return same_; }
    // Is it a string that would not, behind one more byte that escapes nothing and ends nothing?
    bool leaves(uint8_t c) const {
        return same_ && scalar_.is_plain_string() && !same_->step(normal_.size() - begin_, c, normal_);
    }

    // Has some array begun with these items and one more?
    bool has_list(const ValueParts& parts, uint32_t item) const { return KeyTree::find(lists_, pair(parts.list, item)); }
    void add_item(ValueParts& parts, uint32_t item, Arena& arena) {
        parts.seen &= has_list(parts, item);
        parts.list = of_pair(lists_, parts.list, item, arena);
    }
    // A name has ended.  If the object has had it, the value of then no longer counts, seen or not.
    void add_name(ValueParts& parts, uint32_t name) const {
        parts.name = name;
        parts.seen = KeyTree::find(parts.members, name) || (parts.seen && KeyTree::has_high(members_, name));
    }
    void add_member(ValueParts& parts, uint32_t value, Arena& arena) {
        parts.seen &= KeyTree::find(members_, pair(parts.name, value)) != nullptr;
        const uint32_t member = of_pair(members_, parts.name, value, arena);
        parts.members = KeyTree::add(parts.members, parts.name, member, arena, [&](uint32_t left, uint32_t right) {
            return of_pair(sets_, left, right, arena);
        });
    }

    // The number being written, if it is one.
    const NumberUnits* number() const { return scalar_.number(); }
    // Append what says which values have numbers: of two copies that have numbered other values, numbers differ in meaning.
    void put_key(std::vector<int64_t>& out) const {
        for (const void* of : {static_cast<const void*>(scalars_), static_cast<const void*>(lists_),
                               static_cast<const void*>(members_), static_cast<const void*>(sets_)})
            out.push_back(reinterpret_cast<intptr_t>(of));
        out.push_back(is_waiting_ ? reinterpret_cast<intptr_t>(normal_.last()) : 0);
    }
    // Append what decides which scalars the one being written may become.
    void put_scalar_key(std::vector<int64_t>& out, bool at_any_place) const {
        out.push_back(same_ ? same_->begin : -1);
        out.push_back(normal_.size() - begin_);
        scalar_.put_key(out, at_any_place);
    }

  private:
    SharedText normal_;                    // of the scalars, one behind the other
    const PrefixTree* scalars_ = nullptr;  // that differ
    const PrefixTree* same_ = nullptr;     // those that begin like the one being written
    NormalScalar scalar_;                  // the one being written: where in normal_ it begins, and how many of its bytes
    int32_t begin_ = 0, shared_ = 0;       // are how an earlier one begins, if none goes on like it
    const KeyTree* lists_ = nullptr;       // numbers of pairs: items and one more item; name and value; two sets of members
    const KeyTree* members_ = nullptr;
    const KeyTree* sets_ = nullptr;
    uint32_t next_ = 4;
    bool is_waiting_ = false;  // is the last scalar new, and none of scalars_ before the next one begins?

    static uint64_t pair(uint32_t a, uint32_t b) { return uint64_t(a) << 32 | b; }
    static uint32_t number_of(int32_t begin) { return uint32_t(begin) << 1 | 1; }
    void put(char unit, Arena& arena) {
        if (same_) {
            const int32_t k = normal_.size() - begin_;
            same_ = same_->step(k, uint8_t(unit), normal_);
            if (!same_) shared_ = k;
        }
        normal_.push(uint8_t(unit), arena);
    }
    uint32_t of_pair(const KeyTree*& numbers, uint32_t a, uint32_t b, Arena& arena) {
        const uint64_t key = pair(a, b);
        if (const KeyTree* known = KeyTree::find(numbers, key)) return known->value;
        numbers = KeyTree::add(numbers, key, next_, arena);
        next_ += 2;
        return next_ - 2;
    }
};

}  // namespace wfsa
