// Equal vectors get equal numbers.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "regular/dfa.hpp"

namespace wfsa {

class Interner {  // vector<int32_t> -> dense id
  public:
    int32_t operator()(const vector<int32_t>& key, bool* fresh = nullptr) {
        auto got = ids_.emplace(key, int32_t(keys_.size()));
        if (got.second) keys_.push_back(&got.first->first);
        if (fresh) *fresh = got.second;
        return got.first->second;
    }
    int32_t find(const vector<int32_t>& key) const {
        auto got = ids_.find(key);
        return got == ids_.end() ? -1 : got->second;
    }
    const vector<int32_t>& operator[](int32_t id) const { return *keys_[id]; }
    int32_t size() const { return int32_t(keys_.size()); }

  private:
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    std::deque<const vector<int32_t>*> keys_;
};

}  // namespace wfsa
