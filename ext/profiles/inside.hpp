// The tokens that stay inside the terminals of a lexer state.
//
// Equal sets are one object for a vocabulary (containers/content_table.hpp), so their tokens stand in one order: by id,
// in a group by units and then by id.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "containers/content_table.hpp"

namespace wfsa {

struct Inside {
    // Tokens that end in states with one span (numbered locally), by how many units they have.
    struct Group {
        int32_t local_span, least;           // units of the first ones
        vector<int32_t> tokens, indptr;      // with `least + i` units: indptr[i] .. indptr[i+1]
        vector<uint32_t> bitmap;             // of all, when there are many
        vector<vector<uint32_t>> up_to;      // ... and of those with at most `least + i` units, while much is missing
        int32_t most() const { return least + int32_t(indptr.size()) - 2; }
        bool operator==(const Group& o) const {  // the bitmaps follow from the rest
            return local_span == o.local_span && least == o.least && indptr == o.indptr && tokens == o.tokens;
        }
    };
    struct Counted { int32_t local_span, count, token; };

    vector<uint32_t> bitmap;    // when there are many tokens; else
    vector<int32_t> ids;        // both without the tokens of groups
    vector<Group> groups;

    bool empty() const { return bitmap.empty() && ids.empty() && groups.empty(); }
    bool operator==(const Inside& o) const { return bitmap == o.bitmap && ids == o.ids && groups == o.groups; }
    uint64_t hash() const {
        ContentHash out;
        out.add(bitmap);
        out.add(ids);
        for (const Group& g : groups) {
            out.add(uint64_t(uint32_t(g.local_span)) << 32 | uint32_t(g.least));
            out.add(g.indptr);
            out.add(g.tokens);
        }
        return out.value();
    }
    size_t bytes() const {
        size_t n = sizeof(*this) + 4 * (bitmap.capacity() + ids.capacity()) + sizeof(Group) * groups.capacity();
        for (const Group& g : groups)
            n += 4 * (g.tokens.capacity() + g.indptr.capacity() + g.bitmap.size() * (1 + g.up_to.size()));
        return n;
    }

    // In any order; `n_words` of a bitmap. `bits`: all clear, before and after.
    void set_tokens(const vector<int32_t>& tokens, int64_t n_words, vector<uint64_t>& bits) {
        if (is_many(tokens.size(), n_words)) {
            bitmap.assign(size_t(n_words), 0u);
            for (int32_t t : tokens) bitmap[size_t(t) >> 5] |= 1u << (t & 31);
            return;
        }
        ids.reserve(tokens.size());
        if (tokens.size() < kFew) {
            ids.assign(tokens.begin(), tokens.end());
            std::sort(ids.begin(), ids.end());
            return;
        }
        bits.resize(size_t(n_words + 1) / 2, 0);  // to draw and to read them again is cheaper than to sort them
        for (int32_t t : tokens) bits[size_t(t) >> 6] |= uint64_t(1) << (t & 63);
        for (size_t w = 0; w < bits.size(); ++w) {
            for (uint64_t left = bits[w]; left; left &= left - 1) ids.push_back(int32_t(w << 6) + __builtin_ctzll(left));
            bits[w] = 0;
        }
    }
    // A group for every span, of tokens in any order; no span has a token twice.
    void set_groups(const vector<Counted>& counted, int64_t n_words) {
        int32_t n_spans = 0;
        for (const Counted& c : counted) n_spans = std::max(n_spans, c.local_span + 1);
        for (int32_t span = 0; span < n_spans; ++span) {
            vector<Counted> own;
            for (const Counted& c : counted) if (c.local_span == span) own.push_back(c);
            if (own.empty()) continue;
            sort_by_token(own, n_words);
            add_group(span, own, n_words);
        }
        groups.shrink_to_fit();
    }
    // Of one span, ascending by token.
    void add_group(int32_t local_span, const vector<Counted>& counted, int64_t n_words) {
        auto units = [](const Counted& a, const Counted& b) { return a.count < b.count; };
        const auto [low, high] = std::minmax_element(counted.begin(), counted.end(), units);
        Group g{local_span, low->count, vector<int32_t>(counted.size()), {}, {}, {}};
        g.indptr.assign(size_t(high->count - low->count) + 2, 0);
        for (const Counted& c : counted) ++g.indptr[size_t(c.count - g.least) + 1];
        for (size_t i = 1; i < g.indptr.size(); ++i) g.indptr[i] += g.indptr[i - 1];
        vector<int32_t> at(g.indptr.begin(), g.indptr.end() - 1);
        for (const Counted& c : counted) g.tokens[size_t(at[size_t(c.count - g.least)]++)] = c.token;
        if (is_many(g.tokens.size(), n_words)) draw(g, n_words);
        groups.push_back(std::move(g));
    }
    // Are so many tokens kept as a bitmap, too?  Setting one by one costs about what eight words of a bitmap do.
    static bool is_many(size_t n_tokens, int64_t n_words) { return int64_t(n_tokens) > n_words / 4; }

  private:
    static constexpr size_t kFew = 64;          // tokens that are sorted
    static constexpr size_t kMaxClear = 512;  // tokens cleared one by one from a group's bitmap

    static void draw(Group& g, int64_t n_words) {
        g.bitmap.assign(size_t(n_words), 0u);
        for (size_t i = 0; i + 1 < g.indptr.size(); ++i) {
            for (int32_t k = g.indptr[i]; k < g.indptr[i + 1]; ++k)
                g.bitmap[size_t(g.tokens[size_t(k)]) >> 5] |= 1u << (g.tokens[size_t(k)] & 31);
            if (g.tokens.size() - size_t(g.indptr[i + 1]) > kMaxClear) g.up_to.push_back(g.bitmap);
        }
    }
    static void sort_by_token(vector<Counted>& counted, int64_t n_words) {
        if (!is_many(counted.size(), n_words)) {
            auto by_token = [](const Counted& a, const Counted& b) { return a.token < b.token; };
            std::sort(counted.begin(), counted.end(), by_token);
            return;
        }
        vector<int32_t> count(size_t(n_words) * 32, -1);  // by token: no sorting of a whole vocabulary
        const int32_t span = counted.front().local_span;
        for (const Counted& c : counted) count[size_t(c.token)] = c.count;
        counted.clear();
        for (size_t t = 0; t < count.size(); ++t) if (count[t] >= 0) counted.push_back({span, count[t], int32_t(t)});
    }
};

}  // namespace wfsa
