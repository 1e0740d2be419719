// The tails that one walk meets, by where they lie in the vocabulary trie; spelled out only when they are new.
//
// Most walks meet the same pieces as others, and thus the same tails: a piece is a few numbers, a tail is text.
#pragma once
#include "containers/growth_lock.hpp"
#include "lexer/lexer.hpp"
#include "profiles/cache.hpp"

namespace wfsa {

// Different numbers in the order in which they are met.
inline int32_t local_number(vector<int32_t>& known, int32_t x) {
    const auto at = std::find(known.begin(), known.end(), x);
    if (at == known.end()) { known.push_back(x); return int32_t(known.size()) - 1; }
    return int32_t(at - known.begin());
}

class Pieces {
  public:
    // Tails behind a cut at a node (by what can come first), below a node that has been read, or of one slot.
    enum Kind : int32_t { kCut, kBelow, kSlot };
    struct Piece { int32_t term, kind, at, watch, depth, count; };
    vector<Piece> list;
    bool wide = false;  // walking for the cache: tails may begin with any byte

    Pieces(const VocabularyTrie& trie, Lexer& lexer, ProfileCache& cache) : trie_(trie), lexer_(lexer), cache_(cache) {}

    void add(int32_t term, Kind kind, int32_t at, int32_t watch, int32_t depth, int32_t count) {
        list.push_back({term, kind, at, watch, depth, lexer_.terms[term].counted ? count : 0});
    }
    void add_cut(const Accept& a, int32_t node, int32_t depth, int32_t count) {
        const ByteBits& first = first_bytes(a);
        for (int32_t c = trie_[node].first_child; c < trie_[node].end_child; ++c)
            if (first.has(trie_.byte[c])) return add(a.term, kCut, node, a.watch, depth, count);
    }
    // The tails of each terminal, which is numbered in `terms`.
    void collect(WalkResult& out, vector<int32_t>& terms) {
        auto by_term = [](const Piece& a, const Piece& b) { return a.term < b.term; };
        if (!std::is_sorted(list.begin(), list.end(), by_term)) std::stable_sort(list.begin(), list.end(), by_term);
        vector<int32_t> key;
        for (size_t i = 0, end; i < list.size(); i = end) {
            GrowthLock::let_read();
            const int32_t term = list[i].term;
            key = {term, wide};
            for (end = i; end < list.size() && list[end].term == term; ++end) {
                const Piece& p = list[end];
                key.insert(key.end(), {p.kind, p.at, p.watch, p.depth, p.count});
            }
            auto got = known_.emplace(key, nullptr);
            if (got.second) {
                // With any byte behind a cut, and none watched, the terminal says nothing about the words.
                const bool shared = wide && std::all_of(list.begin() + int64_t(i), list.begin() + int64_t(end),
                                                        [](const Piece& p) { return !p.watch; });
                key[0] = -1;
                if (shared) got.first->second = cache_.spelled.find(key);
                if (!got.first->second) {
                    words_.clear();
                    for (size_t k = i; k < end; ++k) spell(list[k]);
                    if (!words_.empty()) got.first->second = cache_.keep(Slots(words_));
                    if (shared && words_.size() >= kManyWords) cache_.spelled.put(key, got.first->second);
                }
            }
            if (!got.first->second) continue;
            out.tails.push_back(got.first->second);
            out.tail_terms.push_back(local_number(terms, term));
        }
    }
    template <class Self, class V> static void fields(Self& p, V& v) {
        v.expansion(p.list, p.words_, p.known_, p.first_bytes_[0], p.first_bytes_[1]);
    }

    static constexpr size_t kManyWords = 128;  // worth keeping

  private:
    const VocabularyTrie& trie_;
    Lexer& lexer_;
    ProfileCache& cache_;
    vector<Word> words_;
    std::unordered_map<vector<int32_t>, std::shared_ptr<const Tails>, VectorHash> known_;
    std::unordered_map<uint64_t, ByteBits> first_bytes_[2];  // (terminal, watch set), by `wide`

    // The bytes that a tail can begin with, by what can follow and by what is watched.
    const ByteBits& first_bytes(const Accept& a) {
        auto got = first_bytes_[wide].emplace(uint64_t(uint32_t(a.term)) << 32 | uint32_t(a.watch), ByteBits{});
        if (got.second) got.first->second = lexer_.first_bytes(a, wide);
        return got.first->second;
    }
    // The tails of a piece, into words_.
    void spell(const Piece& p) {
        if (p.kind == kSlot) return spell_slot(p.at, p.depth, p.count);
        if (p.kind == kBelow) return spell_below(p.at, p.watch, p.depth, p.count);
        const ByteBits& first = first_bytes({p.term, p.watch});
        for (int32_t c = trie_[p.at].first_child; c < trie_[p.at].end_child; ++c)
            if (first.has(trie_.byte[c])) spell_child(c, p.watch, p.depth, p.count);
    }
    void spell_child(int32_t node, int32_t watch, int32_t depth, int32_t count) {
        if (watch) {
            bool is_void = false;
            watch = lexer_.step_watch(watch, trie_.byte[node], is_void);
            if (is_void) return;
        }
        spell_below(node, watch, depth, count);
    }
    void spell_below(int32_t node, int32_t watch, int32_t depth, int32_t count) {  // node's byte has been read
        if (!watch) {
            for (int32_t s = trie_[node].slot_lo; s < trie_[node].slot_hi; ++s) spell_slot(s, depth, count);
            return;
        }
        if (trie_[node].own) spell_slot(trie_[node].slot_lo, depth, count);
        for (int32_t c = trie_[node].first_child; c < trie_[node].end_child; ++c)
            spell_child(c, watch, depth, count);
    }
    void spell_slot(int32_t slot, int32_t depth, int32_t count) {
        const Word& w = trie_.slot_word[slot];
        for (const int32_t token : trie_.tokens(slot)) words_.push_back({w.text + depth, w.length - depth, token, count});
    }
};

}  // namespace wfsa
