// Names of DFA states across terminals.
#pragma once
#include <mutex>

#include "containers/fork_gate.hpp"
#include "regular/dfa.hpp"

namespace wfsa {

// Names for states that mean the same wherever they occur: equal names, equal residual languages.
//
// States that loop on many bytes (inside a string, inside an identifier) are named by their residual automaton spelled
// out, so that the body of a string has one name in all terminals that contain one; others are named by their DFA.
// What is spelled out is kept within a bound of bytes. Where it is reached all is forgotten, and the same state gets
// another name when it is met again: then less is shared, and nothing is wrong.
class StateNames {
  public:
    // `known`: the automaton is kept, so its states will be met again under their names; if not, they get none (-1).
    static vector<int64_t> of(const Dfa& d, bool known) {
        StateNames& names = the();
        const ForkGate::Change change;
        std::lock_guard<std::mutex> lock(names.mutex_);
        vector<int64_t> out;
        vector<int32_t> key;
        for (int32_t s = 0; s < d.size(); ++s) {
            if (!large_loop(d, s) || !spell(d, s, key)) { out.push_back(known ? names.next_++ : -1); continue; }
            const auto got = names.known_.emplace(key, names.next_);
            names.next_ += got.second;
            out.push_back(got.first->second);
            if (got.second) names.bytes_ += size_of(key);
            names.shrink();
        }
        return out;
    }
    struct Sizes { size_t entries, bytes, limit; };
    static Sizes sizes() {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(the().mutex_);
        return {the().known_.size(), the().bytes_, the().limit_};
    }
    static void set_limit(size_t bytes) {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(the().mutex_);
        the().limit_ = bytes;
        the().shrink();
    }

  private:
    static constexpr size_t kMaxStates = 64;   // of a residual automaton
    std::mutex mutex_;
    std::unordered_map<vector<int32_t>, int64_t, VectorHash> known_;
    int64_t next_ = 0;
    size_t bytes_ = 0, limit_ = 0;

    static StateNames& the() {
        static StateNames names;
        return names;
    }
    static size_t size_of(const vector<int32_t>& key) { return 80 + sizeof(int32_t) * key.size(); }  // with its node
    void shrink() {
        if (bytes_ <= limit_) return;
        known_.clear();
        bytes_ = 0;
    }
    static bool large_loop(const Dfa& d, int32_t s) {
        return bytes_to(d.edges.begin() + d.indptr[s], d.edges.begin() + d.indptr[s + 1], s) >= kManyBytes;
    }
    static bool spell(const Dfa& d, int32_t s, vector<int32_t>& key) {
        vector<int32_t> order{s};
        key.clear();
        for (size_t k = 0; k < order.size(); ++k) {
            key.push_back(d.accept[order[k]] ? -1 : -2);
            for (int32_t e = d.indptr[order[k]]; e < d.indptr[order[k] + 1]; ++e) {
                auto at = std::find(order.begin(), order.end(), d.edges[e].target);
                key.push_back(d.edges[e].label());
                key.push_back(int32_t(at - order.begin()));
                if (at != order.end()) continue;
                if (order.size() == kMaxStates) return false;
                order.push_back(d.edges[e].target);
            }
        }
        return true;
    }
};

}  // namespace wfsa
