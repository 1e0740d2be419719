// Fronts ("longest"): the stacks behind cuts, while one mask is made.
//
//   front 0   the configuration that the mask is made for
//   front n   the tops after shifting a terminal on an earlier front, and the stacks below them
//
// Equal fronts are one: a tail like "*****" is soon among stacks that are known. Two fronts are equal if they have
// the same tops on the same nodes; below, nodes are shared, so addresses tell.
#pragma once
#include "containers/numbers.hpp"
#include "containers/open_table.hpp"
#include "errors.hpp"
#include "parser/closure.hpp"

namespace wfsa {

class Fronts {
  public:
    void begin(const Config& c) {
        after_.clear();
        fronts_.clear();
        keys_.clear();
        by_hash_.clear();
        fronts_.push_back({c, -1, 0, 0, -1});
    }
    const Config& config(int32_t front) const { return fronts_[front].config; }
    int32_t& tops(int32_t front) { return fronts_[front].tops; }  // number of its set of tops, -1: unknown
    void set(int32_t front, const Config& c) { fronts_[front].config = c; }
    // The front after a terminal, -1 to be filled in.
    int32_t& after(int32_t front, int32_t term) { return after_.insert(pair_key(front, term)).first.front; }
    // The front whose tops are those of the closure at `order`; `is_new`: it has no configuration yet.
    int32_t find(const Closure& closure, const vector<int32_t>& order, bool& is_new) {
        const size_t from = keys_.size();
        uint64_t hash = order.size();
        for (int32_t i : order) {
            keys_.push_back(uint64_t(closure[i].state));
            const size_t n = keys_.size();
            for (const Node* b : closure[i].below) keys_.push_back(reinterpret_cast<uintptr_t>(b));
            std::sort(keys_.begin() + int64_t(n), keys_.end());
        }
        for (size_t k = from; k < keys_.size(); ++k) {
            hash = (hash ^ keys_[k]) * 0xff51afd7ed558ccdull;
            hash ^= hash >> 29;
        }
        const size_t size = keys_.size() - from;
        int32_t& last = by_hash_.insert(hash).first.front;
        for (int32_t f = last; f >= 0; f = fronts_[f].before)
            if (fronts_[f].size == size &&
                std::equal(keys_.begin() + int64_t(from), keys_.end(), keys_.begin() + int64_t(fronts_[f].from))) {
                keys_.resize(from);
                return f;
            }
        if (fronts_.size() > kMost) throw LimitExceeded("tokens can be cut into terminals in too many ways here");
        is_new = true;
        fronts_.push_back({{}, -1, from, size, last});
        return last = int32_t(fronts_.size()) - 1;
    }

  private:
    static constexpr size_t kMost = 1 << 16;
    struct Front {
        Config config;
        int32_t tops;
        size_t from, size;  // of its key in keys_
        int32_t before;     // another one of the same hash, or -1
    };
    struct After { int32_t front = -1; };
    vector<Front> fronts_;
    vector<uint64_t> keys_;
    OpenTable<uint64_t, After, PairHash> after_{256};  // (front, terminal)
    OpenTable<uint64_t, After, PairHash> by_hash_{256};  // the last one of each hash
};

}  // namespace wfsa
