// The companion of a parse whose arrays' items must differ (distinct.hpp): a scanner beside it.
//
// Where the parser would reduce to a nonterminal that Tables.distinct marks, an item of an array that cares ends; if it
// equals an earlier one, the reduction is barred.  A mark of 2 says that the array can run out of values, one of 3 that the
// reduction is barred if the item equals none (Grammar.distinct).
#pragma once
#include "json/distinct.hpp"
#include "runtime/tables.hpp"

namespace wfsa {

class DistinctItems {
  public:
    JsonScan scan;

    DistinctItems(const Tables& tables, const JsonScan& at, Arena& arena) : scan(at), tables_(tables), arena_(arena) {}

    void push(uint8_t byte) {
        scan.push(byte, arena_);
        known_ = false;
    }
    bool bars(int32_t nonterminal) {
        const uint8_t mark = tables_.distinct[size_t(nonterminal)];
        if (!mark) return false;
        if (!known_) repeats_ = scan.repeats();
        known_ = true;
        return repeats_ == (mark != 3);
    }
    // Could what follows be bound to repeat an item?
    bool is_close() const { return scan.may_be_bound(tables_.may_run_out); }

  private:
    const Tables& tables_;
    Arena& arena_;
    bool known_ = false, repeats_ = false;  // does the item that would end here repeat?
};

}  // namespace wfsa
