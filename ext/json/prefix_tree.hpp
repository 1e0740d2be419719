// Byte strings that lie in one text, so arranged that a walk along one more string tells at every byte whether some of
// them go on like this.  A crit-bit tree (Bernstein; Morrison's PATRICIA), never changed: what is added gives a new root,
// and shares all but the path to it.
//
//   node      the strings below agree in all before symbol `at`, and there in the bits above `bit`, which tells them apart
//   symbol    a byte + 1, or 0 behind the end: so a string that begins another one has a place of its own
//   cursor    (node, k): the strings below `node` are those that agree with the walk in their first k bytes
//
// Adding costs a step for each node on the way: who has walked along knows how many bytes are shared with an earlier
// string, and they are not read again.  A string is found twice, and added once.
#pragma once
#include <utility>
#include <vector>

#include "json/shared_text.hpp"

namespace wfsa {

struct PrefixTree {
    const PrefixTree* child[2];  // none: a string
    int32_t begin, end;          // of that string in the text, or of one below
    int32_t at, bit;

    // `shared`: so many bytes, or more, are how some string begins.
    static const PrefixTree* add(const PrefixTree* root, int32_t begin, int32_t end, int32_t shared,
                                 const SharedText& text, Arena& arena) {
        const PrefixTree* leaf = fresh(arena, {{nullptr, nullptr}, begin, end, 0, 0});
        if (!root) return leaf;
        static thread_local std::vector<std::pair<const PrefixTree*, int32_t>> path;  // with the child that is taken
        path.clear();
        const PrefixTree* at = root;
        const auto descend = [&](int32_t symbol) {
            path.push_back({at, symbol >> at->bit & 1});
            at = at->child[path.back().second];
        };
        while (at->child[0] && at->at < shared) descend(leaf->symbol(text, at->at));
        for (int32_t k = shared;; ++k) {
            const int32_t a = leaf->symbol(text, k);
            int32_t differ = a ^ at->symbol(text, k);
            while (at->child[0] && at->at == k && !(differ >> at->bit >> 1)) {
                descend(a);
                differ = a ^ at->symbol(text, k);
            }
            if (differ) {
                int32_t bit = 8;
                while (!(differ >> bit)) --bit;
                const int32_t side = a >> bit & 1;
                PrefixTree* branch = fresh(arena, {{at, at}, begin, end, k, bit});
                branch->child[side] = leaf;
                at = branch;
                break;
            }
            if (a == 0) return root;
        }
        for (; !path.empty(); path.pop_back()) {
            PrefixTree* copy = fresh(arena, *path.back().first);
            copy->child[path.back().second] = at;
            at = copy;
        }
        return at;
    }
    // From the cursor (this, k) along byte c; nullptr: no string goes on like this.
    const PrefixTree* step(int32_t k, uint8_t c, const SharedText& text) const { return along(k, c + 1, text); }
    // The string that ends at the cursor, or nullptr.
    const PrefixTree* ended(int32_t k, const SharedText& text) const { return along(k, 0, text); }

  private:
    const PrefixTree* along(int32_t k, int32_t symbol, const SharedText& text) const {
        const PrefixTree* node = this;
        while (node->child[0] && node->at == k) node = node->child[symbol >> node->bit & 1];
        return node->symbol(text, k) == symbol ? node : nullptr;
    }
    int32_t symbol(const SharedText& text, int32_t k) const { return k < end - begin ? 1 + text[begin + k] : 0; }
    static PrefixTree* fresh(Arena& arena, const PrefixTree& value) {
        return new (arena.bytes(sizeof(PrefixTree))) PrefixTree(value);
    }
};

}  // namespace wfsa
