// Of one sequence whose white space is bounded: the scanner after every commit.
#pragma once
#include "json/white_space.hpp"
#include "parser/arena.hpp"

namespace wfsa {

class WhiteSpaceText {
  public:
    // Do these bytes keep the limit?  If so `after` stands behind them.
    bool takes(const uint8_t* p, size_t n, const WhiteSpaceLimit& limit, WhiteSpaceScan& after) const {
        after = scan();
        for (const uint8_t* end = p + n; p < end; ++p) if (!after.push(*p, limit)) return false;
        return true;
    }
    // One commit more, which ends at `after`.
    void commit(const WhiteSpaceScan& after, Arena& arena) { past_ = new (arena.bytes(sizeof(Past))) Past{past_, after}; }
    void rollback(int64_t n) { for (; n && past_; --n) past_ = past_->before; }
    WhiteSpaceScan scan() const { return past_ ? past_->scan : WhiteSpaceScan(); }

  private:
    struct Past {
        const Past* before;
        WhiteSpaceScan scan;
    };
    const Past* past_ = nullptr;
};

}  // namespace wfsa
