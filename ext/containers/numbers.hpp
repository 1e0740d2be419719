// Sets as ascending vectors without repeats.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace wfsa {

template <class T> void sort_unique(std::vector<T>& v) {
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
}
// ... of those with equal `key(x)`, which decides the order, one stays.
template <class T, class Key> void sort_unique_by(std::vector<T>& v, const Key& key) {
    std::sort(v.begin(), v.end(), [&](const T& a, const T& b) { return key(a) < key(b); });
    v.erase(std::unique(v.begin(), v.end(), [&](const T& a, const T& b) { return key(a) == key(b); }), v.end());
}

// Two numbers as one key of a table: a in the upper half, b in the lower one. Keys of numbers from 0 on ascend as
// pairs do.

inline uint64_t pair_key(int32_t a, int32_t b) { return uint64_t(uint32_t(a)) << 32 | uint32_t(b); }
inline int32_t pair_first(uint64_t key) { return int32_t(key >> 32); }
inline int32_t pair_second(uint64_t key) { return int32_t(uint32_t(key)); }

// Of an address and a number, for tables keyed by both.
inline size_t hash_of(const void* p, int32_t n) {
    const uint64_t h = (uint64_t(reinterpret_cast<uintptr_t>(p)) >> 4) * 0x9E3779B97F4A7C15ull;
    return size_t((h + uint64_t(n) * 0xff51afd7ed558ccdull) >> 20);
}

struct PairHash {  // the low bits count
    size_t operator()(uint64_t key) const noexcept {
        const uint64_t h = key * 0x9E3779B97F4A7C15ull;
        return size_t(h ^ h >> 32);
    }
};

// A hash of vectors of numbers, for tables that intern them.

using std::vector;

struct VectorHash {
    template <class Numbers> size_t operator()(const Numbers& v) const noexcept {
        uint64_t h = 0x9E3779B97F4A7C15ull ^ v.size();
        for (int32_t x : v) { h ^= uint32_t(x); h *= 0xff51afd7ed558ccdull; h ^= h >> 32; }
        return h;
    }
};

}  // namespace wfsa
