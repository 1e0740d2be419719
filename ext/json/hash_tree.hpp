// Values by hash, for copying: what is added gives a new root, and shares all but the path to it.
//
// A binary tree over the bits of the hash, from the highest that tells two entries apart down (crit-bit).  Entries of one
// hash are a list, the last one added first.
#pragma once
#include <vector>

#include "parser/gss.hpp"

namespace wfsa {

struct HashTree {
    struct Entry {
        const Entry* same;    // of the same hash, added before
        int32_t begin, end;   // where it lies in the text
        uint64_t key, value;
    };
    const HashTree* child[2];
    const Entry* entry;  // the entries of one hash; or one below
    int32_t bit;         // that tells the children apart; -1: a hash

    static const Entry* find(const HashTree* at, uint64_t key) {
        while (at && at->bit >= 0) at = at->child[key >> at->bit & 1];
        return at && at->entry->key == key ? at->entry : nullptr;
    }
    static const HashTree* add(const HashTree* root, Entry entry, Arena& arena) {
        entry.same = find(root, entry.key);
        HashTree* leaf = fresh(arena, {{nullptr, nullptr}, new (arena.bytes(sizeof(Entry))) Entry(entry), -1});
        static thread_local std::vector<std::pair<const HashTree*, int32_t>> path;  // with the child that is taken
        path.clear();
        const HashTree* at = root;
        for (; at; at = at->child[path.back().second]) {
            const uint64_t differ = at->entry->key ^ entry.key;
            const int32_t bit = differ ? 63 - __builtin_clzll(differ) : -1;
            if (bit > at->bit) {  // above all that is below
                const int32_t side = int32_t(entry.key >> bit & 1);
                HashTree* branch = fresh(arena, {{at, at}, leaf->entry, bit});
                branch->child[side] = leaf;
                leaf = branch;
                break;
            }
            if (at->bit < 0) break;
            path.push_back({at, int32_t(entry.key >> at->bit & 1)});
        }
        for (; !path.empty(); path.pop_back()) {
            HashTree* copy = fresh(arena, *path.back().first);
            copy->child[path.back().second] = leaf;
            leaf = copy;
        }
        return leaf;
    }

  private:
    static HashTree* fresh(Arena& arena, const HashTree& value) { return new (arena.bytes(sizeof(HashTree))) HashTree(value); }
};

}  // namespace wfsa
