// fork() beside threads that extend shared tables: the child finds every table whole and every lock free.
//
// A child has only the thread that forked, so a lock that another one held stays locked for ever, and what it was
// changing stays half changed. Who changes what threads share does it behind a Change; fork waits until there is none
// and lets none begin meanwhile. Locks that are held while something is only read are no reason to wait: they are
// Renewed, new ones in the child. What one thread alone uses, as a state of a text, is not looked after.
//
// While fork waits others may still begin: the changes it waits for may be waiting for them.
//
// Behind a Change nothing may wait for the interpreter lock, which who forks holds, nor drop a constraint's tables: the
// thread that destroys them is waited for, too.
// Each extension module has its own gate, for its own tables.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_set>

namespace wfsa {

class ForkGate {
  public:
    class Change {
      public:
        Change() { if (depth_++ == 0) the().begin(); }
        ~Change() { if (--depth_ == 0) the().end(); }
        Change(const Change&) = delete;

      private:
        static inline thread_local int depth_ = 0;
    };
    class Renewed {
      public:
        Renewed() {
            const Change change;
            const std::lock_guard<std::mutex> lock(the().mutex_);
            the().renewed_.insert(this);
        }
        virtual ~Renewed() {
            const Change change;
            const std::lock_guard<std::mutex> lock(the().mutex_);
            the().renewed_.erase(this);
        }
        Renewed(const Renewed&) = delete;
        virtual void renew() = 0;  // in the child: as if no other thread had ever locked it
    };

    // What fork() calls (bindings/at_fork.hpp).
    static void before() {
        std::unique_lock<std::mutex> lock(the().gate_);
        the().ended_.wait(lock, [] { return !the().n_changes_; });
        lock.release();  // closed until after the fork
    }
    static void after_in_parent() { the().gate_.unlock(); }
    static void after_in_child() {
        new (&the().gate_) std::mutex;  // others may have been waiting for it
        new (&the().ended_) std::condition_variable;
        for (Renewed* one : the().renewed_) one->renew();
    }

  private:
    std::mutex gate_;  // of what follows; held across a fork
    std::condition_variable ended_;
    int64_t n_changes_ = 0;
    std::mutex mutex_;  // of the set
    std::unordered_set<Renewed*> renewed_;

    void begin() {
        const std::lock_guard<std::mutex> lock(gate_);
        ++n_changes_;
    }
    void end() {
        const std::lock_guard<std::mutex> lock(gate_);
        if (--n_changes_ == 0) ended_.notify_all();
    }
    static ForkGate& the() {
        static ForkGate* const one = new ForkGate;  // for ever: tables may go after static destructors have run
        return *one;
    }
};

}  // namespace wfsa
