// Counters inside a DFA: "at most 500 characters" is 500 copies of one small automaton, one behind the other.
//
// Two states that stand at the same place of two copies behave alike as long as the copies last: on every text of at
// most `remaining` bytes, since a byte leaves at most one copy.  No token is longer than that most of the time, so the
// profile of one copy serves all (profile.hpp).
//
// Method: follow the successor that most bytes lead to; compare the copies, state by state, with the first one; stop at
// the first that differs.  Cost: linear in the edges.
#pragma once
#include "interrupt.hpp"
#include "regular/dfa.hpp"

namespace wfsa {

constexpr size_t kMostStates = 64;  // of a copy

struct Counters {
    vector<int32_t> place;      // state -> its counterpart in the first copy, -1 outside counters
    vector<int32_t> remaining;  // state -> how many more copies are alike
};

inline Counters find_counters(const Dfa& d) {
    const int32_t n = d.size();
    Counters out{vector<int32_t>(size_t(n), -1), vector<int32_t>(size_t(n), 0)};
    if (n < 16) return out;
    vector<int32_t> n_bytes(size_t(n), 0);  // that lead to each state from the one at hand; all 0 in between
    auto follow = [&](int32_t s) {  // the successor of most bytes, if it is another state
        int32_t best = -1, most = kManyBytes - 1;
        const auto row = d.edges.begin() + d.indptr[s], row_end = d.edges.begin() + d.indptr[s + 1];
        for (auto e = row; e != row_end; ++e) n_bytes[size_t(e->target)] += e->hi - e->lo + 1;
        for (auto e = row; e != row_end; ++e) {
            int32_t& bytes = n_bytes[size_t(e->target)];
            if (bytes > most) { most = bytes; best = e->target; }
            bytes = 0;
        }
        return best == s ? -1 : best;
    };
    vector<int32_t> next(size_t(n), -1);
    for (int32_t s = 0; s < n; ++s) {
        poll();
        next[s] = follow(s);
    }
    auto next_copy = [&](int32_t s) { return next[s]; };
    auto same_labels = [&](int32_t a, int32_t b) {
        const int32_t width = d.indptr[a + 1] - d.indptr[a];
        if (d.accept[a] != d.accept[b] || width != d.indptr[b + 1] - d.indptr[b]) return false;
        for (int32_t k = 0; k < width; ++k) {
            const Edge &x = d.edges[d.indptr[a] + k], &y = d.edges[d.indptr[b] + k];
            if (x.lo != y.lo || x.hi != y.hi) return false;
        }
        return true;
    };
    vector<int32_t> met(size_t(n), -1);  // state of the first copy -> when the walk of another one met it
    for (int32_t first = 0; first < n; ++first) {
        poll();
        if (out.place[first] >= 0) continue;
        // Eight copies have to be alike, so look ahead at their first states before walking any of them.
        int32_t ahead = first;
        for (int k = 1; k < 8 && ahead >= 0; ++k) {
            const int32_t after = next_copy(ahead);
            ahead = after >= 0 && same_labels(first, after) ? after : -1;
        }
        if (ahead < 0) continue;
        vector<vector<int32_t>> copies;  // matched copies: the states in the order in which the first copy meets them
        for (int32_t hub = first;;) {
            poll();
            const int32_t exit = next_copy(hub);
            if (exit < 0 || out.place[hub] >= 0) break;
            // Walk this copy beside the first one: same ranges, targets inside, at the next hub, or shared outside.
            vector<int32_t> mine{hub}, theirs{first};
            met[size_t(first)] = 0;
            const auto meet = [&](int32_t x, int32_t y) {
                met[size_t(x)] = int32_t(theirs.size());
                theirs.push_back(x);
                mine.push_back(y);
                return theirs.size() <= kMostStates;
            };
            const int32_t first_exit = next_copy(first);
            bool alike = true;
            for (size_t k = 0; k < mine.size() && alike; ++k) {
                const int32_t a = theirs[k], b = mine[k];
                alike = d.accept[a] == d.accept[b] && d.indptr[a + 1] - d.indptr[a] == d.indptr[b + 1] - d.indptr[b];
                for (int32_t e = d.indptr[a], f = d.indptr[b]; alike && e < d.indptr[a + 1]; ++e, ++f) {
                    const int32_t x = d.edges[e].target, y = d.edges[f].target;
                    alike = d.edges[e].lo == d.edges[f].lo && d.edges[e].hi == d.edges[f].hi;
                    if (!alike || (x == first_exit && y == exit)) continue;
                    if (met[size_t(x)] >= 0) alike = mine[size_t(met[size_t(x)])] == y;
                    else if (x != y || hub == first) alike = meet(x, y);
                }
            }
            for (const int32_t x : theirs) met[size_t(x)] = -1;
            if (!alike) break;
            copies.push_back(mine);
            if (hub == first) copies.back().resize(1);  // what else belongs to it shows when the second is compared
            else if (copies.size() == 2) copies[0] = theirs;
            hub = exit;
        }
        if (copies.size() < 8) continue;
        for (size_t i = 0; i < copies.size(); ++i)
            for (size_t k = 0; k < copies[i].size() && k < copies[0].size(); ++k) {
                out.place[copies[i][k]] = copies[0][k];
                out.remaining[copies[i][k]] = int32_t(copies.size() - 1 - i);
            }
    }
    return out;
}

}  // namespace wfsa
