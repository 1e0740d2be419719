// From tails back to tokens: which tokens leave a tail when they end a terminal.
#pragma once
#include "profiles/profile.hpp"
#include "vocabulary/mask_writer.hpp"

namespace wfsa {

// The tokens of a slot of the end's own tails; `count`: units of the terminal before the token.
inline void add_leaving_tokens(const TerminalEnd& end, size_t slot, const Terminals& terms, int32_t count,
                               MaskWriter out) {
    const Slots& tails = end.tails->slots;
    const bool counted = terms[end.term].counted;
    for (int32_t k = tails.slot_indptr[slot]; k < tails.slot_indptr[slot + 1]; ++k) {
        const int32_t units = tails.slot_counts.empty() ? 0 : tails.slot_counts[size_t(k)];
        if (!counted || terms.takes(end.term, count + units)) out.set(tails.slot_tokens[size_t(k)]);
    }
}

// ... of a tail, by its slot in the universe.
inline void add_tail(const TerminalEnd& end, int32_t tail, const Terminals& terms, int32_t count, MaskWriter out) {
    const int32_t x = end.places->given[size_t(tail)];
    if (x >= 0) out.set(x);
    else if (x < SharedTails::kNone) add_leaving_tokens(end, size_t(SharedTails::kNone - 1 - x), terms, count, out);
}

}  // namespace wfsa
