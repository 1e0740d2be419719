// Of an automaton whose edges may begin a counted unit: how many units can still come from each state to an end.
//
// A word is of a counted terminal if it has `least` to `most` units.  With n units read, a state is alive if some number k
// of units can still come with least <= n + k <= most.  Where only one bound matters, the fewest or the most that can come
// decide; where both do, all numbers between them can come (grammar/ir.py asks for that).
#pragma once
#include <algorithm>
#include <climits>

#include "regular/dfa.hpp"

namespace wfsa {

class UnitsLeft {
  public:
    static constexpr int32_t kNoMost = INT32_MAX;
    vector<int32_t> fewest, most;  // by state; kNoMost: no bound

    explicit UnitsLeft(const Dfa& d) : d_(d), before_(size_t(d.size())) {
        for (int32_t s = 0; s < d.size(); ++s)
            for (int32_t e = d.indptr[size_t(s)]; e < d.indptr[size_t(s) + 1]; ++e)
                before_[size_t(d.edges[size_t(e)].target)].push_back({s, d.edges[size_t(e)].count});
        find_fewest();
        find_most();
    }
  private:
    struct Into { int32_t from; uint8_t count; };
    const Dfa& d_;
    vector<vector<Into>> before_;

    // Breadth first, the units one by one.
    void find_fewest() {
        fewest.assign(before_.size(), kNoMost);
        vector<int32_t> todo, later;
        for (size_t s = 0; s < before_.size(); ++s)
            if (d_.accept[s]) { fewest[s] = 0; todo.push_back(int32_t(s)); }
        for (int32_t k = 0; !todo.empty(); ++k) {
            later.clear();
            while (!todo.empty()) {
                const int32_t s = todo.back();
                todo.pop_back();
                for (const Into& e : before_[size_t(s)]) {
                    if (fewest[size_t(e.from)] != kNoMost) continue;
                    if (e.count) { later.push_back(e.from); continue; }
                    fewest[size_t(e.from)] = k;
                    todo.push_back(e.from);
                }
            }
            for (int32_t s : later)  // a state may be here several times
                if (fewest[size_t(s)] == kNoMost) { fewest[size_t(s)] = k + 1; todo.push_back(s); }
        }
    }
    // No bound where a cycle with a unit can be reached; else the longest way between strong components (Tarjan 1972).
    void find_most() {
        const int32_t n = int32_t(before_.size());
        most.assign(size_t(n), 0);
        vector<int32_t> index(before_.size(), -1), low(before_.size(), 0), component(before_.size(), -1), stack;
        struct Frame { int32_t state, edge; };
        vector<Frame> frames;
        int32_t met = 0, n_components = 0;
        for (int32_t root = 0; root < n; ++root) {
            if (index[size_t(root)] >= 0) continue;
            frames.push_back({root, d_.indptr[size_t(root)]});
            index[size_t(root)] = low[size_t(root)] = met++;
            stack.push_back(root);
            while (!frames.empty()) {
                Frame& at = frames.back();
                const int32_t s = at.state;
                if (at.edge < d_.indptr[size_t(s) + 1]) {
                    const int32_t to = d_.edges[size_t(at.edge++)].target;
                    if (index[size_t(to)] < 0) {
                        index[size_t(to)] = low[size_t(to)] = met++;
                        stack.push_back(to);
                        frames.push_back({to, d_.indptr[size_t(to)]});
                    } else if (component[size_t(to)] < 0) {
                        low[size_t(s)] = std::min(low[size_t(s)], index[size_t(to)]);
                    }
                    continue;
                }
                frames.pop_back();
                if (!frames.empty()) {
                    const size_t below = size_t(frames.back().state);
                    low[below] = std::min(low[below], low[size_t(s)]);
                }
                if (low[size_t(s)] == index[size_t(s)]) close(stack, s, component, n_components++);
            }
        }
    }
    // The component on the stack down to state s is complete; what it leads to is known.
    void close(vector<int32_t>& stack, int32_t s, vector<int32_t>& component, int32_t number) {
        const size_t first = size_t(std::find(stack.rbegin(), stack.rend(), s).base() - stack.begin()) - 1;
        for (size_t k = first; k < stack.size(); ++k) component[size_t(stack[k])] = number;
        int32_t longest = 0;
        for (size_t k = first; k < stack.size(); ++k)
            for (int32_t e = d_.indptr[size_t(stack[k])]; e < d_.indptr[size_t(stack[k]) + 1]; ++e) {
                const auto& edge = d_.edges[size_t(e)];
                const bool inside = component[size_t(edge.target)] == number;
                if (inside ? edge.count : most[size_t(edge.target)] == kNoMost) longest = kNoMost;
                else if (!inside && longest != kNoMost) longest = std::max(longest, most[size_t(edge.target)] + edge.count);
            }
        for (size_t k = first; k < stack.size(); ++k) most[size_t(stack[k])] = longest;
        stack.resize(first);
    }
};

}  // namespace wfsa
