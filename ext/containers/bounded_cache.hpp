// A cache that shares a bound in bytes with others (cache_budget.hpp).
//
// One entry goes at a time, so no call waits for a whole cache to be freed.  Shared by threads.
// Value has bytes(): what an entry keeps alive.  Entries that share parts count them each, so the bound holds.
#pragma once
#include <unordered_map>

#include "containers/cache_budget.hpp"

namespace wfsa {

template <class Key, class Value, class Hash> class BoundedCache : private CacheBudget::Cache {
  public:
    explicit BoundedCache(std::shared_ptr<CacheBudget> budget) : budget_(std::move(budget)) {}
    BoundedCache(const BoundedCache&) = delete;
    ~BoundedCache() override {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(budget_->mutex);
        for (const auto& [key, entry] : by_key_) budget_->forget(entry.place);
    }

    std::shared_ptr<const Value> find(const Key& key) {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(budget_->mutex);
        const auto got = by_key_.find(key);
        if (got == by_key_.end()) return nullptr;
        budget_->touch(got->second.place);
        return got->second.value;
    }
    // Another thread may have been faster: then its value stays.
    void put(const Key& key, std::shared_ptr<const Value> value) {
        const size_t bytes = value->bytes() + sizeof(key[0]) * key.size();
        CacheBudget::Dropped gone;  // freed after the lock
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(budget_->mutex);
        if (!budget_->fits(bytes)) return;
        const auto [at, is_new] = by_key_.emplace(key, Entry{std::move(value), {}});
        if (!is_new) return;
        at->second.place = budget_->add({this, &at->first, bytes}, gone);
        bytes_ += bytes;
    }
    size_t entries() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(budget_->mutex);
        return by_key_.size();
    }
    size_t bytes() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(budget_->mutex);
        return bytes_;
    }

  private:
    struct Entry {
        std::shared_ptr<const Value> value;
        CacheBudget::Place place;
    };
    const std::shared_ptr<CacheBudget> budget_;
    std::unordered_map<Key, Entry, Hash> by_key_;
    size_t bytes_ = 0;

    std::shared_ptr<const void> drop(const void* key) override {
        const auto at = by_key_.find(*static_cast<const Key*>(key));
        std::shared_ptr<const void> out = std::move(at->second.value);
        bytes_ -= at->second.place->bytes;
        by_key_.erase(at);
        return out;
    }
};

}  // namespace wfsa
