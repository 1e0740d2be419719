// Who may read tables that grow, and who may extend them: nobody who reads waits for long.
//
// Many threads read, or one extends. To extend may take tens of milliseconds, so who does it steps aside where the
// tables are whole, if others wait:
//
//   let_read()    inside a long step: readers have their turn; to extend stays with this thread, whose scratch is in use
//   take_turns()  between two steps: those who wait to extend have theirs, too
//
// A thread that wants to extend is not kept out by a stream of readers: new ones wait behind it, for one slice of its
// work. Behind fork() in a child all is free; fork waits for who extends (fork_gate.hpp).
//
// Who extends for nobody's sake yet (kInBackground) gives way to those who need it now: what it is doing ends with
// Preempted where let_read() finds one of them, and is begun again later. It waits for nobody, and nobody hands over to
// it.
// The method is that of phase-fair locks (Brandenburg and Anderson, 2010), with phases that may be cut short.
#pragma once
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>

#include "containers/fork_gate.hpp"

namespace wfsa {

class GrowthLock final : public ForkGate::Renewed {
  public:
    struct Preempted {};
    enum Purpose { kNeeded, kInBackground };

    class Reading {
      public:
        explicit Reading(GrowthLock& of) : of_(of) { of.begin_reading(); }
        ~Reading() { of_.tables_.unlock_shared(); }
        Reading(const Reading&) = delete;

      private:
        GrowthLock& of_;
    };
    class Growing {
      public:
        // kInBackground: throws Preempted where others extend or want to.
        explicit Growing(GrowthLock& of, Purpose purpose = kNeeded) : of_(of), purpose_(purpose) {
            begin();
            mine_ = this;
        }
        ~Growing() {
            mine_ = nullptr;
            end();
        }
        Growing(const Growing&) = delete;

      private:
        friend GrowthLock;
        GrowthLock& of_;
        const Purpose purpose_;
        std::optional<ForkGate::Change> change_;

        void begin() {
            if (purpose_ == kInBackground) of_.begin_growing_if_free();
            else of_.begin_growing();
            change_.emplace();  // in this order: who reads may want the gate
        }
        void end() {
            change_.reset();
            of_.end_growing();
        }
    };

    // Nothing happens where this thread extends no tables.
    static void let_read() {
        if (!mine_) return;
        if (mine_->purpose_ == kInBackground && mine_->of_.is_wanted()) throw Preempted();
        if (mine_->of_.n_readers_.load(std::memory_order_relaxed)) mine_->of_.step_aside();
    }
    static void take_turns() {
        if (!mine_) return;
        if (mine_->purpose_ == kInBackground || !mine_->of_.is_wanted()) return let_read();
        mine_->end();
        mine_->begin();
    }
    void renew() override {
        for (std::shared_mutex* lock : {&tables_, &readers_, &growth_, &next_}) new (lock) std::shared_mutex;
        n_readers_ = n_growers_ = 0;
        wanted_ = false;
    }

  private:
    typedef std::chrono::steady_clock Clock;
    static constexpr std::chrono::microseconds kSlice{50};  // less would be spent on handing over
    std::shared_mutex tables_;   // shared by who reads; whose it is alone may change them
    std::shared_mutex readers_;  // readers that come while tables are waited for queue here
    std::shared_mutex growth_;   // held by the one that extends
    std::shared_mutex next_;     // held by the one that is to extend after it
    std::atomic<int> n_readers_{0}, n_growers_{0};  // that wait
    std::atomic<bool> wanted_{false};
    Clock::time_point since_;  // has who extends held the tables
    static inline thread_local Growing* mine_ = nullptr;

    struct Counted {
        std::atomic<int>& n;
        explicit Counted(std::atomic<int>& n_) : n(n_) { ++n; }
        ~Counted() { --n; }
    };
    bool is_wanted() const { return n_growers_.load(std::memory_order_relaxed); }
    void begin_reading() {
        if (!wanted_.load(std::memory_order_relaxed) && tables_.try_lock_shared()) return;
        const Counted waiting(n_readers_);
        { const std::shared_lock<std::shared_mutex> behind(readers_); }
        tables_.lock_shared();
    }
    void lock_tables() {
        const std::lock_guard<std::shared_mutex> before(readers_);
        wanted_ = true;
        tables_.lock();
        since_ = Clock::now();
        wanted_ = false;
    }
    void step_aside() {
        if (Clock::now() - since_ < kSlice) return;
        tables_.unlock();
        for (int k = 0; k < 100 && n_readers_.load(std::memory_order_relaxed); ++k) std::this_thread::yield();
        lock_tables();
    }
    void begin_growing() {
        {
            const Counted waiting(n_growers_);
            const std::lock_guard<std::shared_mutex> first(next_);
            growth_.lock();
        }
        lock_tables();
    }
    void begin_growing_if_free() {
        if (is_wanted() || !growth_.try_lock()) throw Preempted();
        lock_tables();
    }
    void end_growing() {
        tables_.unlock();
        growth_.unlock();
    }
};

}  // namespace wfsa
