// Values by key, for copying: what is added gives a new root, and shares all but the path to it.
//
// A binary tree over the bits of the keys, from the highest that tells two of them apart down (crit-bit).  Its shape
// depends on the keys alone, not on the order in which they came: `join` makes a branch's value from those of its two
// sides, so that what it makes of a set is the same for equal sets (Merkle).
#pragma once
#include <cstdint>
#include <new>
#include <utility>

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

}  // namespace wfsa
