// Where allowed tokens go: a mask being made, bit t % 32 of word t / 32 for token t.
#pragma once
#include <cstdint>
#include <vector>

namespace wfsa {

struct MaskWriter {
    uint32_t* mask;
    const uint32_t* vetoed = nullptr;  // tokens that are not let in, if any

    void set(int32_t token) {
        const size_t w = size_t(token) >> 5;
        const uint32_t bit = 1u << (token & 31);
        mask[w] |= vetoed ? bit & ~vetoed[w] : bit;
    }
    void add(const std::vector<uint32_t>& bitmap) {
        const uint32_t* __restrict from = bitmap.data();
        const uint32_t* __restrict out = vetoed;
        uint32_t* __restrict to = mask;
        const size_t n = bitmap.size();
        if (out) for (size_t i = 0; i < n; ++i) to[i] |= from[i] & ~out[i];
        else for (size_t i = 0; i < n; ++i) to[i] |= from[i];
    }
};

}  // namespace wfsa
