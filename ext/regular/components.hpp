// Strongly connected components of an automaton or a graph (Tarjan 1972).
#pragma once
#include <algorithm>
#include <climits>
#include <vector>

#include "interrupt.hpp"

namespace wfsa {

using std::vector;

// `indptr`: the edges of state s are indptr[s] .. indptr[s + 1].
class Components {
  public:
    explicit Components(const vector<int32_t>& indptr) : indptr_(indptr), met_(indptr.size() - 1, -1), low_(met_.size()) {}

    // close(states, n) for each component that `root` leads to and that is new: after those that it leads to itself, with its
    // states in the order in which they were left.  target(edge): -1, no state.
    template <class Target, class Close> void visit(int32_t root, const Target& target, const Close& close) {
        if (met_[root] < 0) enter(root);
        while (!path_.empty()) {
            poll();
            const auto [s, edge, first] = path_.back();
            if (edge < indptr_[s + 1]) {
                ++path_.back().edge;
                const int32_t to = target(edge);
                if (to < 0) continue;
                if (met_[to] < 0) enter(to);
                else low_[s] = std::min(low_[s], met_[to]);
                continue;
            }
            path_.pop_back();
            if (!path_.empty()) low_[path_.back().state] = std::min(low_[path_.back().state], low_[s]);
            left_.push_back(s);
            if (low_[s] != met_[s]) continue;
            close(left_.data() + first, left_.size() - first);
            for (size_t k = first; k < left_.size(); ++k) met_[left_[k]] = INT32_MAX;  // no way round leads through it
            left_.resize(first);
        }
    }

  private:
    struct Frame {
        int32_t state, edge;
        size_t first;  // in left_, of those that are met after it
    };
    const vector<int32_t>& indptr_;
    vector<int32_t> met_, low_;  // by state: when it was met; the first of those on the path that it leads to
    vector<int32_t> left_;       // states whose component is not closed
    vector<Frame> path_;
    int32_t n_met_ = 0;

    void enter(int32_t s) {
        met_[s] = low_[s] = n_met_++;
        path_.push_back({s, indptr_[s], left_.size()});
    }
};

}  // namespace wfsa
