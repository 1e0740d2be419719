// How many bytes lead from one state to another, and from how many on a loop counts as one on many bytes.
//
// Inside a string, a comment or an identifier most tokens go on; in a number or a keyword few do.  What tells them
// apart is the loop: ten digits, sixteen hexadecimal ones, or the 26 letters of one case against both cases, or all
// bytes but a few.  32 lies between.
#pragma once
#include <cstdint>

namespace wfsa {

constexpr int32_t kManyBytes = 32;
constexpr int32_t kDigits = 10;  // already so many are worth sharing: every vocabulary spells numbers in many ways

// Bytes of the edges to `target`.
template <class Edges> int32_t bytes_to(Edges at, Edges end, int32_t target) {
    int32_t n = 0;
    for (; at != end; ++at) if (at->target == target) n += at->hi - at->lo + 1;
    return n;
}

}  // namespace wfsa
