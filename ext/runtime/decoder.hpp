// One sequence under a constraint, whatever the constraint was made from: all that the boundary asks of it.
//
//   Session      a compiled grammar          runtime/session.hpp
//   TextDecoder  a closed set of texts       texts/text_decoder.hpp
//   Stopping     any of them, with other end tokens   runtime/stopping.hpp
//
// One class of Python's and one batch of masks serve them all, through virtual calls: a few nanoseconds beside operations
// of microseconds.  A decoder is used by one thread at a time, decoders of one constraint in parallel.
#pragma once
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace wfsa {

// What it means to a text that some tokens are never text.
enum class Way {
    kSure,    // it can always be completed without them; or it is not known what texts need
    kNarrow,  // it can be completed without them, but not after every token
    kNone,    // it cannot be completed without them
};

class Decoder {
  public:
    virtual ~Decoder() = default;
    virtual std::unique_ptr<Decoder> fork() const = 0;     // an independent copy
    virtual std::unique_ptr<Decoder> restart() const = 0;  // before the first token, under the same constraint

    // False, and nothing changes, if the text cannot go on so.  Empty bytes are no commit.
    virtual bool commit_token(int32_t token) = 0;
    virtual bool commit_bytes(const uint8_t* p, size_t n) = 0;
    virtual bool rollback(int64_t n) = 0;  // false: there were fewer commits
    virtual int64_t n_commits() const = 0;

    // n_words words, at least those of the vocabulary; bits past it are 0.  After the end all are.
    virtual void mask(uint32_t* out, int64_t n_words) const = 0;
    // Tokens to the end, the end token among them: never too few, and some token leaves one fewer.  0 after the end.
    // Unsupported: that is not known.
    virtual int64_t min_tokens() const = 0;
    // Is it known how many tokens its texts need?  Else a budget changes nothing.
    virtual bool has_min_tokens() const { return true; }
    // Is it known, and cheap to tell, that any token may come under a budget?
    virtual bool is_far(int64_t budget) const = 0;
    // Of the plain mask, the tokens after which no more than `most` are needed.
    virtual void mask_within(uint32_t* out, int64_t n_words, int64_t most) const = 0;
    // These tokens (ascending) are never text from here on: what is needed to the end is counted without them.  For a
    // text that has not begun.
    virtual Way leave_out(const std::vector<int32_t>& tokens) = 0;
    // Of the plain mask, the tokens after which the text can be completed; can it now?  Under Way::kNarrow.
    virtual void mask_with_end(uint32_t* out, int64_t n_words) const = 0;
    virtual bool has_end() const = 0;
    virtual bool accepting() const = 0;
    virtual bool finished() const = 0;
    // Does nothing wait for another thread here, and nothing grow?  Then what has no budget takes microseconds, which is
    // less than it costs to give up a lock that others want (Python's interpreter lock: 5 ms until it comes back).
    virtual bool is_quick() const = 0;

    virtual std::string text() const = 0;                // the bytes of all commits
    virtual std::string forced(size_t limit) const = 0;  // the bytes that must come next, at most `limit`
    virtual std::string next_bytes() const = 0;          // that can come next, ascending
    virtual std::vector<int32_t> expected() const = 0;   // terminals, for messages
    virtual int32_t n_configs() const = 0;               // for diagnosis

    // Append what decides how the text may go on: where it is equal, so is everything that can follow.
    virtual void situation(std::vector<int64_t>& out) const = 0;
    // No text ends in fewer bytes from here.  Never more than is needed after each next byte, plus one.
    virtual int64_t least_to_end() const { return 0; }
};

// How many of the tokens could be committed one after another; the decoder stays as it is.
inline int64_t validate(const Decoder& from, const int32_t* tokens, int64_t n) {
    const std::unique_ptr<Decoder> probe = from.fork();
    int64_t k = 0;
    while (k < n && !probe->finished() && probe->commit_token(tokens[k])) ++k;
    return k;
}

// The same, and they are.
inline int64_t commit_tokens(Decoder& to, const int32_t* tokens, int64_t n) {
    int64_t k = 0;
    while (k < n && !to.finished() && to.commit_token(tokens[k])) ++k;
    return k;
}

}  // namespace wfsa
