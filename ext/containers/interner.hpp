// Equal vectors get equal numbers, from 0 on in the order in which they were first met.
#pragma once
#include <deque>
#include <unordered_map>

#include "containers/heap_bytes.hpp"
#include "containers/vector_hash.hpp"

namespace wfsa {

class Interner {
  public:
    int32_t intern(const vector<int32_t>& key) {
        auto got = ids_.emplace(key, int32_t(keys_.size()));
        if (got.second) keys_.push_back(&got.first->first);
        return got.first->second;
    }
    int32_t find(const vector<int32_t>& key) const {  // -1: not met
        auto got = ids_.find(key);
        return got == ids_.end() ? -1 : got->second;
    }
    const vector<int32_t>& operator[](int32_t id) const { return *keys_[size_t(id)]; }
    int32_t size() const { return int32_t(keys_.size()); }
    size_t heap_bytes() const { return wfsa::heap_bytes(ids_) + wfsa::heap_bytes(keys_); }

  private:
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids_;
    std::deque<const vector<int32_t>*> keys_;
};

}  // namespace wfsa
