// A hash of vectors of numbers, for tables that intern them.
#pragma once
#include <cstdint>
#include <vector>

namespace wfsa {

using std::vector;

struct VectorHash {
    template <class Numbers> size_t operator()(const Numbers& v) const noexcept {
        uint64_t h = 0x9E3779B97F4A7C15ull ^ v.size();
        for (int32_t x : v) { h ^= uint32_t(x); h *= 0xff51afd7ed558ccdull; h ^= h >> 32; }
        return h;
    }
};

}  // namespace wfsa
