// Cancellation. Long stages poll for cancellation, and the caller installs the check.
//
// A module sets `interrupted` while its thread compiles (ext/bindings/translate.hpp: a pending Ctrl-C). Stages call
// poll() in their outer loops, at least once every few milliseconds, at points where an exception leaves no shared data
// half changed.
#pragma once
#include <cstdint>

namespace wfsa {

struct Interrupted {};  // thrown by poll()

inline thread_local bool (*interrupted)() = nullptr;

inline void poll() {
    static thread_local uint32_t n = 0;
    if (++n % 64 == 0 && interrupted && interrupted()) throw Interrupted{};
}

}  // namespace wfsa
