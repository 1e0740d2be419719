// One sequence under a constraint, whatever the constraint was made from: all that the boundary asks of it.
//
//   Session      a compiled grammar          runtime/session.hpp
//   TextDecoder  a closed set of texts       texts/text_decoder.hpp
//
// One class of Python's and one batch of masks serve both, through virtual calls: a few nanoseconds next to operations
// of microseconds.  A decoder is used by one thread at a time, decoders of one constraint in parallel.
//
// A text is ended by the vocabulary's end tokens, or by stop tokens of its own:
//
//   mask      (text tokens - stop tokens - the vocabulary's end tokens)  ∪  (the stop tokens, if the text may end here)
//   commit    a stop token ends the text where it may end; an end token of the vocabulary that is none is never taken
//
// So a stop token is never text.  What is needed to the end is counted without these tokens.  Where a part of the grammar
// needs what only they spell (Way::kNarrow), tokens after which that part would have to follow are refused.  Bytes are not:
// whoever commits bytes may write what no token spells.  That a grammar takes none of these tokens by its id is for the
// caller to see to: what ends the text could not be told from what goes on.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "containers/numbers.hpp"
#include "errors.hpp"

namespace wfsa {

// What it means to a text that some tokens are never text.
enum class Way {
    kSure,    // it can always be completed without them; or it is not known what texts need
    kNarrow,  // it can be completed without them, but not after every token
    kNone,    // it cannot be completed without them
};

// How many tokens may come, the end token among them, and a stretch before the limit in which nothing begins.
constexpr int64_t kAnyTokens = std::numeric_limits<int64_t>::max();
struct Budget {
    int64_t tokens = kAnyTokens, wrap_up = 0;
};

class Decoder {
  public:
    virtual ~Decoder() = default;
    virtual std::unique_ptr<Decoder> fork() const = 0;  // an independent copy
    // Before the first token, under the same constraint and with the same stop tokens.
    std::unique_ptr<Decoder> restart() const {
        std::unique_ptr<Decoder> out = begin();
        if (stops_) out->stop_at(stops_);
        return out;
    }
    // Ends the text by `stops` in place of the vocabulary's `ends`, both ascending.  For a text that has not begun.
    // Unsupported: the text cannot be completed without these tokens.
    void stop_at(std::vector<int32_t> ends, std::vector<int32_t> stops) {
        stop_at(std::make_shared<const Stops>(Stops{std::move(ends), std::move(stops)}));
    }

    // False, and nothing changes, if the text cannot go on so.  Empty bytes are no commit.
    bool commit_token(int32_t token) {
        if (!stops_) return append_token(token);
        if (finished()) return false;
        if (has(stops_->stops, token)) return accepting() && append_end();
        if (has(stops_->ends, token) || !append_token(token)) return false;
        if (way_ != Way::kNarrow || has_end()) return true;
        rollback(1);
        return false;
    }
    virtual bool commit_bytes(const uint8_t* p, size_t n) = 0;
    virtual bool rollback(int64_t n) = 0;  // false: there were fewer commits
    virtual int64_t n_commits() const = 0;

    // n_words words, at least those of the vocabulary; bits past it are 0.  After the end all are.
    void mask(uint32_t* out, int64_t n_words) const {
        if (way_ == Way::kNarrow && !finished()) put_mask_with_end(out, n_words);
        else put_mask(out, n_words);
        if (stops_) end_by_stops(out);
    }
    // Of the plain mask, the tokens after which no more than `most` are needed.
    void mask_within(uint32_t* out, int64_t n_words, int64_t most) const {
        put_mask_within(out, n_words, most);
        if (stops_) end_by_stops(out);
    }
    // Tokens to the end, the end token among them: never too few, and some token leaves one fewer.  0 after the end.
    // Unsupported: that is not known.
    virtual int64_t min_tokens() const = 0;
    // Whether it is known how many tokens its texts need.  Else a budget changes nothing.
    virtual bool has_min_tokens() const { return true; }
    // Whether it is known, and cheap to tell, that any token may come under a budget.
    virtual bool is_far(int64_t budget) const = 0;
    virtual bool accepting() const = 0;
    virtual bool finished() const = 0;
    // Whether nothing waits for another thread here, and nothing grows.  Then what has no budget takes microseconds, which
    // is less than it costs to give up a lock that others want (Python's interpreter lock: 5 ms until it comes back).
    bool is_quick() const { return way_ != Way::kNarrow && is_complete(); }

    virtual std::string text() const = 0;                // the bytes of all commits
    virtual std::string forced(size_t limit) const = 0;  // the bytes that must come next, at most `limit`
    virtual std::string next_bytes() const = 0;          // that can come next, ascending
    virtual std::vector<int32_t> expected() const = 0;   // terminals, for messages
    virtual int32_t n_configs() const = 0;               // for diagnosis

    // Appends what decides how the text may go on: where it is equal, so is everything that can follow.
    virtual void situation(std::vector<int64_t>& out) const = 0;
    // No text ends in fewer bytes from here.  Never more than is needed after each next byte, plus one.
    virtual int64_t least_to_end() const { return 0; }

  protected:
    bool has_stops() const { return stops_ != nullptr; }  // so that there is an end token to be counted

  private:
    struct Stops {
        std::vector<int32_t> ends, stops;
    };
    std::shared_ptr<const Stops> stops_;  // nullptr: the vocabulary's end tokens end the text
    Way way_ = Way::kSure;

    // The same without stop tokens of its own.
    virtual std::unique_ptr<Decoder> begin() const = 0;
    virtual bool append_token(int32_t token) = 0;
    virtual void put_mask(uint32_t* out, int64_t n_words) const = 0;
    virtual void put_mask_within(uint32_t* out, int64_t n_words, int64_t most) const = 0;
    virtual bool is_complete() const = 0;

    virtual bool append_end() = 0;  // the text, which may end here, ends; true
    // These tokens (ascending) are never text from here on: what is needed to the end is counted without them.
    virtual Way leave_out(const std::vector<int32_t>& tokens) = 0;
    // Of the plain mask, the tokens after which the text can be completed; can it now?  Under Way::kNarrow.
    virtual void put_mask_with_end(uint32_t* out, int64_t n_words) const = 0;
    virtual bool has_end() const = 0;

    void stop_at(std::shared_ptr<const Stops> stops) {
        std::vector<int32_t> never(stops->ends);
        never.insert(never.end(), stops->stops.begin(), stops->stops.end());
        stops_ = std::move(stops);
        way_ = leave_out(never);
        if (way_ != Way::kNone) return;
        std::string ids;
        for (const int32_t t : stops_->stops) ids += (ids.empty() ? "" : ", ") + std::to_string(t);
        throw Unsupported("stop_ids [" + ids + "]: no text can be completed without these tokens as text, because no others "
                          "spell what they spell; stop at other tokens, or change the grammar");
    }
    void end_by_stops(uint32_t* out) const {
        if (finished()) return;
        for (const int32_t t : stops_->ends) clear_bit(out, t);
        const bool may_end = accepting();
        for (const int32_t t : stops_->stops) may_end ? set_bit(out, t) : clear_bit(out, t);
    }
    static bool has(const std::vector<int32_t>& sorted, int32_t token) {
        return std::binary_search(sorted.begin(), sorted.end(), token);
    }
};

// Commits tokens one after another, up to the first that is not allowed; how many were.
inline int64_t commit_tokens(Decoder& to, const int32_t* tokens, int64_t n) {
    int64_t k = 0;
    while (k < n && !to.finished() && to.commit_token(tokens[k])) ++k;
    return k;
}
// How many could be; the decoder stays as it is.
inline int64_t validate(const Decoder& from, const int32_t* tokens, int64_t n) { return commit_tokens(*from.fork(), tokens, n); }

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
