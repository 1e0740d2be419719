// Many short lists of numbers, written once and kept until all of them go: few allocations, and they do not move.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace wfsa {

struct List {  // of an arena, or a vector that stays
    const int32_t* data = nullptr;
    int32_t n = 0;
    List() = default;
    List(const int32_t* data_, int32_t n_) : data(data_), n(n_) {}
    List(const std::vector<int32_t>& v) : data(v.data()), n(int32_t(v.size())) {}
    size_t size() const { return size_t(n); }
    bool empty() const { return !n; }
    int32_t operator[](size_t i) const { return data[i]; }
    const int32_t* begin() const { return data; }
    const int32_t* end() const { return data + n; }
    bool operator==(const List& o) const { return n == o.n && std::equal(begin(), end(), o.begin()); }
    std::vector<int32_t> vector() const { return {begin(), end()}; }
};

class ListArena {
  public:
    List keep(List list) {
        if (list.empty()) return {};
        if (list.size() > left_) grow(list.size());
        std::copy(list.begin(), list.end(), at_);
        const List out{at_, int32_t(list.size())};
        at_ += list.size();
        left_ -= list.size();
        return out;
    }
    size_t bytes() const { return 4 * n_numbers_; }

  private:
    static constexpr size_t kFirst = 32, kMost = 1 << 14;  // numbers in a block
    std::vector<std::unique_ptr<int32_t[]>> blocks_;
    int32_t* at_ = nullptr;
    size_t left_ = 0, n_numbers_ = 0;

    void grow(size_t n) {
        const size_t size = std::max(n, std::min(kMost, std::max(kFirst, n_numbers_ / 2)));
        blocks_.emplace_back(new int32_t[size]);
        at_ = blocks_.back().get();
        left_ = size;
        n_numbers_ += size;
    }
};

}  // namespace wfsa
