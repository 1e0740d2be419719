// Many short lists, written once and kept until all of them go: few allocations, and they do not move.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace wfsa {

template <class T> struct Span {  // of an arena, or of a vector that stays
    const T* data = nullptr;
    int32_t n = 0;
    Span() = default;
    Span(const T* data_, int32_t n_) : data(data_), n(n_) {}
    Span(const std::vector<T>& v) : data(v.data()), n(int32_t(v.size())) {}
    size_t size() const { return size_t(n); }
    bool empty() const { return !n; }
    const T& operator[](size_t i) const { return data[i]; }
    const T* begin() const { return data; }
    const T* end() const { return data + n; }
    bool operator==(const Span& o) const { return n == o.n && std::equal(begin(), end(), o.begin()); }
    Span from(int32_t i) const { return {data + i, n - i}; }
    std::vector<T> vector() const { return {begin(), end()}; }
};
typedef Span<int32_t> List;

template <class T> class SpanArena {
  public:
    Span<T> keep(Span<T> list) {
        if (list.empty()) return {};
        if (list.size() > left_) grow(list.size());
        std::copy(list.begin(), list.end(), at_);
        const Span<T> out{at_, list.n};
        at_ += list.size();
        left_ -= list.size();
        return out;
    }
    size_t heap_bytes() const { return sizeof(T) * size_ + sizeof(blocks_[0]) * blocks_.capacity(); }

  private:
    static constexpr size_t kFirst = 32, kMost = 1 << 14;  // elements in a block
    std::vector<std::unique_ptr<T[]>> blocks_;
    T* at_ = nullptr;
    size_t left_ = 0, size_ = 0;

    void grow(size_t n) {
        const size_t size = std::max(n, std::min(kMost, std::max(kFirst, size_ / 4)));
        blocks_.emplace_back(new T[size]);
        at_ = blocks_.back().get();
        left_ = size;
        size_ += size;
    }
};
typedef SpanArena<int32_t> ListArena;

}  // namespace wfsa
