// fork() beside threads that extend shared tables: the child finds every table whole and every lock free.
//
// A child has only the thread that forked, so a lock that another one held stays locked for ever, and what it was
// changing stays half changed. Who changes what threads share does it behind a Change; fork waits until there is none
// and lets none begin meanwhile. Locks that are held while something is only read are no reason to wait: they are
// Renewed, new ones in the child. What one thread alone uses, as a state of a text, is not looked after.
//
// Behind a Change nothing may wait for the interpreter lock, which who forks holds, nor drop a constraint's tables: the
// thread that destroys them is waited for, too.
// Each extension module has its own gate, for its own tables.
#pragma once
#include <mutex>
#include <new>
#include <shared_mutex>
#include <unordered_set>

namespace wfsa {

class ForkGate {
  public:
    class Change {
      public:
        Change() { if (depth_++ == 0) the().gate_.lock_shared(); }
        ~Change() { if (--depth_ == 0) the().gate_.unlock_shared(); }
        Change(const Change&) = delete;

      private:
        static inline thread_local int depth_ = 0;
    };
    class Renewed : public std::shared_mutex {
      public:
        Renewed() {
            const Change change;
            const std::lock_guard<std::mutex> lock(the().mutex_);
            the().renewed_.insert(this);
        }
        ~Renewed() {
            const Change change;
            const std::lock_guard<std::mutex> lock(the().mutex_);
            the().renewed_.erase(this);
        }
    };

    // What fork() calls (bindings/at_fork.hpp).
    static void before() { the().gate_.lock(); }
    static void after_in_parent() { the().gate_.unlock(); }
    static void after_in_child() {
        new (&the().gate_) std::shared_mutex;  // others may have been waiting for it
        for (std::shared_mutex* lock : the().renewed_) new (lock) std::shared_mutex;
    }

  private:
    std::shared_mutex gate_;
    std::mutex mutex_;  // of the set
    std::unordered_set<std::shared_mutex*> renewed_;

    static ForkGate& the() {
        static ForkGate* const one = new ForkGate;  // for ever: tables may go after static destructors have run
        return *one;
    }
};

}  // namespace wfsa
