// A bound in bytes for several caches together: of all that they keep, what was asked for longest ago goes first.
//
// Caches come and go with their vocabularies, and threads use all of them, so one lock guards the order and the caches.
// It is held for a look at a table; what is dropped is destroyed after it.
#pragma once
#include <iterator>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "containers/fork_gate.hpp"

namespace wfsa {

class CacheBudget {
  public:
    class Cache {
      public:
        virtual ~Cache() = default;
        virtual std::shared_ptr<const void> drop(const void* key) = 0;  // an entry; under the lock
    };
    struct Entry {
        Cache* cache;
        const void* key;
        size_t bytes;
    };
    typedef std::list<Entry>::iterator Place;
    typedef std::vector<std::shared_ptr<const void>> Dropped;

    explicit CacheBudget(size_t limit) : limit_(limit) {}

    void set_limit(size_t limit) {
        Dropped gone;
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex);
        limit_ = limit;
        shrink(gone);
    }
    struct Sizes { size_t entries, bytes, limit; };
    Sizes sizes() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex);
        return {order_.size(), bytes_, limit_};
    }

    // For the caches, under the lock.
    mutable std::mutex mutex;
    bool fits(size_t bytes) const { return bytes <= limit_; }
    Place add(const Entry& entry, Dropped& gone) {
        order_.push_front(entry);
        const Place out = order_.begin();
        bytes_ += entry.bytes;
        shrink(gone);  // not the new one: it fits
        return out;
    }
    void touch(Place place) { order_.splice(order_.begin(), order_, place); }
    void forget(Place place) {
        bytes_ -= place->bytes;
        order_.erase(place);
    }

  private:
    size_t limit_, bytes_ = 0;
    std::list<Entry> order_;  // the one asked for last comes first

    void shrink(Dropped& gone) {
        while (bytes_ > limit_) {
            const Place last = std::prev(order_.end());
            gone.push_back(last->cache->drop(last->key));
            forget(last);
        }
    }
};

}  // namespace wfsa
