// The terminals of a grammar as one automaton: the byte DFAs side by side, their states numbered through.
//
// A state of one terminal's DFA is a component. What lexing needs to know of a terminal stands beside: its preference
// at equal length, whether it is ignored, whether its words are counted, and which bytes can begin what follows it.
#pragma once
#include "regular/counter.hpp"
#include "regular/range_splitter.hpp"
#include "vocabulary/vocabulary_trie.hpp"

namespace wfsa {

// How a terminal that competes with others ends, under "longest".
enum class Match : uint8_t {
    kLongest,   // where no other one matches longer
    kShortest,  // as soon as it matches, and all others that began where it began are given up
    kAny,       // wherever it matches: it neither gives way to others nor makes them give way
};

struct Terminals {
    vector<int32_t> indptr{0};      // edges of component c: indptr[c] .. indptr[c+1]
    vector<Edge> edges;
    vector<int32_t> term;           // component -> terminal
    vector<uint8_t> accept;         // component accepts?
    vector<int32_t> start;          // terminal -> start component, -1 for token-level terminals
    vector<int32_t> rank;           // terminal -> preference at equal length, higher wins
    vector<uint8_t> match;          // terminal -> Match
    vector<int32_t> least, most;    // terminal -> how many units its words have, if it is counted
    vector<uint8_t> counted;        // terminal -> are its words counted?
    vector<uint8_t> open;           // component -> can it still count? (of counted terminals)
    vector<uint8_t> ignore;         // terminal is ignored between others
    vector<uint8_t> restarts_lexing;  // ... and short like white space: its end is no event, lexing goes on by itself
    vector<int64_t> name;           // component -> name of the DFA's state (state_names.hpp), -1 if it has none
    vector<int32_t> place, remaining;  // components in counters (counter.hpp)
    vector<ByteBits> follow;        // terminal -> bytes that can begin what follows it
    bool longest = false;

    static constexpr int32_t kNoMost = INT32_MAX;

    void add(const Dfa& d, const vector<int64_t>& names, const Counters& counters, int32_t rank_, int32_t match_,
             bool ignore_, bool counted_ = false, int32_t least_ = 0, int32_t most_ = kNoMost) {
        int32_t base = int32_t(term.size()), t = int32_t(start.size());
        counted.push_back(counted_);
        least.push_back(least_);
        most.push_back(most_);
        start.push_back(d.size() ? base : -1);
        rank.push_back(rank_);
        match.push_back(uint8_t(match_));
        ignore.push_back(ignore_);
        restarts_lexing.push_back(ignore_ && !large(d));
        name.insert(name.end(), names.begin(), names.end());
        for (int32_t s = 0; s < d.size(); ++s) {
            place.push_back(counters.place[s] < 0 ? -1 : base + counters.place[s]);
            remaining.push_back(counters.remaining[s]);
            for (int32_t e = d.indptr[s]; e < d.indptr[s + 1]; ++e)
                edges.push_back({d.edges[e].lo, d.edges[e].hi, base + d.edges[e].target,
                                 uint8_t(d.edges[e].count && counted_)});
            indptr.push_back(int32_t(edges.size()));
            term.push_back(t);
            accept.push_back(d.accept[s]);
        }
        open.resize(term.size(), 0);
        if (counted_) find_open(base);
    }
    // Which components, from `base` on, can reach a counted edge.
    void find_open(int32_t base) {
        const int32_t n = int32_t(term.size());
        for (bool changed = true; changed;) {
            changed = false;
            for (int32_t c = n; c-- > base;)
                for (int32_t e = indptr[c]; !open[c] && e < indptr[c + 1]; ++e)
                    changed |= open[c] = edges[e].count || open[edges[e].target];
        }
    }
    bool takes(int32_t t, int32_t count) const { return !counted[t] || (least[t] <= count && count <= most[t]); }
    // Comments are ignored, too, but nearly every token fits inside one: lexed once, and cut like other terminals.
    static bool large(const Dfa& d) {
        for (int32_t s = 0; s < d.size(); ++s) {
            const auto edges = d.edges.begin();
            if (bytes_to(edges + d.indptr[s], edges + d.indptr[s + 1], s) >= kManyBytes) return true;
        }
        return false;
    }
    // What only expansion needs.
    void close(Retired& out) {
        out.take(name);
        out.take(place);
        out.take(remaining);
    }
    bool competes(int32_t c) const { return match[size_t(term[c])] != uint8_t(Match::kAny); }
    bool goes_on(int32_t c) const { return indptr[c] < indptr[c + 1]; }
};

}  // namespace wfsa
