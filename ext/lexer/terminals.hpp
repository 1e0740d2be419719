// The terminals of a grammar as one automaton: the byte DFAs side by side, their states numbered through.
//
// A state of one terminal's DFA is a component. What lexing needs to know of a terminal stands beside: its preference
// at equal length, whether it is ignored, whether its words are counted, and which bytes can begin what follows it.
#pragma once
#include <map>

#include "containers/retired.hpp"
#include "lexer/units_left.hpp"
#include "regular/likeness.hpp"
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
    vector<int32_t> fewest_left, most_left;  // component -> how many units can still come, of counted terminals
    vector<uint8_t> by_bounds;      // terminal -> is it counted, and none or any number can come from each component?
    vector<uint8_t> ignore;         // terminal is ignored between others
    vector<uint8_t> restarts_lexing;  // ... and short like white space: its end is no event, lexing goes on by itself
    vector<int64_t> name;           // component -> name of the DFA's state (state_names.hpp), -1 if it has none
    vector<int32_t> kind, changes_indptr{0};  // by component, as Likeness has them; -1: it is like no other
    vector<Likeness::Change> changes;
    vector<int32_t> alike_for;      // terminal -> length of the longest texts that `changes` knows of
    vector<ByteBits> follow;        // terminal -> bytes that can begin what follows it
    bool longest = false;

    static constexpr int32_t kNoMost = INT32_MAX;

    template <class Self, class V> static void fields(Self& t, V& v, int64_t n_terms) {
        const size_t n = size_t(n_terms);
        const Within flag{0, 2}, units{0, int64_t(1) << 31};
        v.part("terminals");
        v.kept("term", t.term, Within{0, n_terms});
        const int64_t n_components = int64_t(t.term.size());
        v.kept("accept", t.accept, flag, size_t(n_components));
        v.kept("edges", t.edges, Within{0, n_components});
        v.kept("indptr", t.indptr, Pointers{t.edges.size()}, size_t(n_components) + 1);
        v.kept("start", t.start, Within{-1, n_components}, n);
        v.kept("rank", t.rank, units, n);
        v.kept("match", t.match, Within{0, 3}, n);
        v.kept("least", t.least, units, n);
        v.kept("most", t.most, units, n);
        v.kept("counted", t.counted, flag, n);
        v.kept("ignore", t.ignore, flag, n);
        v.kept("restarts_lexing", t.restarts_lexing, flag, n);
        v.kept("follow", t.follow, Within{-units.hi, units.hi}, n);
        v.made(t.fewest_left, t.most_left, t.by_bounds);
        v.expansion(t.name, t.kind, t.changes_indptr, t.changes, t.alike_for);
    }
    // After the fields are read: the components of a terminal lie together, the first one is its start.
    void restored(int64_t n_terms) {
        if (!std::is_sorted(term.begin(), term.end())) throw Damaged("the components of a terminal do not lie together");
        for (size_t c = 0; c < term.size(); ++c)
            for (int32_t e = indptr[c]; e < indptr[c + 1]; ++e)
                if (term[size_t(edges[size_t(e)].target)] != term[c]) throw Damaged("an edge leads to another terminal");
        for (int32_t k = 0; k < n_terms; ++k) {
            const auto first = std::lower_bound(term.begin(), term.end(), k);
            const bool there = first != term.end() && *first == k;
            if (start[size_t(k)] != (there ? int32_t(first - term.begin()) : -1)) throw Damaged("a terminal begins elsewhere");
            find_units_left(k, start[size_t(k)]);
        }
        name.assign(term.size(), -1);  // these only shorten expansion
        kind.assign(term.size(), -1);
    }

    void add(const Dfa& d, const vector<int64_t>& names, const Likeness& likeness, int32_t rank_, int32_t match_,
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
            for (int32_t e = d.indptr[s]; e < d.indptr[s + 1]; ++e)
                edges.push_back({d.edges[e].lo, d.edges[e].hi, base + d.edges[e].target,
                                 uint8_t(d.edges[e].count && counted_)});
            indptr.push_back(int32_t(edges.size()));
            term.push_back(t);
            accept.push_back(d.accept[s]);
        }
        find_units_left(t, base);
        if (counted_ && !by_bounds[size_t(t)]) add_likeness(FindLikeness(d, by_units_left(base)).run(), base);
        else add_likeness(likeness, base);
    }
    void add_likeness(const Likeness& found, int32_t base) {
        for (size_t s = 0; s < found.kind.size(); ++s) {
            kind.push_back(found.kind[s] < 0 ? -1 : base + found.kind[s]);
            changes_indptr.push_back(int32_t(changes.size()) + found.indptr[s + 1]);
        }
        changes.insert(changes.end(), found.changes.begin(), found.changes.end());
        alike_for.push_back(found.longest);
    }
    // A number for each component from `base` on: equal where as many units can still come.
    vector<int32_t> by_units_left(int32_t base) const {
        std::map<std::pair<int32_t, int32_t>, int32_t> known;
        vector<int32_t> out;
        for (size_t c = size_t(base); c < term.size(); ++c)
            out.push_back(known.emplace(std::make_pair(fewest_left[c], most_left[c]), int32_t(known.size())).first->second);
        return out;
    }
    // Does no text of at most `length` bytes tell the components apart?
    bool alike(int32_t c, int32_t d, int32_t length) const {
        if (c == d) return true;
        if (kind[size_t(c)] < 0 || kind[size_t(c)] != kind[size_t(d)] || length > alike_for[size_t(term[c])]) return false;
        return Likeness::part_of(changes_indptr, changes, c, length) == Likeness::part_of(changes_indptr, changes, d, length);
    }
    // How long texts may be that do not tell the components apart, as far as is known.
    int32_t alike_length(int32_t c, int32_t d) const {
        if (c == d) return INT32_MAX;
        if (kind[size_t(c)] < 0 || kind[size_t(c)] != kind[size_t(d)]) return 0;
        int32_t i = changes_indptr[size_t(c)], k = changes_indptr[size_t(d)];
        const int32_t i_end = changes_indptr[size_t(c) + 1], k_end = changes_indptr[size_t(d) + 1];
        int32_t part_of_c = -1, part_of_d = -1;
        while (i < i_end || k < k_end) {
            const int32_t length = std::min(i < i_end ? changes[size_t(i)].length : INT32_MAX,
                                            k < k_end ? changes[size_t(k)].length : INT32_MAX);
            if (i < i_end && changes[size_t(i)].length == length) part_of_c = changes[size_t(i++)].part;
            if (k < k_end && changes[size_t(k)].length == length) part_of_d = changes[size_t(k++)].part;
            if (part_of_c != part_of_d) return length - 1;
        }
        return alike_for[size_t(term[c])];
    }
    // Of terminal t, whose components are those from `base` on.
    void find_units_left(int32_t t, int32_t base) {
        const size_t n = term.size();
        fewest_left.resize(n, 0);
        most_left.resize(n, 0);
        by_bounds.resize(size_t(t) + 1, 0);
        if (!counted[size_t(t)]) return;
        Dfa d;
        for (size_t c = size_t(base); c < n && term[c] == t; ++c) {
            vector<Edge> row(edges.begin() + indptr[c], edges.begin() + indptr[c + 1]);
            for (Edge& e : row) e.target -= base;
            d.add_row(row);
            d.accept.push_back(accept[c]);
        }
        const UnitsLeft left(d);
        by_bounds[size_t(t)] = 1;
        for (int32_t s = 0; s < d.size(); ++s) {
            fewest_left[size_t(base + s)] = left.fewest[size_t(s)];
            most_left[size_t(base + s)] = left.most[size_t(s)];
            by_bounds[size_t(t)] &= !left.fewest[size_t(s)] && (!left.most[size_t(s)] || left.most[size_t(s)] == kNoMost);
        }
    }
    // With how many units a component of a counted terminal is alive: from, to.
    std::pair<int32_t, int32_t> alive(int32_t c) const {
        const size_t t = size_t(term[size_t(c)]);
        const int32_t few = fewest_left[size_t(c)], many = most_left[size_t(c)];
        return {many == kNoMost ? 0 : std::max(least[t] - many, 0), most[t] == kNoMost ? kNoMost : most[t] - few};
    }
    bool has_word(int32_t t) const {
        if (start[size_t(t)] < 0) return false;
        if (!counted[size_t(t)]) return true;
        const auto range = alive(start[size_t(t)]);
        return range.first <= 0 && range.second >= 0;
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
    bool competes(int32_t c) const { return match[size_t(term[c])] != uint8_t(Match::kAny); }
    bool goes_on(int32_t c) const { return indptr[c] < indptr[c + 1]; }
};

}  // namespace wfsa
