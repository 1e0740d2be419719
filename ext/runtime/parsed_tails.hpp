// The slow twin of the machines that read tails: every tail is parsed on the real stack, byte by byte, as a commit
// does.
//
// For tests and doubts only; a mask made with it takes milliseconds.
#pragma once
#include "runtime/operations.hpp"

namespace wfsa {

template <class Policy> class ParsedTails {
  public:
    explicit ParsedTails(Operations<Policy>& operations) : o_(operations) {}

    void mask(const Snapshot* at, uint32_t* out, int64_t n_words) {
        o_.mask_by(at, out, n_words,
                   [this](const Config& c, int32_t end, MaskWriter writer) { add_end(c, end, writer); });
    }

  private:
    struct Level {  // a node of the tails' trie, and the configurations behind its bytes
        int32_t child, end;
        vector<Config> configs;
    };
    Operations<Policy>& o_;

    void add_end(const Config& c, int32_t number, MaskWriter out) {
        const Tables& tables = o_.access().tables;
        const Terminals& terms = tables.lexer.terms;
        const TerminalEnd& end = tables.profiler.terminal_ends[number];
        const Trie tails(end.tails->slots.words());
        Arena& arena = o_.scratch().arena;
        Alone alone;
        vector<Config> first;
        if (terms[end.term].ignore) {
            first.push_back(c);
            first.back().lex = o_.policy().root(c, 0);
        } else {
            o_.policy().shift(first, c, end.term, arena, alone);
        }
        vector<Level> open;
        open.push_back({tails[0].first_child, tails[0].end_child, std::move(first)});
        vector<Config> next;
        while (!open.empty()) {
            if (open.back().child == open.back().end) { open.pop_back(); continue; }
            const int32_t node = open.back().child++;
            o_.step(open.back().configs, tails.byte[node], next, arena);
            if (next.empty()) continue;
            if (tails[node].own)
                add_leaving_tokens(end, size_t(tails[node].slot_lo), terms, c.count, out);
            const int32_t lo = tails[node].first_child, hi = tails[node].end_child;
            if (lo == hi) continue;
            o_.policy().shift_completed(next, hi - lo == 1 ? tails.byte[lo] : -1, arena, alone);
            open.push_back({lo, hi, next});
        }
    }
};

}  // namespace wfsa
