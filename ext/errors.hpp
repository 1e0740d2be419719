// What the stages throw; ext/bindings/translate.hpp makes Python's errors of them.
#pragma once
#include <stdexcept>

namespace wfsa {

struct LimitExceeded : std::runtime_error { using std::runtime_error::runtime_error; };
struct Undecided : std::runtime_error { using std::runtime_error::runtime_error; };  // what a grammar asks for is ambiguous
struct Damaged : std::runtime_error { using std::runtime_error::runtime_error; };    // a loaded table does not fit
struct Unsupported : std::runtime_error { using std::runtime_error::runtime_error; };  // this kind of constraint has no answer
struct BudgetTooSmall : std::runtime_error { using std::runtime_error::runtime_error; };
inline void check(bool ok, const char* what) { if (!ok) throw Damaged(what); }

struct Miss {};  // a table must grow, and may not now (runtime/access.hpp)

}  // namespace wfsa
