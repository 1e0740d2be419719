// Of one sequence whose white space is bounded: the scanner after every commit.
#pragma once
#include "json/white_space.hpp"
#include "parser/arena.hpp"

namespace wfsa {

class WhiteSpaceText {
  public:
    // `tokens` stay where they are; nullptr: there is no bound.
    explicit WhiteSpaceText(const WhiteSpaceTokens* tokens = nullptr) : tokens_(tokens) {}

    bool bounded() const { return tokens_; }
    // Do these bytes keep the bound?  If so `after` stands behind them.
    bool takes(const uint8_t* p, size_t n, WhiteSpaceScan& after) const {
        after = scan();
        for (const uint8_t* end = p + n; p < end; ++p) if (!after.push(*p, tokens_->limit)) return false;
        return true;
    }
    bool takes(uint8_t byte) const {
        WhiteSpaceScan after;
        return takes(&byte, 1, after);
    }
    // One commit more, which ends at `after`.
    void commit(const WhiteSpaceScan& after, Arena& arena) {
        past_ = new (arena.bytes(sizeof(Past))) Past{past_, after};
    }
    void rollback(int64_t n) { for (; n && past_; --n) past_ = past_->before; }
    const void* end() const { return past_ ? past_ + 1 : nullptr; }  // of what the last commit wrote here
    void filter(uint32_t* mask) const { tokens_->filter(scan(), mask); }
    WhiteSpaceScan scan() const { return past_ ? past_->scan : WhiteSpaceScan(); }

  private:
    struct Past {
        const Past* before;
        WhiteSpaceScan scan;
    };
    const WhiteSpaceTokens* tokens_;
    const Past* past_ = nullptr;
};

}  // namespace wfsa
