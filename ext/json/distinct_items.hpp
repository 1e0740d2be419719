// The companion of a parse whose arrays' items must differ (distinct.hpp): the text so far and a scanner beside it.
//
// Where the parser would reduce to a nonterminal that Tables.distinct marks, an item of an array that cares ends; if it
// equals an earlier one, the reduction is barred.
#pragma once
#include "json/distinct.hpp"

namespace wfsa {

class DistinctItems {
  public:
    JsonScan scan;

    // `text` is what `scan` has read; both move along.
    DistinctItems(const vector<uint8_t>& marks, const JsonScan& at, std::string& text, Arena& arena)
        : scan(at), marks_(marks), text_(text), arena_(arena) {}

    void push(uint8_t byte) {
        text_.push_back(char(byte));
        scan.push(text_, arena_);
        known_ = false;
    }
    bool bars(int32_t nonterminal) {
        if (!marks_[size_t(nonterminal)]) return false;
        if (!known_) repeats_ = scan.repeats(text_);
        known_ = true;
        return repeats_;
    }

  private:
    const vector<uint8_t>& marks_;
    std::string& text_;
    Arena& arena_;
    bool known_ = false, repeats_ = false;  // does the item that would end here repeat?
};

}  // namespace wfsa
