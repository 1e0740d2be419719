// The masks of many decoders, of any kinds, on several threads.
//
// Decoders of one constraint follow each other, so that what one has read is at hand for the next, and equal masks are
// copied (MaskCache, scratch.hpp).  Each thread has a share of its own, the same one in the next step of decoding: what those
// masks are made of, and where they are written, is in its processor's cache.  Who has done with it helps the others, a
// few masks at a time.  A thread that has to be woken is there after some ten masks, so a small batch stays with the
// caller.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <tuple>

#include "containers/thread_pool.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

struct Asked {
    const void* constraint;
    const Decoder* decoder;
    uint32_t* out;      // for its mask
    Budget budget;
    int64_t most = kAnyTokens;  // tokens that may be needed after the next one: of the budget
    bool operator<(const Asked& o) const { return std::tie(constraint, out) < std::tie(o.constraint, o.out); }
};

// What the budgets allow.  BudgetTooSmall: one does not suffice.
inline void grant(std::vector<Asked>& asked) {
    for (Asked& one : asked)
        one.most = one.decoder->finished() ? kAnyTokens : most_after(*one.decoder, one.budget);
}

// Masks of n_words words, within what was granted.  Of several exceptions one is thrown.
inline void fill_masks(std::vector<Asked> asked, int64_t n_words, int64_t n_threads) {
    constexpr size_t kDealt = 4, kWorthWaking = 16;
    std::sort(asked.begin(), asked.end());
    const size_t n = asked.size(), n_shares = std::min(size_t(n_threads), std::max<size_t>(1, n / kWorthWaking));
    struct Share {
        alignas(64) std::atomic<size_t> next;
        size_t end;
    };
    std::vector<Share> shares(n_shares);
    for (size_t k = 0; k < n_shares; ++k) {
        shares[k].next = n * k / n_shares;
        shares[k].end = n * (k + 1) / n_shares;
    }
    std::mutex lock;
    std::exception_ptr failed;
    const auto work = [&](size_t thread) {
        try {
            for (size_t k = 0; k < n_shares; ++k) {
                Share& share = shares[(thread + k) % n_shares];
                for (size_t i; (i = share.next.fetch_add(kDealt)) < share.end;)
                    for (const size_t end = std::min(share.end, i + kDealt); i < end; ++i) {
                        const Asked& one = asked[i];
                        fill_mask(*one.decoder, one.out, n_words, one.most);
                    }
            }
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            failed = std::current_exception();
        }
    };
    ThreadPool::run(n_shares - 1, work);
    if (failed) std::rethrow_exception(failed);
}

}  // namespace wfsa
