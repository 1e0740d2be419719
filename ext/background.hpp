// In the background: tables are expanded as they are ahead of time (ahead.hpp), beside those who decode with them.
//
//   one thread   for the process, begun with the first job, ended when there has been none for a while
//   jobs         take turns, so a large grammar keeps no small one waiting; each ends when all is expanded, at a cap or
//                limit, with kMostBytes added, or when nobody holds the tables any more
//   slices       the tables are held for kSlice at most, and given up sooner to whoever waits: readers in the middle of
//                it, those who need to extend at once, for whom the step at hand is thrown away (growth_lock.hpp)
//
// What is expanded is the tables' own, so nothing is published or merged: the next mask finds it there.  Between slices
// the processor is offered to others, because a thread that is taken off it while it holds the tables holds them up.
//
// fork: the child has no thread, and its jobs are gone; tables then grow on use, until they are asked for again (begin).
#pragma once
#include <condition_variable>
#include <deque>
#include <system_error>

#include "ahead.hpp"

namespace wfsa {

class Background final : public ForkGate::Renewed {
  public:
    // Expands these tables from now on; nothing happens where it has been done or is being done, or there are no threads.
    static void begin(const std::shared_ptr<Engine>& tables) { the().take(tables); }
    // Waits for `most` milliseconds; true: they are expanded, or as far as they will be.
    static bool wait_for(const Engine& tables, int64_t most) {
        return the().wait(tables, std::chrono::milliseconds(most));
    }
    // The process ends.
    static void stop() { the().finish(); }

    void renew() override {
        new (&mutex_) std::mutex;
        new (&changed_) std::condition_variable;
        for (Job& job : jobs_)
            if (const std::shared_ptr<Engine> e = job.tables.lock()) e->expansion = Engine::kUnexpanded;
        jobs_.clear();
        running_ = false;
    }

  private:
    typedef std::chrono::steady_clock Clock;
    static constexpr std::chrono::microseconds kSlice{100}, kTurn{2000}, kPause{100};
    static constexpr std::chrono::seconds kIdle{1};
    static constexpr size_t kMostBytes = size_t(256) << 20;
    struct Job {
        std::weak_ptr<Engine> tables;
        std::unique_ptr<Ahead> ahead;
    };
    enum Outcome { kMore, kBusy, kEnded };
    std::mutex mutex_;  // of all below
    std::condition_variable changed_;
    std::deque<Job> jobs_;  // the first one is at work; only the thread takes jobs out
    bool running_ = false;
    std::atomic<bool> stopped_{false};

    static Background& the() {
        static Background* const one = new Background;
        return *one;
    }
    void take(const std::shared_ptr<Engine>& tables) {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (stopped_ || tables->frozen || tables->expansion != Engine::kUnexpanded) return;
        if (!running_) {
            try {
                std::thread([this] { run(); }).detach();
            } catch (const std::system_error&) {
                return;
            }
            running_ = true;
        }
        tables->expansion = Engine::kExpanding;
        jobs_.push_back({tables, nullptr});
        changed_.notify_all();
    }
    bool wait(const Engine& tables, std::chrono::milliseconds most) {
        std::unique_lock<std::mutex> lock(mutex_);
        const auto ended = [&] { return tables.expansion != Engine::kExpanding; };
        return changed_.wait_for(lock, most, [&] { return stopped_ || ended(); }) && ended();
    }
    void run() {
        std::unique_lock<std::mutex> lock(mutex_);
        while (changed_.wait_for(lock, kIdle, [&] { return stopped_ || !jobs_.empty(); }) && !stopped_) {
            Job& job = jobs_.front();  // it stays there when others come
            lock.unlock();
            const Outcome outcome = work_on(job);
            const ForkGate::Change change;
            lock.lock();
            Job done = std::move(jobs_.front());
            jobs_.pop_front();
            if (outcome != kEnded) jobs_.push_back(std::move(done));
            lock.unlock();
            done.ahead.reset();
            lock.lock();
        }
        running_ = false;
        changed_.notify_all();
    }
    Outcome work_on(Job& job) {
        const std::shared_ptr<Engine> tables = job.tables.lock();
        if (!tables) return kEnded;
        const Clock::time_point until = Clock::now() + kTurn;
        Outcome outcome = kMore;
        while (outcome == kMore && !stopped_ && Clock::now() < until) {
            outcome = slice(job, *tables);
            std::this_thread::yield();
        }
        if (outcome == kBusy) std::this_thread::sleep_for(kPause);
        if (outcome == kEnded) {
            const std::lock_guard<std::mutex> lock(mutex_);
            tables->expansion = Engine::kExpanded;
            changed_.notify_all();
        }
        return outcome;
    }
    Outcome slice(Job& job, Engine& tables) {
        try {
            bool more = true;
            tables.extend_in_background([&] {
                const Clock::time_point until = Clock::now() + kSlice;
                if (!job.ahead) job.ahead = std::make_unique<Ahead>(tables);
                while (more && Clock::now() < until) more = job.ahead->advance();
            });
            return more && tables.grown_in_background() < kMostBytes ? kMore : kEnded;
        } catch (const GrowthLock::Preempted&) {
            return kBusy;
        } catch (const std::exception&) {  // a limit, or no memory: what is missing is left to the text that needs it
            return kEnded;
        }
    }
    void finish() {
        std::unique_lock<std::mutex> lock(mutex_);
        stopped_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !running_; });
    }
};

}  // namespace wfsa
