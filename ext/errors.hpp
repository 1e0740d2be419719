// Exceptions of the stages; ext/bindings/translate.hpp converts them to Python's.
#pragma once
#include <stdexcept>

namespace wfsa {

struct LimitExceeded : std::runtime_error { using std::runtime_error::runtime_error; };
// the grammar is ambiguous in a way that has no defined meaning
struct Undecided : std::runtime_error { using std::runtime_error::runtime_error; };
struct Damaged : std::runtime_error { using std::runtime_error::runtime_error; };  // a loaded table is inconsistent
// this kind of constraint does not support the operation
struct Unsupported : std::runtime_error { using std::runtime_error::runtime_error; };
struct BudgetTooSmall : std::runtime_error { using std::runtime_error::runtime_error; };
inline void check(bool ok, const char* what) { if (!ok) throw Damaged(what); }

struct Miss {};  // a table must grow, but this access only reads (runtime/access.hpp)

}  // namespace wfsa
