// What may stand beside the parse: something that sees the text, and can refuse what no grammar can.
//
//   push(byte)          a byte of the text; a terminal may end behind it
//   bars(nonterminal)   may no reduction to this nonterminal happen here?  A stack that needs it is dropped.
//
// A companion is a type that operations are compiled for, so the empty one costs nothing. The other one is JSON's
// items that must differ (json/distinct_items.hpp); the Session chooses.
#pragma once
#include <cstdint>

namespace wfsa {

struct Alone {
    void push(uint8_t) {}
    static constexpr bool bars(int32_t) { return false; }
};

}  // namespace wfsa
