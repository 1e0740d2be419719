// The end of the interpreter, as threads meet it that are compiling: they end first.
//
// From its end on, Python ends a thread that asks for the interpreter lock there and then (pthread_exit).  That unwinds
// the thread's stack through whatever is on it, and where this is a destructor or a handler of all exceptions, the process
// aborts.  Compiling asks for the lock from such places: when it gives the lock back (LetOthers), and every 50 ms for
// signals (asked_to_stop).  So, before the interpreter ends:
//
//   1  whoever ends it calls wait(), without the lock, from an atexit handler: the interpreter still lives
//   2  the other threads that compile are told at their next poll, by SystemExit, which ends a thread without a word;
//      those that begin to compile from now on are told at once
//   3  wait() returns when none compiles any more
//
// A thread that does not poll for kPatience, because a caller's callback waits for something, is left alone: if it asks
// for the lock after that it sleeps until the process is gone.  Each extension module has its own count.
#pragma once
#include <Python.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace wfsa {

class AtEnd {
  public:
    // While one lives, its thread compiles. Made with the interpreter lock.
    class Work {
      public:
        Work() { if (depth_++ == 0) ++n_threads_; }
        ~Work() { if (--depth_ == 0) --n_threads_; }
        Work(const Work&) = delete;
    };

    // With the lock. True: Python's error is set, and this thread has to end what it does.
    static bool stops_this_thread() {
        if (!ends() || PyErr_Occurred()) return ends();
        PyErr_SetNone(PyExc_SystemExit);
        return true;
    }
    // Before the lock is asked for where no exception may leave.
    static void before_lock() {
        while (ends() && is_over_) std::this_thread::sleep_for(std::chrono::hours(1));
    }
    // Without the lock.
    static void wait() {
        ender_ = std::this_thread::get_id();
        is_ending_ = true;
        const auto until = std::chrono::steady_clock::now() + kPatience;
        const int32_t own = depth_ > 0;
        while (n_threads_ > own && std::chrono::steady_clock::now() < until)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        is_over_ = true;
    }
    static void after_fork_in_child() { n_threads_ = depth_ > 0; }  // the other threads are not there

  private:
    static constexpr std::chrono::seconds kPatience{5};
    static inline thread_local int32_t depth_ = 0;
    static inline std::atomic<int32_t> n_threads_{0};
    static inline std::atomic<bool> is_ending_{false}, is_over_{false};
    static inline std::atomic<std::thread::id> ender_{};

    static bool ends() { return is_ending_ && ender_.load() != std::this_thread::get_id(); }
};

}  // namespace wfsa
