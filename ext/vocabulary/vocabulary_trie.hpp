// The trie of a whole vocabulary, and what walks of it need beside: which subtrees spell whole characters.
//
//   whole           of a node: is every way down from it well-formed UTF-8, its last character cut short perhaps? Then a
//                   lexer state that all characters lead back to takes the whole subtree in one step
//   characters[s]   how many characters begin in the string of slot s
//   all             the tokens of all slots, as a bitmap
//
// Cost: one pass over the nodes from the leaves up, with the eight states of a decoder in one byte: some milliseconds
// for Llama 3.  Well-formed: Table 3-7 of the Unicode Standard.
#pragma once
#include "vocabulary/trie.hpp"

namespace wfsa {

inline bool begins_character(uint8_t byte) { return (byte & 0xC0) != 0x80; }

inline int32_t characters_in(const uint8_t* text, int32_t n) {
    int32_t out = 0;
    for (int32_t i = 0; i < n; ++i) out += begins_character(text[i]);
    return out;
}

// The characters of several bytes: with this lead, so many bytes are left, the first of them in a range.
struct LeadBytes { uint8_t lo, hi, n_left, first_lo, first_hi; };
inline constexpr LeadBytes kLeadBytes[] = {
    {0xC2, 0xDF, 1, 0x80, 0xBF}, {0xE0, 0xE0, 2, 0xA0, 0xBF}, {0xE1, 0xEC, 2, 0x80, 0xBF}, {0xED, 0xED, 2, 0x80, 0x9F},
    {0xEE, 0xEF, 2, 0x80, 0xBF}, {0xF0, 0xF0, 3, 0x90, 0xBF}, {0xF1, 0xF3, 3, 0x80, 0xBF}, {0xF4, 0xF4, 3, 0x80, 0x8F},
};

inline const LeadBytes* lead_of(uint8_t byte) {  // nullptr: not one of these
    for (const LeadBytes& lead : kLeadBytes) if (lead.lo <= byte && byte <= lead.hi) return &lead;
    return nullptr;
}

class VocabularyTrie : public Trie {
  public:
    vector<int32_t> characters;
    vector<uint32_t> all;

    VocabularyTrie() = default;
    VocabularyTrie(const vector<Word>& words, int64_t n_words) : Trie(words), all(size_t(n_words), 0u) {
        find_whole();
        characters.reserve(slot_word.size());
        for (const Word& w : slot_word) characters.push_back(characters_in(w.text, w.length));
        for (const int32_t t : slot_tokens) all[size_t(t) >> 5] |= 1u << (t & 31);
    }
    size_t bytes() const { return Trie::bytes() + 4 * (characters.capacity() + all.capacity()); }

  private:
    // States of a decoder: 0 between characters, n with n bytes left (1 to 3), and behind E0, ED, F0, F4 with the next
    // byte in a narrower range. `after`: the states in which a subtree is well-formed.  Those before `byte` in which it is.
    enum : uint8_t { kBetween, kOne, kTwo, kThree, kE0, kED, kF0, kF4 };
    static uint8_t before(uint8_t byte, uint8_t after) {
        const auto in = [&](uint8_t state, uint8_t next) { return uint8_t(uint8_t(after >> next & 1) << state); };
        if (byte < 0x80) return in(kBetween, kBetween);
        if (byte >= 0xC0) {
            const LeadBytes* const lead = lead_of(byte);
            if (!lead) return 0;
            const uint8_t narrow = byte == 0xE0 ? kE0 : byte == 0xED ? kED : byte == 0xF0 ? kF0 : byte == 0xF4 ? kF4 : 0;
            return in(kBetween, narrow ? narrow : lead->n_left);
        }
        return uint8_t(in(kOne, kBetween) | in(kTwo, kOne) | in(kThree, kTwo) | (byte >= 0xA0 ? in(kE0, kOne) : in(kED, kOne)) |
                       (byte >= 0x90 ? in(kF0, kTwo) : in(kF4, kTwo)));
    }
    void find_whole() {
        vector<uint8_t> good(size_t(n_nodes()), 0xFF);  // in which states the subtree is well-formed
        for (int32_t n = n_nodes(); n-- > 0;)
            for (int32_t c = nodes_[n].first_child; c < nodes_[n].end_child; ++c)
                good[n] &= before(byte[c], good[c]);
        for (size_t n = 0; n < good.size(); ++n) nodes_[n].whole = good[n] & 1;
    }
};

}  // namespace wfsa
