// What a caller grants: so many tokens, the end token among them, and a stretch before the limit in which nothing begins.
#pragma once
#include <limits>
#include <string>

#include "errors.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

constexpr int64_t kAnyTokens = std::numeric_limits<int64_t>::max();

struct Budget {
    int64_t tokens = kAnyTokens, wrap_up = 0;
};

// How many tokens may be needed from after the next one on; kAnyTokens: no matter how many, or nothing says
// how many a text needs.  BudgetTooSmall: it is.
inline int64_t most_after(const Decoder& decoder, const Budget& budget) {
    if (budget.tokens == kAnyTokens || !decoder.has_min_tokens()) return kAnyTokens;
    // Both are a caller's, any int64: neither the difference nor one less overflows.
    if (decoder.is_far(std::max<int64_t>(0, budget.tokens) - std::max<int64_t>(0, budget.wrap_up))) return kAnyTokens;
    const int64_t least = decoder.min_tokens();
    if (budget.tokens < least)
        throw BudgetTooSmall("a budget of " + std::to_string(budget.tokens) + " tokens is too small: the text needs " +
                             std::to_string(least) + " to its end, the end token among them");
    return (budget.tokens - least < budget.wrap_up ? std::min(budget.tokens, least + 1) : budget.tokens) - 1;
}

inline void fill_mask(const Decoder& decoder, uint32_t* out, int64_t n_words, int64_t most) {
    if (most == kAnyTokens) decoder.mask(out, n_words);
    else decoder.mask_within(out, n_words, most);
}

}  // namespace wfsa
