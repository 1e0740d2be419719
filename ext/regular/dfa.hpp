// Byte DFAs of regular languages: Thompson construction, subset construction, minimisation, products.
//
// Problem: a terminal is a tree of unions, repetitions, intersections and differences over bytes and code points;
// the lexer needs a small DFA (minimal, up to kRefineMost states).  Edges are byte ranges, because a row of 256 targets is 1 KB and a typical state
// has one to thirteen ranges.
//
// Invariants of a finished Dfa: state 0 is the start; every state can reach an accepting one (so "a state exists"
// means "alive"); edges of a state are sorted, disjoint, and neighbours with one target are merged; states are
// numbered breadth first from the start, so equal trees give equal arrays.  The empty language has no state.
//
// Methods: Thompson 1968; UTF-8 ranges as byte-range sequences (R. Cox, "Regular Expression Matching in the Wild");
// minimisation by refining signatures (Moore 1956), with only touched classes looked at again.
#pragma once
#include <algorithm>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "interrupt.hpp"

namespace wfsa {

using std::vector;

struct VectorHash {
    size_t operator()(const vector<int32_t>& v) const noexcept {
        uint64_t h = 0x9E3779B97F4A7C15ull ^ v.size();
        for (int32_t x : v) { h ^= uint32_t(x); h *= 0xff51afd7ed558ccdull; h ^= h >> 32; }
        return h;
    }
};

struct Edge {
    int32_t target;
    uint8_t lo, hi;
    uint8_t count;  // 1: these bytes begin a counted unit (grammar/regular.py)
    Edge(uint8_t lo_ = 0, uint8_t hi_ = 0, int32_t target_ = 0, uint8_t count_ = 0)
        : target(target_), lo(lo_), hi(hi_), count(count_) {}
    bool operator==(const Edge& o) const { return lo == o.lo && hi == o.hi && target == o.target && count == o.count; }
    bool continues(int32_t hi_before, int32_t target_before, uint8_t count_before) const {
        return target_before == target && count_before == count && hi_before + 1 == lo;
    }
    int32_t label() const { return lo << 9 | hi << 1 | count; }
};

struct Dfa {
    vector<int32_t> indptr{0};
    vector<Edge> edges;
    vector<uint8_t> accept;

    int32_t size() const { return int32_t(accept.size()); }
    int32_t step(int32_t s, uint8_t b) const {
        for (int32_t e = indptr[s]; e < indptr[s + 1]; ++e)
            if (b <= edges[e].hi) return b >= edges[e].lo ? edges[e].target : -1;
        return -1;
    }
};

// Sort edges of one state and merge neighbours; the ranges must be disjoint.
inline void tidy(vector<Edge>& es) {
    std::sort(es.begin(), es.end(), [](const Edge& a, const Edge& b) { return a.lo < b.lo; });
    size_t n = 0;
    for (const Edge& e : es) {
        if (n && e.continues(es[n - 1].hi, es[n - 1].target, es[n - 1].count)) es[n - 1].hi = e.hi;
        else es[n++] = e;
    }
    es.resize(n);
}

// A set of words (word_set.hpp) is deterministic and minimal as it is, and may have millions of states.  Where one is all
// that is left to be read, the automaton before it leads into it: targets from kTail on are the states of such a tail.
constexpr int32_t kTail = 1 << 29;

// Moore refinement; cls and members describe the coarsest partition of the live states.
inline void refine(const vector<vector<Edge>>& out, const vector<uint8_t>& accept, const vector<vector<int32_t>>& into,
                   const vector<uint8_t>& live, vector<int32_t>& cls, vector<vector<int32_t>>& members) {
    // Moore refinement over classes: a class is looked at again only when a successor of a member changed class.
    const int32_t n = int32_t(out.size());
    members.resize(2);
    for (int32_t s = 0; s < n; ++s)
        if (live[s]) { cls[s] = accept[s] ? 1 : 0; members[cls[s]].push_back(s); }
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
            for (const Edge& e : out[s]) {
                const bool tail = e.target >= kTail;
                if (!tail && !live[e.target]) continue;
                const Edge to{e.lo, e.hi, tail ? e.target : cls[e.target], e.count};
                if (!merged.empty() && to.continues(merged.back().hi, merged.back().target, merged.back().count)) merged.back().hi = e.hi;
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
            for (int32_t p : into[s])
                if (live[p] && !dirty[cls[p]]) { dirty[cls[p]] = 1; queue.push_back(cls[p]); }
    }
}

// The same for large automata, where refinement is quadratic (a counter to 5,000 splits off one state a round): one pass
// in post-order that unites states with equal acceptance and equal successors.  Exact where there are no cycles but
// self-loops; elsewhere it may leave equal states apart, which costs space only.
constexpr int32_t kRefineMost = 400;

inline void merge_equal(int32_t start, const vector<vector<Edge>>& out, const vector<uint8_t>& accept, const vector<uint8_t>& live,
                        vector<int32_t>& cls, vector<vector<int32_t>>& members) {
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> known;
    vector<uint8_t> seen(out.size(), 0);
    vector<std::pair<int32_t, size_t>> path{{start, 0}};
    vector<int32_t> sig;
    seen[start] = 1;
    while (!path.empty()) {
        poll();
        auto& [s, k] = path.back();
        if (k < out[s].size()) {
            const int32_t t = out[s][k++].target;
            if (t < kTail && live[t] && !seen[t]) { seen[t] = 1; path.push_back({t, 0}); }
            continue;
        }
        sig.assign(1, accept[s]);
        for (const Edge& e : out[s]) {
            const bool tail = e.target >= kTail;
            if (!tail && !live[e.target]) continue;
            sig.push_back(e.label());
            sig.push_back(e.target == s ? -1 : tail ? e.target : cls[e.target] >= 0 ? cls[e.target] : -2 - e.target);
        }
        auto got = known.emplace(sig, int32_t(members.size()));
        if (got.second) members.emplace_back();
        cls[s] = got.first->second;
        members[cls[s]].push_back(s);
        path.pop_back();
    }
}

// Trim to co-accessible states, minimise, number breadth first.  States from kTail on are those of `tail`.
inline Dfa finish(int32_t start, const vector<vector<Edge>>& out, const vector<uint8_t>& accept, const Dfa& tail = {}) {
    const int32_t n = int32_t(out.size());
    vector<vector<int32_t>> into(n);
    vector<uint8_t> live(n, 0);
    vector<int32_t> todo;
    for (int32_t s = 0; s < n; ++s) {
        for (const Edge& e : out[s]) {
            if (e.target >= kTail) live[s] = 1;
            else into[e.target].push_back(s);
        }
        if (accept[s]) live[s] = 1;
        if (live[s]) todo.push_back(s);
    }
    while (!todo.empty()) {
        int32_t s = todo.back(); todo.pop_back();
        for (int32_t p : into[s]) if (!live[p]) { live[p] = 1; todo.push_back(p); }
    }
    Dfa dfa;
    if (start < kTail && (n == 0 || !live[start])) return dfa;

    vector<int32_t> cls(n, -1);
    vector<vector<int32_t>> members;
    if (n > kRefineMost) merge_equal(start, out, accept, live, cls, members);
    else refine(out, accept, into, live, cls, members);

    vector<int32_t> number(members.size(), -1), tail_number(size_t(tail.size()), -1), order;
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
            for (int32_t e = tail.indptr[s]; e < tail.indptr[s + 1]; ++e)
                row.push_back({tail.edges[e].lo, tail.edges[e].hi, number_of(kTail + tail.edges[e].target)});
            dfa.accept.push_back(tail.accept[s]);
        } else {
            const int32_t first = members[order[k]].front();
            for (const Edge& e : out[first])
                if (e.target >= kTail) row.push_back({e.lo, e.hi, number_of(e.target), e.count});
                else if (live[e.target]) row.push_back({e.lo, e.hi, number_of(cls[e.target]), e.count});
            tidy(row);
            dfa.accept.push_back(accept[first]);
        }
        dfa.edges.insert(dfa.edges.end(), row.begin(), row.end());
        dfa.indptr.push_back(int32_t(dfa.edges.size()));
    }
    return dfa;
}

// Split the union of many edge lists into disjoint ranges; calls visit(lo, hi, targets) with sorted unique targets.
struct RangeSplitter {
    vector<std::pair<int32_t, int32_t>> opens;  // (position, +target+1 / -(target+1))
    vector<int32_t> active, out;
    int64_t work = 0;  // steps taken, for who has to bound them
    void clear() { opens.clear(); }
    void add(uint8_t lo, uint8_t hi, int32_t target) {
        opens.push_back({lo, target + 1});
        opens.push_back({int32_t(hi) + 1, -(target + 1)});
    }
    template <class Visit> void run(Visit visit) {
        std::sort(opens.begin(), opens.end());
        active.clear();
        for (size_t i = 0; i < opens.size();) {
            int32_t at = opens[i].first;
            for (; i < opens.size() && opens[i].first == at; ++i) {
                work += int64_t(active.size()) / 8 + 1;
                if (opens[i].second > 0) active.push_back(opens[i].second - 1);
                else active.erase(std::find(active.begin(), active.end(), -opens[i].second - 1));
            }
            if (active.empty() || i == opens.size()) continue;
            work += int64_t(active.size());
            out.assign(active.begin(), active.end());
            std::sort(out.begin(), out.end());
            out.erase(std::unique(out.begin(), out.end()), out.end());
            visit(uint8_t(at), uint8_t(opens[i].first - 1), out);
        }
    }
};

struct Fragment { int32_t start, end; };  // NFA piece: one entry, one exit

class Nfa {
  public:
    explicit Nfa(int64_t max_states) : limit_(max_states) {}

    Fragment empty() { int32_t s = state(); return {s, s}; }
    Fragment nothing() { return {state(), state()}; }
    Fragment bytes(const uint8_t* p, size_t n) {
        int32_t s = state(), at = s;
        for (size_t i = 0; i < n; ++i) { int32_t t = state(); byte_[at].push_back({p[i], p[i], t}); at = t; }
        return {s, at};
    }
    void byte_range(Fragment f, uint8_t lo, uint8_t hi) { byte_[f.start].push_back({lo, hi, f.end}); }
    Fragment pair() { return {state(), state()}; }
    void epsilon(int32_t from, int32_t to) { eps_[from].push_back(to); }

    // One code point in [lo, hi], UTF-8 encoded, from f.start to f.end.  Surrogates must be excluded by the caller.
    void code_points(Fragment f, uint32_t lo, uint32_t hi) {
        static const uint32_t tops[4] = {0x7F, 0x7FF, 0xFFFF, 0x10FFFF};
        for (int len = 1; len <= 4; ++len) {
            uint32_t top = tops[len - 1], low = len == 1 ? 0 : tops[len - 2] + 1;
            if (lo <= top && hi >= low) utf8(f.start, f.end, std::max(lo, low), std::min(hi, top), len, len);
        }
    }

    Fragment embed(const Dfa& d) {
        int32_t base = int32_t(byte_.size());
        for (int32_t s = 0; s < d.size(); ++s) {
            state();
            for (int32_t e = d.indptr[s]; e < d.indptr[s + 1]; ++e)
                byte_[base + s].push_back({d.edges[e].lo, d.edges[e].hi, base + d.edges[e].target, d.edges[e].count});
        }
        int32_t end = state();
        for (int32_t s = 0; s < d.size(); ++s) if (d.accept[s]) epsilon(base + s, end);
        return {d.size() ? base : state(), end};
    }

    // The same for an automaton that is large and with which every word ends that goes through it; at most one.
    bool has_tail() const { return tail_.size() > 0; }
    Fragment embed_last(Dfa&& d) {
        tail_ = std::move(d);
        return {kTail, state()};
    }

    // The first byte of every word of this fragment is counted; nothing may lead back to its start.
    void count_first(Fragment f) {
        mark_.assign(byte_.size(), 0);
        vector<int32_t> set{f.start};
        close(set);
        for (int32_t q : set) for (Edge& e : byte_[q]) e.count = 1;
    }

    // Raises LimitExceeded beyond `limit` states, or when the sets of NFA states grow so that more would take minutes.
    Dfa determinize(Fragment f) {
        const int64_t most_work = kWork * (limit_ + 1000);
        int64_t work = 0;
        std::unordered_map<vector<int32_t>, int32_t, VectorHash> ids;
        vector<vector<int32_t>> sets;
        vector<vector<Edge>> out;
        vector<uint8_t> accept;
        mark_.assign(byte_.size(), 0);
        auto intern = [&](vector<int32_t>& set) {
            poll();
            work += close(set);
            if (set.size() == 1 && set[0] >= kTail) return set[0];  // what follows is known
            if (work > most_work)
                throw LimitExceeded("a terminal needs more than " + std::to_string(most_work) + " steps to become a DFA");
            auto got = ids.emplace(set, int32_t(sets.size()));
            if (got.second) {
                if (int64_t(sets.size()) >= limit_)
                    throw LimitExceeded("a terminal needs more than " + std::to_string(limit_) + " DFA states");
                sets.push_back(set);
                out.emplace_back();
                bool accepts = std::binary_search(set.begin(), set.end(), f.end);
                for (int32_t q : set) accepts |= q >= kTail && tail_.accept[q - kTail];
                accept.push_back(accepts);
            }
            return got.first->second;
        };
        vector<int32_t> set{f.start};
        const int32_t start = intern(set);
        RangeSplitter split;
        for (size_t s = 0; s < sets.size(); ++s) {
            split.clear();
            for (int32_t q : sets[s]) {
                if (q < kTail) {
                    for (const Edge& e : byte_[q]) split.add(e.lo, e.hi, e.target << 1 | e.count);
                    continue;
                }
                for (int32_t e = tail_.indptr[q - kTail]; e < tail_.indptr[q - kTail + 1]; ++e)
                    split.add(tail_.edges[e].lo, tail_.edges[e].hi, (kTail + tail_.edges[e].target) << 1);
            }
            work += split.work;
            split.work = 0;
            split.run([&](uint8_t lo, uint8_t hi, const vector<int32_t>& targets) {
                const int32_t count = targets.front() & 1;
                set.clear();
                for (int32_t t : targets) {
                    if ((t & 1) != count) throw Undecided("a byte of a counted terminal both begins a unit and does not");
                    set.push_back(t >> 1);
                }
                int32_t t = intern(set);
                out[s].push_back({lo, hi, t, uint8_t(count)});
            });
            tidy(out[s]);
        }
        return finish(start, out, accept, tail_);
    }

  private:
    static constexpr int64_t kWork = 1000;  // steps for each state that is allowed
    int64_t limit_;
    vector<vector<Edge>> byte_;
    vector<vector<int32_t>> eps_;
    vector<uint8_t> mark_;
    Dfa tail_;

    int32_t state() {
        if (int64_t(byte_.size()) >= 8 * limit_)
            throw LimitExceeded("a terminal needs more than " + std::to_string(8 * limit_) + " NFA states");
        byte_.emplace_back();
        eps_.emplace_back();
        return int32_t(byte_.size()) - 1;
    }
    // ε-closure in place; keeps only states that have byte edges or no ε edge (the others carry nothing).
    // Returns the number of steps.
    int64_t close(vector<int32_t>& set) {
        vector<int32_t> todo, seen, tails;
        auto meet = [&](int32_t q) {
            if (q >= kTail) tails.push_back(q);
            else if (!mark_[q]) { mark_[q] = 1; seen.push_back(q); todo.push_back(q); }
        };
        for (int32_t q : set) meet(q);
        while (!todo.empty()) {
            int32_t q = todo.back(); todo.pop_back();
            for (int32_t r : eps_[q]) meet(r);
        }
        set = tails;
        for (int32_t q : seen) {
            mark_[q] = 0;
            if (!byte_[q].empty() || eps_[q].empty()) set.push_back(q);
        }
        std::sort(set.begin(), set.end());
        if (tails.size() > 1) set.erase(std::unique(set.begin(), set.end()), set.end());
        return int64_t(seen.size());
    }
    void utf8(int32_t from, int32_t to, uint32_t lo, uint32_t hi, int len, int left) {
        auto lead = [&](uint32_t c) -> uint8_t {
            if (left == 1) return len == 1 ? c : 0x80 | (c & 0x3F);
            uint32_t v = c >> (6 * (left - 1));
            static const uint8_t marks[5] = {0, 0, 0xC0, 0xE0, 0xF0};
            return left == len ? marks[len] | v : 0x80 | (v & 0x3F);
        };
        if (left == 1) { byte_[from].push_back({lead(lo), lead(hi), to}); return; }
        uint32_t mask = (1u << (6 * (left - 1))) - 1;
        if ((lo & ~mask) == (hi & ~mask)) {
            int32_t mid = state();
            byte_[from].push_back({lead(lo), lead(lo), mid});
            utf8(mid, to, lo, hi, len, left - 1);
            return;
        }
        if (lo & mask) {  // partial first block
            utf8(from, to, lo, lo | mask, len, left);
            lo = (lo | mask) + 1;
        }
        if (lo > hi) return;
        if ((hi & mask) != mask) {  // partial last block
            utf8(from, to, hi & ~mask, hi, len, left);
            if ((hi & ~mask) == 0 || lo > (hi & ~mask) - 1) return;
            hi = (hi & ~mask) - 1;
        }
        int32_t at = from;  // whole blocks: lead range, then free continuation bytes
        int32_t mid = state();
        byte_[at].push_back({lead(lo), lead(hi), mid});
        for (int k = left - 1; k >= 1; --k) {
            int32_t next = k == 1 ? to : state();
            byte_[mid].push_back({0x80, 0xBF, next});
            mid = next;
        }
    }
};

// Words of `a` that are in `b` (keep=true) or not in `b` (keep=false).
inline Dfa product(const Dfa& a, const Dfa& b, bool keep, int64_t limit) {
    std::unordered_map<uint64_t, int32_t> ids;
    vector<std::pair<int32_t, int32_t>> pairs;
    vector<vector<Edge>> out;
    vector<uint8_t> accept;
    auto intern = [&](int32_t s, int32_t t) {
        poll();
        auto got = ids.emplace(uint64_t(uint32_t(s)) << 32 | uint32_t(t), int32_t(pairs.size()));
        if (got.second) {
            if (int64_t(pairs.size()) >= limit)
                throw LimitExceeded("an intersection or difference needs more than " + std::to_string(limit) + " DFA states");
            pairs.push_back({s, t});
            out.emplace_back();
            bool in_b = t >= 0 && b.accept[t];
            accept.push_back(a.accept[s] && in_b == keep);
        }
        return got.first->second;
    };
    if (a.size() == 0 || (keep && b.size() == 0)) return Dfa{};
    intern(0, b.size() ? 0 : -1);
    for (size_t k = 0; k < pairs.size(); ++k) {
        auto [s, t] = pairs[k];
        for (int32_t e = a.indptr[s]; e < a.indptr[s + 1]; ++e) {
            int32_t lo = a.edges[e].lo, hi = a.edges[e].hi;
            int32_t f = t < 0 ? 0 : b.indptr[t], f_end = t < 0 ? 0 : b.indptr[t + 1];
            while (lo <= hi) {
                while (f < f_end && b.edges[f].hi < lo) ++f;
                int32_t to, target = -1;
                if (f == f_end) to = hi;
                else if (b.edges[f].lo > lo) to = std::min<int32_t>(hi, b.edges[f].lo - 1);
                else { to = std::min<int32_t>(hi, b.edges[f].hi); target = b.edges[f].target; }
                if (target >= 0 || !keep) {
                    int32_t id = intern(a.edges[e].target, target);
                    out[k].push_back({uint8_t(lo), uint8_t(to), id, a.edges[e].count});
                }
                lo = to + 1;
            }
        }
        tidy(out[k]);
    }
    return finish(0, out, accept);
}

// The language without the empty word.  The start gets a non-accepting copy when something leads back to it.
inline Dfa without_epsilon(const Dfa& d) {
    if (d.size() == 0 || !d.accept[0]) return d;
    vector<vector<Edge>> out(d.size() + 1);
    vector<uint8_t> accept(d.accept);
    for (int32_t s = 0; s < d.size(); ++s) out[s].assign(d.edges.begin() + d.indptr[s], d.edges.begin() + d.indptr[s + 1]);
    out[d.size()] = out[0];
    accept.push_back(0);
    return finish(d.size(), out, accept);
}

// Names for states that mean the same wherever they occur: equal names, equal residual languages.
//
// States that loop on many bytes (inside a string, inside an identifier) are named by their residual automaton spelled
// out, so that the body of a string has one name in all terminals that contain one; others are named by their DFA.
class StateNames {
  public:
    // `known`: the automaton is kept, so its states will be met again under their names; if not, they get none (-1).
    static vector<int64_t> of(const Dfa& d, bool known) {
        static StateNames names;
        std::lock_guard<std::mutex> lock(names.mutex_);
        vector<int64_t> out;
        vector<int32_t> key;
        for (int32_t s = 0; s < d.size(); ++s) {
            if (!large_loop(d, s) || !spell(d, s, key)) { out.push_back(known ? names.next_++ : -1); continue; }
            const auto got = names.known_.emplace(key, names.next_);
            names.next_ += got.second;
            out.push_back(got.first->second);
        }
        return out;
    }

  private:
    static constexpr int32_t kLoop = 32;       // bytes
    static constexpr size_t kMaxStates = 64;   // of a residual automaton
    std::mutex mutex_;
    std::unordered_map<vector<int32_t>, int64_t, VectorHash> known_;
    int64_t next_ = 0;

    static bool large_loop(const Dfa& d, int32_t s) {
        int32_t n = 0;
        for (int32_t e = d.indptr[s]; e < d.indptr[s + 1]; ++e)
            if (d.edges[e].target == s) n += d.edges[e].hi - d.edges[e].lo + 1;
        return n >= kLoop;
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
