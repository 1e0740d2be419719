// Long stages ask now and then whether they shall stop; who calls them says what that means.
//
// A module sets `interrupted` while its thread compiles (ext/bindings/translate.hpp: a pending Ctrl-C), and stages call
// poll() in their outer loops, at least once in some milliseconds of work, where an exception may leave them: nothing that
// others share is half changed.
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
