// Companions stand next to the parse of one text: they see its bytes, and refuse what no grammar can.
//
// A Session holds one companion of each type that its maker names (ext/companions/grammar_session.hpp), and all of their
// calls are resolved at compile time.  A companion has these members:
//
//   Companion(Engine&)        a text begins; the engine outlives the companion
//   is_active()               whether the constraint gives it anything to do; if not, only watches() and step() are called
//   watches()                 whether its steps have to see the parse; where one has to, the steps of all do
//   step()                    a Step: one commit that is tried
//   allows(step, at)          the parse took the bytes and stands at the snapshot `at`: whether the commit may stay
//   commit(step, at, arena)   the commit stays
//   rollback(n)               the last n commits go
//   filter(at, mask)          clears the tokens that may not follow
//   put_situation(at, out)    appends what decides how the text may go on
//   arena_end()               the end of what its last commit wrote to the arena; nullptr: nothing
//
// and a step has these:
//
//   takes(p, n)               whether these bytes may follow, asked before they are parsed
//   begin(arena)              the parse begins; again, if tables were missing
//   push(byte)                a byte of the text; a terminal may end behind it
//   bars(nonterminal)         whether no reduction to this nonterminal may happen here.  A stack that needs it is dropped
//
// A parse is compiled twice: for the steps of all companions, and for no companion at all, which costs nothing.
#pragma once
#include <cstdint>
#include <tuple>

#include "parser/gss.hpp"

namespace wfsa {

// The step of a companion that does not watch, and what a parse without companions has next to it.
struct Alone {
    void begin(Arena&) {}
    void push(uint8_t) {}
    static constexpr bool bars(int32_t) { return false; }
};

// The steps of several companions as one.
template <class... Steps> struct AllSteps {
    std::tuple<Steps...> of;

    void begin(Arena& arena) { std::apply([&](auto&... step) { (step.begin(arena), ...); }, of); }
    void push(uint8_t byte) { std::apply([&](auto&... step) { (step.push(byte), ...); }, of); }
    bool bars(int32_t symbol) { return std::apply([&](auto&... step) { return (step.bars(symbol) || ...); }, of); }
};

// A value after every commit of one text, in the text's arena.
template <class T> class History {
  public:
    T now() const { return last_ ? last_->value : T(); }
    void push(const T& value, Arena& arena) { last_ = new (arena.bytes(sizeof(Entry))) Entry{last_, value}; }
    void rollback(int64_t n) { for (; n && last_; --n) last_ = last_->before; }
    const void* arena_end() const { return last_ ? last_ + 1 : nullptr; }

  private:
    struct Entry {
        const Entry* before;
        T value;
    };
    const Entry* last_ = nullptr;
};

}  // namespace wfsa
