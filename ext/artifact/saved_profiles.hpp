// Profiles, and what they share, as they are saved.
//
// Sets of tokens, tails and universes are the vocabulary's, one object where they are equal: each is written once, and
// profiles and ends of terminals have its number. A tail is the end of its tokens' bytes: its length and its tokens say
// what it is. A universe is the union of the tails of the ends that name it, and is made again.
#pragma once
#include "artifact/token_sets.hpp"
#include "containers/fields.hpp"
#include "containers/span_arena.hpp"

namespace wfsa {

struct SavedTokens {
    int32_t kind = kList;
    vector<int32_t> packed;
    template <class Self, class V> static void fields(Self& t, V& v) {
        v.kept("kind", t.kind, Within{kList, kDenseBitmap + 1});
        v.kept("tokens", t.packed, Within{0, 256});
    }
};

// Tokens with their units: as many as they have code points, and `offset` more; but for exceptions, (token, units).
struct SavedGroup {
    int32_t inside = 0, span = 0, kind = kList, offset = 0;
    vector<int32_t> packed, exceptions;
    template <class Self, class V> static void fields(Self& g, V& v) {
        v.kept("inside", g.inside);
        v.kept("span", g.span, Within{0, int64_t(1) << 31});
        v.kept("kind", g.kind, Within{kList, kDenseBitmap + 1});
        v.kept("tokens", g.packed, Within{0, 256});
        v.kept("offset", g.offset);
        v.kept("exceptions", g.exceptions, Within{0, int64_t(1) << 31});
    }
};

struct SavedTails {
    struct Slot {
        int32_t length = 0;
        List tokens;
        template <class Self, class V> static void fields(Self& s, V& v) {
            v.kept("length", s.length, Within{1, int64_t(1) << 31});
            v.kept("tokens", s.tokens);
        }
    };
    vector<Slot> slots;
    List counts;  // a number for every token, or none
    template <class Self, class V> static void fields(Self& t, V& v) {
        v.kept("slots", t.slots);
        v.kept("counts", t.counts, Within{0, 1 << 20});
    }
};

struct SavedTerminalEnd {
    int32_t term = 0, tails = 0, universe = -1;
    template <class Self, class V> static void fields(Self& e, V& v) {
        v.kept("term", e.term);
        v.kept("tails", e.tails);
        v.kept("universe", e.universe);
    }
};

struct SavedUniverse {
    int32_t term = 0;
    template <class Self, class V> static void fields(Self& u, V& v) { v.kept("term", u.term); }
};

struct SavedProfile {
    int32_t base = -1, inside = 0, vetoed = -1;
    List drop, terminal_ends, spans;
    template <class Self, class V> static void fields(Self& p, V& v) {
        v.kept("base", p.base);
        v.kept("inside", p.inside);
        v.kept("vetoed", p.vetoed);
        v.kept("drop", p.drop);
        v.kept("terminal_ends", p.terminal_ends);
        v.kept("spans", p.spans);
    }
};

}  // namespace wfsa
