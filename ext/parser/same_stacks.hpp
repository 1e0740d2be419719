// Are the stacks of two configurations the same?  Nodes are compared from the tops down to those that both share.
//
// Sound, not complete: "no" is said where it takes more than some steps, or where several nodes of one state lie below
// one, so that there is more than one way to pair them.
#pragma once
#include <algorithm>
#include <vector>

#include "parser/gss.hpp"

namespace wfsa {

// By lexer state, count and states of the tops: 0 if all are equal.
inline int compare_tops(const Config& a, const Config& b) {
    const auto order = [](int64_t x, int64_t y) { return x < y ? -1 : x > y; };
    if (const int by_lex = order(a.lex, b.lex)) return by_lex;
    if (const int by_count = order(a.count, b.count)) return by_count;
    if (const int by_number = order(a.n_tops, b.n_tops)) return by_number;
    for (int32_t k = 0; k < a.n_tops; ++k)
        if (const int by_state = order(a.tops[k]->state, b.tops[k]->state)) return by_state;
    return 0;
}

class SameStacks {
  public:
    // Of two with equal tops, by their states.
    bool operator()(const Config& a, const Config& b) {
        todo_.clear();
        for (int32_t k = 0; k < a.n_tops; ++k) todo_.push_back({a.tops[k], b.tops[k]});
        for (int32_t left = kSteps; !todo_.empty(); --left) {
            const auto [x, y] = todo_.back();
            todo_.pop_back();
            if (x == y) continue;
            if (!left || x->state != y->state || x->n_below != y->n_below || !pair_below(x, y)) return false;
        }
        return true;
    }

  private:
    typedef std::vector<const Node*> Nodes;
    static constexpr int32_t kSteps = 256;
    std::vector<std::pair<const Node*, const Node*>> todo_;
    Nodes below_[2];

    bool pair_below(const Node* x, const Node* y) {
        alone(x, y, below_[0]);
        alone(y, x, below_[1]);
        if (below_[0].size() != below_[1].size()) return false;
        for (size_t k = 0; k < below_[0].size(); ++k) {
            if (k > 0 && below_[0][k]->state == below_[0][k - 1]->state) return false;
            todo_.push_back({below_[0][k], below_[1][k]});
        }
        return true;
    }
    // The nodes below x that are not below y, by state.
    static void alone(const Node* x, const Node* y, Nodes& out) {
        out.clear();
        for (int32_t i = 0; i < x->n_below; ++i)
            if (std::find(y->below, y->below + y->n_below, x->below[i]) == y->below + y->n_below)
                out.push_back(x->below[i]);
        std::sort(out.begin(), out.end(), [](const Node* a, const Node* b) { return a->state < b->state; });
    }
};

}  // namespace wfsa
