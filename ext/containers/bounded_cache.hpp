// A cache with a bound in bytes; what was asked for longest ago goes first.
//
// One entry goes at a time, so no call waits for a whole cache to be freed.  Shared by threads.
// Value has bytes(): what an entry keeps alive.  Entries that share parts count them each, so the bound holds.
#pragma once
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "containers/fork_gate.hpp"

namespace wfsa {

template <class Key, class Value, class Hash> class BoundedCache {
  public:
    explicit BoundedCache(size_t limit) : limit_(limit) {}

    std::shared_ptr<const Value> find(const Key& key) {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto got = by_key_.find(key);
        if (got == by_key_.end()) return nullptr;
        order_.splice(order_.begin(), order_, got->second.place);
        return got->second.value;
    }
    // Another thread may have been faster: then its value stays.
    void put(const Key& key, std::shared_ptr<const Value> value) {
        const size_t bytes = value->bytes() + sizeof(key[0]) * key.size();
        std::vector<std::shared_ptr<const Value>> gone;  // freed after the lock
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (bytes > limit_) return;
        const auto got = by_key_.emplace(key, Entry{std::move(value), bytes, {}});
        if (!got.second) return;
        order_.push_front(&got.first->first);
        got.first->second.place = order_.begin();
        bytes_ += bytes;
        while (bytes_ > limit_) {
            const auto last = by_key_.find(*order_.back());
            order_.pop_back();
            bytes_ -= last->second.bytes;
            gone.push_back(std::move(last->second.value));
            by_key_.erase(last);
        }
    }
    size_t entries() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        return by_key_.size();
    }
    size_t bytes() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        return bytes_;
    }
    size_t limit() const { return limit_; }

  private:
    struct Entry {
        std::shared_ptr<const Value> value;
        size_t bytes;
        typename std::list<const Key*>::iterator place;
    };
    const size_t limit_;
    mutable std::mutex mutex_;
    std::unordered_map<Key, Entry, Hash> by_key_;
    std::list<const Key*> order_;  // the one asked for last comes first
    size_t bytes_ = 0;
};

}  // namespace wfsa
