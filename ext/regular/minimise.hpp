// An automaton made small: states that cannot reach acceptance go, equal ones are united, all are numbered breadth
// first.
//
// Method: refining signatures (Moore 1956), with only touched classes looked at again.
#pragma once
#include "containers/interner.hpp"
#include "interrupt.hpp"
#include "regular/dfa.hpp"

namespace wfsa {

// The states with an edge into a state, as often as they have one.
class Predecessors {
  public:
    explicit Predecessors(const Dfa& d) : indptr_(size_t(d.size()) + 1, 0) {
        for (const Edge& e : d.edges) if (e.target < kTail) ++indptr_[size_t(e.target) + 1];
        for (size_t s = 1; s < indptr_.size(); ++s) indptr_[s] += indptr_[s - 1];
        states_.resize(size_t(indptr_.back()));
        vector<int32_t> at(indptr_.begin(), indptr_.end() - 1);
        for (int32_t s = 0; s < d.size(); ++s)
            for (const Edge& e : d.row(s)) if (e.target < kTail) states_[size_t(at[size_t(e.target)]++)] = s;
    }
    List of(int32_t s) const {
        return {states_.data() + indptr_[size_t(s)], indptr_[size_t(s) + 1] - indptr_[size_t(s)]};
    }

  private:
    vector<int32_t> indptr_, states_;
};

// Moore refinement; cls and members describe the coarsest partition of the live states.  A class is looked at again
// only when a successor of a member changed class.
inline void refine(const Dfa& draft, const Predecessors& into, const vector<uint8_t>& live, vector<int32_t>& cls,
                   vector<vector<int32_t>>& members) {
    const int32_t n = draft.size();
    members.resize(2);
    for (int32_t s = 0; s < n; ++s)
        if (live[s]) { cls[s] = draft.accept[s] ? 1 : 0; members[cls[s]].push_back(s); }
    vector<uint8_t> dirty(2, 1);
    vector<int32_t> queue{0, 1}, sig;
    std::unordered_map<vector<int32_t>, vector<int32_t>, VectorHash> groups;
    vector<Edge> merged;
    while (!queue.empty()) {
        int32_t c = queue.back(); queue.pop_back();
        poll();
        dirty[c] = 0;
        if (members[c].size() < 2) continue;
        groups.clear();
        for (int32_t s : members[c]) {
            merged.clear();
            for (const Edge& e : draft.row(s)) {
                const bool tail = e.target >= kTail;
                if (!tail && !live[e.target]) continue;
                const Edge to{e.lo, e.hi, tail ? e.target : cls[e.target], e.count};
                const bool goes_on =
                    !merged.empty() && to.continues(merged.back().hi, merged.back().target, merged.back().count);
                if (goes_on) merged.back().hi = e.hi;
                else merged.push_back(to);
            }
            sig.clear();
            for (const Edge& e : merged) { sig.push_back(e.label()); sig.push_back(e.target); }
            groups[sig].push_back(s);
        }
        if (groups.size() < 2) continue;
        // Keep the largest group in place, give the others new classes; order by smallest member for determinism.
        vector<vector<int32_t>*> parts;
        for (auto& g : groups) parts.push_back(&g.second);
        std::sort(parts.begin(), parts.end(), [](auto* a, auto* b) {
            return a->size() != b->size() ? a->size() > b->size() : a->front() < b->front(); });
        vector<int32_t> moved;
        for (size_t k = 1; k < parts.size(); ++k) {
            int32_t fresh = int32_t(members.size());
            members.push_back(*parts[k]);
            dirty.push_back(0);
            for (int32_t s : *parts[k]) { cls[s] = fresh; moved.push_back(s); }
        }
        members[c] = *parts[0];
        for (int32_t s : moved)
            for (int32_t p : into.of(s))
                if (live[p] && !dirty[cls[p]]) { dirty[cls[p]] = 1; queue.push_back(cls[p]); }
    }
}

// The same for large automata, where refinement is quadratic (a counter to 5,000 splits off one state a round): one
// pass in post-order that unites states with equal acceptance and equal successors.  Exact where there are no cycles
// but self-loops; elsewhere it may leave equal states apart, which costs space only.
constexpr int32_t kRefineMost = 400;

inline void merge_equal(int32_t start, const Dfa& draft, const vector<uint8_t>& live, vector<int32_t>& cls,
                        vector<int32_t>& first) {
    Interner known;
    vector<uint8_t> seen(size_t(draft.size()), 0);
    vector<std::pair<int32_t, int32_t>> path{{start, draft.indptr[start]}};
    vector<int32_t> sig;
    seen[start] = 1;
    while (!path.empty()) {
        poll();
        auto& [s, k] = path.back();
        if (k < draft.indptr[s + 1]) {
            const int32_t t = draft.edges[k++].target;
            if (t < kTail && live[t] && !seen[t]) { seen[t] = 1; path.push_back({t, draft.indptr[t]}); }
            continue;
        }
        sig.assign(1, draft.accept[s]);
        for (const Edge& e : draft.row(s)) {
            const bool tail = e.target >= kTail;
            if (!tail && !live[e.target]) continue;
            sig.push_back(e.label());
            sig.push_back(e.target == s ? -1 : tail ? e.target : cls[e.target] >= 0 ? cls[e.target] : -2 - e.target);
        }
        const auto [number, is_new] = known.insert(sig);
        if (is_new) first.push_back(s);
        cls[s] = number;
        path.pop_back();
    }
}

// Trim to co-accessible states, minimise, number breadth first.  States from kTail on are those of `tail`.
inline Dfa finish(int32_t start, const Dfa& draft, const Dfa& tail = {}) {
    const int32_t n = draft.size();
    const Predecessors into(draft);
    vector<uint8_t> live(size_t(n), 0);
    vector<int32_t> todo;
    for (int32_t s = 0; s < n; ++s) {
        for (const Edge& e : draft.row(s)) if (e.target >= kTail) live[s] = 1;
        if (draft.accept[s]) live[s] = 1;
        if (live[s]) todo.push_back(s);
    }
    while (!todo.empty()) {
        int32_t s = todo.back(); todo.pop_back();
        for (int32_t p : into.of(s)) if (!live[p]) { live[p] = 1; todo.push_back(p); }
    }
    Dfa dfa;
    if (start < kTail && (n == 0 || !live[start])) return dfa;

    vector<int32_t> cls(size_t(n), -1), first;  // of a state; of a class, one of its states
    if (n > kRefineMost) {
        merge_equal(start, draft, live, cls, first);
    } else {
        vector<vector<int32_t>> members;
        refine(draft, into, live, cls, members);
        for (const vector<int32_t>& m : members) first.push_back(m.empty() ? -1 : m.front());
    }

    vector<int32_t> number(first.size(), -1), tail_number(size_t(tail.size()), -1), order;
    auto number_of = [&](int32_t c) {  // of a class, or of a state of the tail
        int32_t& got = c >= kTail ? tail_number[c - kTail] : number[c];
        if (got < 0) { got = int32_t(order.size()); order.push_back(c); }
        return got;
    };
    number_of(start >= kTail ? start : cls[start]);
    vector<Edge> row;
    for (size_t k = 0; k < order.size(); ++k) {
        poll();
        row.clear();
        if (const int32_t s = order[k] - kTail; s >= 0) {
            for (const Edge& e : tail.row(s)) row.push_back({e.lo, e.hi, number_of(kTail + e.target)});
            dfa.accept.push_back(tail.accept[s]);
        } else {
            for (const Edge& e : draft.row(first[order[k]]))
                if (e.target >= kTail) row.push_back({e.lo, e.hi, number_of(e.target), e.count});
                else if (live[e.target]) row.push_back({e.lo, e.hi, number_of(cls[e.target]), e.count});
            tidy(row);
            dfa.accept.push_back(draft.accept[first[order[k]]]);
        }
        dfa.add_row(row);
    }
    return dfa;
}

}  // namespace wfsa
