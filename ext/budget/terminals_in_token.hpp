// How many terminals one token can end, at most.
//
// Where a terminal ends between two bytes, the first is a last byte of a terminal that the second may follow.  So a token
// ends no more of them than it has such pairs, and one more, which stood open before it.  A token that is taken by its id
// ends two: that one, and itself.
//
// Bytes count by their kinds (letters and all above ASCII, digits, ends of lines, other controls, and each sign alone), so
// that a vocabulary of 128,000 tokens has 6,000 that differ, which are kept with it (Vocabulary::kept).
#pragma once
#include <array>
#include <set>
#include <string>

#include "lexer/terminals.hpp"

namespace wfsa {

class TerminalsInToken {
  public:
    template <class Vocabulary> explicit TerminalsInToken(const Vocabulary& vocab) {
        std::set<std::string> different;
        for (int64_t token = 0; token < vocab.n_tokens(); ++token) {
            std::string kinds;
            for (int64_t k = vocab.offsets[token]; k < vocab.offsets[token + 1]; ++k)
                kinds.push_back(char(kind(vocab.blob[k])));
            if (kinds.size() > 1) different.insert(std::move(kinds));
        }
        kinds_.assign(different.begin(), different.end());
    }
    int32_t most(const Terminals& terms) const {
        const std::array<uint64_t, 64> pairs = ends_between(terms);
        int32_t most = 0;
        for (const std::string& kinds : kinds_) {
            int32_t ends = 0;
            for (size_t k = 1; k < kinds.size(); ++k) ends += pairs[kinds[k - 1]] >> kinds[k] & 1;
            most = std::max(most, ends);
        }
        return std::max(most + 1, 2);
    }

  private:
    vector<std::string> kinds_;

    static uint8_t kind(int byte) {  // below 64
        const int letter = byte | 32;
        if (byte >= 128 || ('a' <= letter && letter <= 'z')) return 0;
        if ('0' <= byte && byte <= '9') return 1;
        if (byte == '\t' || byte == '\n' || byte == '\r') return 2;
        if (byte < ' ' || byte == 127) return 3;
        const int sign = byte < '0' ? byte - ' ' : byte < 'A' ? byte - 10 - ' ' : byte < 'a' ? byte - 36 - ' ' : byte - 62 - ' ';
        return uint8_t(4 + sign);
    }
    static uint64_t kinds_of(const ByteBits& bytes) {
        uint64_t out = 0;
        for (int b = 0; b < 256; ++b) if (bytes.has(uint8_t(b))) out |= uint64_t(1) << kind(b);
        return out;
    }
    // Of a kind, the kinds behind which it may end a terminal.
    static std::array<uint64_t, 64> ends_between(const Terminals& terms) {
        vector<ByteBits> last(terms.size());
        for (size_t c = 0; c < terms.term.size(); ++c)
            for (int32_t e = terms.indptr[c]; e < terms.indptr[c + 1]; ++e) {
                const Edge& edge = terms.edges[e];
                if (terms.accept[edge.target]) last[terms.term[c]].add_range(edge.lo, edge.hi);
            }
        std::array<uint64_t, 64> out{};
        for (size_t t = 0; t < last.size(); ++t) {
            const uint64_t from = kinds_of(last[t]), to = kinds_of(terms[t].follow);
            for (size_t k = 0; k < 64; ++k) if (from >> k & 1) out[k] |= to;
        }
        return out;
    }
};

}  // namespace wfsa
