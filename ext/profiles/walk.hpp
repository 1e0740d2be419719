// The vocabulary trie in step with the lexer, from a state on: which tokens stay inside, and which leave tails.
//
// Subtrees on whose bytes the state loops are one step.  Cost: the trie nodes with a live state.
#pragma once
#include "containers/growth_lock.hpp"
#include "profiles/pieces.hpp"

namespace wfsa {

class Walk {
  public:
    vector<int32_t> terms, spans;  // local number -> terminal, span
    Pieces pieces;
    int64_t work = 0;  // trie nodes walked so far

    Walk(const Trie& trie, Lexer& lexer, ProfileCache& cache, int64_t n_words)
        : pieces(trie, lexer, cache), trie_(trie), lexer_(lexer), cache_(cache), n_words_(n_words) {}

    void begin() {
        tokens_.clear();
        counted_.clear();
        pieces.list.clear();
    }
    // All tokens from state y on.
    WalkResult from(int32_t y) {
        begin();
        const int64_t before = work;
        if (lexer_.terms.longest && !pieces.wide) segments(y);
        else below(0, y, 0, 0);
        WalkResult out = collect();
        out.work = work - before;
        return out;
    }
    WalkResult collect() {
        Inside inside;
        inside.set_tokens(tokens_, n_words_, bits_);
        inside.set_groups(counted_, n_words_);
        WalkResult out;
        out.inside = cache_.insides.intern(std::move(inside));
        pieces.collect(out, terms);
        return out;
    }

    // Steps that a comparison of two states takes, too (delta.hpp).

    void below(int32_t node, int32_t y, int32_t depth, int32_t count) {
        lexer_.expand(y);
        children(node, lexer_.states[y], [&](int32_t c, const Edge& e) { enter(c, e, depth, count); });
    }
    // The tokens of a slot end in state t.
    void inside(int32_t slot, const LexState& t, int32_t count) {
        const int32_t lo = trie_.slot_indptr[slot], hi = trie_.slot_indptr[slot + 1];
        if (t.span < 0) {
            for (int32_t k = lo; k < hi; ++k) tokens_.push_back(trie_.slot_tokens[k]);
            return;
        }
        const int32_t span = local_number(spans, t.span);
        for (int32_t k = lo; k < hi; ++k) counted_.push_back({span, count, trie_.slot_tokens[k]});
    }
    void close(Retired& out) {
        out.take(tokens_);
        out.take(bits_);
        out.take(counted_);
        out.take(segments_);
        pieces.close(out);
    }
    size_t bytes() const {
        size_t n = pieces.bytes() + heap_bytes(tokens_) + heap_bytes(bits_) + heap_bytes(counted_);
        for (const auto& [key, s] : segments_)
            n += block_bytes(16 + sizeof(s)) + heap_bytes(s.tokens) + heap_bytes(s.pieces);
        return n;
    }

  private:
    struct Segment { vector<int32_t> tokens; vector<Pieces::Piece> pieces; };
    const Trie& trie_;
    Lexer& lexer_;
    ProfileCache& cache_;
    int64_t n_words_;
    vector<int32_t> tokens_;
    vector<uint64_t> bits_;  // none set between walks
    vector<Inside::Counted> counted_;
    std::unordered_map<uint64_t, Segment> segments_;  // (first node, lexer state) -> what a walk finds below

    // Children of `node` whose byte has an edge: visit(child, edge).
    template <class Visit> void children(int32_t node, const LexState& s, Visit visit) {
        int32_t c = trie_.first_child[node], end = trie_.first_child[node + 1];
        const uint8_t* bytes = trie_.byte.data();
        for (const Edge& e : s.edges) {
            if (end - c > 8) c = int32_t(std::lower_bound(bytes + c, bytes + end, e.lo) - bytes);
            else while (c < end && bytes[c] < e.lo) ++c;
            for (; c < end && bytes[c] <= e.hi; ++c) visit(c, e);
            if (c >= end) return;
        }
    }
    void enter(int32_t c, const Edge& e, int32_t depth, int32_t count) {
        if (++work % 64 == 0) GrowthLock::let_read();
        LexState& t = lexer_.states[e.target];
        const int32_t after = lexer_.count_after(t, count, e);
        if (trie_.own[c]) inside(trie_.slot_lo[c], t, after);
        if (trie_.slot_hi[c] - trie_.slot_lo[c] == trie_.own[c]) return;
        lexer_.expand(e.target);
        if (lexer_.decided(e.target, trie_.below[c]) && !(pieces.wide && pieces.cuts(t.accepts, trie_.below[c]))) {
            const bool counts = lexer_.counts(e.target, trie_.below[c]);
            for (int32_t s = trie_.slot_lo[c] + trie_.own[c]; s < trie_.slot_hi[c]; ++s)
                inside(s, t, after + (counts ? trie_.slot_word[s].length - depth - 1 : 0));
            return;
        }
        for (const Accept& a : t.accepts) pieces.add_cut(a, c, depth + 1, after);
        below(c, e.target, depth + 1, after);
    }
    // "longest" (nothing is counted): what is below a first byte depends on the state behind it, which many roots have.
    void segments(int32_t y) {
        lexer_.expand(y);
        children(0, lexer_.states[y], [&](int32_t c, const Edge& e) {
            const uint64_t key = uint64_t(uint32_t(c)) << 32 | uint32_t(e.target);
            const auto got = segments_.find(key);
            if (got == segments_.end()) {
                const auto n = int64_t(tokens_.size()), m = int64_t(pieces.list.size());
                enter(c, e, 0, 0);
                segments_.emplace(key, Segment{{tokens_.begin() + n, tokens_.end()},
                                               {pieces.list.begin() + m, pieces.list.end()}});
                return;
            }
            const Segment& known = got->second;
            tokens_.insert(tokens_.end(), known.tokens.begin(), known.tokens.end());
            pieces.list.insert(pieces.list.end(), known.pieces.begin(), known.pieces.end());
        });
    }
};

}  // namespace wfsa
