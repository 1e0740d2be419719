// Live items: one bit a leaf and the count before each word, so that "any live leaf in low .. high" is two reads.
//
// The arrays are those of wfsa/items/filter.py: words[U / 32 + 1], before[the same].

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace wfsa {
namespace items {

inline int ones(uint32_t x) {
    x -= (x >> 1) & 0x55555555u;
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    return (int)((x * 0x01010101u) >> 24);
}

// An array of int32 or of int64.
struct Offsets {
    const void* data = nullptr;
    bool wide = false;
    int64_t operator[](int64_t i) const {
        return wide ? static_cast<const int64_t*>(data)[i] : (int64_t) static_cast<const int32_t*>(data)[i];
    }
};

struct FilterView {
    const uint32_t* words = nullptr;
    Offsets before;

    bool live(int64_t u) const { return words[u >> 5] >> (u & 31) & 1; }
    int64_t rank(int64_t u) const { return before[u >> 5] + ones(words[u >> 5] & ((1u << (u & 31)) - 1)); }
    bool any(int64_t low, int64_t high) const {
        if (low >= high) return false;
        if (low >> 5 == (high - 1) >> 5) {
            uint32_t upto = (high & 31) ? (1u << (high & 31)) - 1 : ~0u;
            return (words[low >> 5] & upto) >> (low & 31);
        }
        return rank(high) > rank(low);
    }
};

inline uint32_t bit_of(const uint32_t* bits, int64_t i) { return bits[i >> 5] >> (i & 31) & 1; }

// One row a leaf: bit u of the result is bit order[u] of `rows`. Words begin .. end.
template <class Offset>
void gather_rows(const uint32_t* rows, const Offset* order, int64_t n_leaves, int64_t begin, int64_t end,
                 uint32_t* words) {
    for (int64_t w = begin; w < end; ++w) {
        const Offset* at = order + w * 32;
        const int64_t count = n_leaves - w * 32;
        uint32_t word = 0;
        if (count >= 32)
            for (int b = 0; b < 32; ++b) word |= bit_of(rows, at[b]) << b;
        else
            for (int b = 0; b < count; ++b) word |= bit_of(rows, at[b]) << b;
        words[w] = word;
    }
}

// Any number of rows a leaf; without order, the rows are in the leaves' order.
inline void gather_lists(const uint32_t* rows, Offsets order, Offsets indptr, int64_t n_leaves, int64_t begin,
                         int64_t end, uint32_t* words) {
    for (int64_t w = begin; w < end; ++w) {
        const int64_t first = w * 32, count = std::min<int64_t>(32, n_leaves - first);
        uint32_t word = 0;
        for (int64_t b = 0; b < count; ++b) {
            uint32_t bit = 0;
            for (int64_t i = indptr[first + b]; i < indptr[first + b + 1]; ++i)
                bit |= bit_of(rows, order.data ? order[i] : i);
            word |= bit << b;
        }
        words[w] = word;
    }
}

// words[n_leaves / 32 + 1] from bits by input row: leaf u is live when a row of it is. order may be null (the rows are
// in the leaves' order) where indptr is not, and indptr where each leaf has one row.
//
// Bits and not bytes, since order reads them all over the place: 20 million are 2.5 MB, where bytes miss every cache.
inline void gather_live(const uint32_t* rows, Offsets order, Offsets indptr, int64_t n_leaves, int threads,
                        uint32_t* words) {
    const int64_t n_words = n_leaves / 32 + 1;
    const int parts = (int)std::max<int64_t>(1, std::min<int64_t>(threads, n_words / 4096));
    auto fill = [=](int part) {
        const int64_t begin = n_words * part / parts, end = n_words * (part + 1) / parts;
        if (indptr.data) gather_lists(rows, order, indptr, n_leaves, begin, end, words);
        else if (order.wide) gather_rows(rows, static_cast<const int64_t*>(order.data), n_leaves, begin, end, words);
        else gather_rows(rows, static_cast<const int32_t*>(order.data), n_leaves, begin, end, words);
    };
    std::vector<std::thread> pool;
    for (int part = 1; part < parts; ++part) {
        try {
            pool.emplace_back(fill, part);
        } catch (const std::system_error&) {  // no more threads to be had
            fill(part);
        }
    }
    fill(0);
    for (auto& t : pool) t.join();
}

// Live leaves before each word.
template <class Offset>
void count_before(const uint32_t* words, int64_t n_words, Offset* before) {
    int64_t sum = 0;
    for (int64_t w = 0; w < n_words; ++w) {
        before[w] = (Offset)sum;
        sum += ones(words[w]);
    }
}

}  // namespace items
}  // namespace wfsa
