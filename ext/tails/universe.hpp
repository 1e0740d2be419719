// Universes: the tails that are asked about together.
//
// The machines that say which tails a stack takes (parser_dwa.hpp, joint_tails.hpp) number tails by their place in
// one trie. Ahead of time there is one universe a terminal, the union of the tails of all its ends; on demand each
// end of a terminal brings its own, so that nothing waits for ends that may never be needed. For each end the slots
// of its own tails in the universe are kept, to get back from tails to tokens.
#pragma once
#include "profiles/profile.hpp"
#include "vocabulary/vocabulary.hpp"

namespace wfsa {

struct Universe {
    int32_t term;
    std::shared_ptr<const SharedTails> shared;
    const Trie& tails() const { return shared->all; }  // its slots are the weights' elements
    template <class Self, class V> static void fields(Self&, V&) {}  // its tails are the vocabulary's
};

// Of a loaded table.
inline void check_weight(List weight, const Universe& universe) {
    for (int32_t slot : weight) check(size_t(slot) < universe.tails().slot_word.size(), "a weight is out of range");
}

// Give some ends of one terminal a universe.
inline void add_universe(StableVector<Universe>& universes, Profiler& profiler, const Terminals& terms,
                         const vector<int32_t>& ends) {
    vector<const Tails*> parts;
    for (int32_t i : ends) parts.push_back(profiler.terminal_ends[i].tails.get());
    const int32_t term = profiler.terminal_ends[ends[0]].term;
    const auto united = profiler.cache().united(parts, terms[term].counted);
    for (size_t k = 0; k < ends.size(); ++k) {
        TerminalEnd& end = profiler.terminal_ends[ends[k]];
        end.universe = int32_t(universes.size());
        end.places = &united->members[k];
    }
    universes.push_back({term, united});
}

// From tails back to tokens: which tokens leave a tail when they end a terminal.

// The tokens of a slot of the end's own tails; `count`: units of the terminal before the token.
inline void add_leaving_tokens(const TerminalEnd& end, size_t slot, const Terminals& terms, int32_t count,
                               MaskWriter out) {
    const Slots& tails = end.tails->slots;
    const bool counted = terms[end.term].counted;
    for (int32_t k = tails.slot_indptr[slot]; k < tails.slot_indptr[slot + 1]; ++k) {
        const int32_t units = tails.slot_counts.empty() ? 0 : tails.slot_counts[k];
        if (!counted || terms.takes(end.term, count + units)) out.set(tails.slot_tokens[k]);
    }
}

// ... of a tail, by its slot in the universe.
inline void add_tail(const TerminalEnd& end, int32_t tail, const Terminals& terms, int32_t count, MaskWriter out) {
    const int32_t x = end.places->given[tail];
    if (x >= 0) out.set(x);
    else if (x < SharedTails::kNone) add_leaving_tokens(end, size_t(SharedTails::kNone - 1 - x), terms, count, out);
}

}  // namespace wfsa
