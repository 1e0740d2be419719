// Live items: one bit a leaf and the count before each word, so that "any live leaf in low .. high" is two reads.
//
// The arrays are those of wfsa/items/filter.py: words[U / 32 + 1], before[the same].

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
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

// words from bool[N] over input rows: leaf u is live when a row of it is. order and indptr may be null (identity).
// `words` has n_leaves / 32 + 1 entries and is overwritten.
inline void pack_live(const uint8_t* rows, Offsets order, Offsets indptr, int64_t n_leaves, int threads, uint32_t* words) {
  int64_t n_words = n_leaves / 32 + 1;
  int parts = (int)std::max<int64_t>(1, std::min<int64_t>(threads, n_words / 4096));
  auto work = [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      uint32_t word = 0;
      int64_t first = w * 32, count = std::min<int64_t>(32, n_leaves - first);
      for (int64_t b = 0; b < count; ++b) {
        int64_t from = first + b, to = from + 1;
        if (indptr.data) {
          from = indptr[first + b];
          to = indptr[first + b + 1];
        }
        uint32_t bit = 0;
        for (int64_t i = from; i < to; ++i) bit |= rows[order.data ? order[i] : i] != 0;
        word |= bit << b;
      }
      words[w] = word;
    }
  };
  // The common case, one item a leaf in order of a narrow array, without the branches.
  auto gather = [&](int64_t begin, int64_t end) {
    const int32_t* at = static_cast<const int32_t*>(order.data);
    for (int64_t w = begin; w < end; ++w) {
      int64_t count = std::min<int64_t>(32, n_leaves - w * 32);
      uint32_t word = 0;
      if (count == 32 && (w + 2) * 32 <= n_leaves)
        for (int b = 0; b < 32; ++b) __builtin_prefetch(rows + at[w * 32 + 32 + b]);
      for (int64_t b = 0; b < count; ++b) word |= (uint32_t)(rows[at[w * 32 + b]] != 0) << b;
      words[w] = word;
    }
  };
  bool plain = order.data && !order.wide && !indptr.data;
  std::vector<std::thread> pool;
  for (int p = 0; p < parts; ++p) {
    int64_t begin = n_words * p / parts, end = n_words * (p + 1) / parts;
    pool.emplace_back([&, begin, end] { plain ? gather(begin, end) : work(begin, end); });
  }
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
