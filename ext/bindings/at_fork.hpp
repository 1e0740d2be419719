// Every extension module tells the system what its tables need when the process forks.
#pragma once
#include "containers/fork_gate.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>

namespace wfsa {

inline const int announced =
    pthread_atfork(ForkGate::before, ForkGate::after_in_parent, ForkGate::after_in_child);

}  // namespace wfsa
#endif
