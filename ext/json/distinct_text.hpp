// Of one sequence whose items must differ: its text, and the scanner after every commit.
//
// A mask tries tokens behind the text and cuts them off again.  It changes nothing that counts, but several threads may ask
// one state for masks, or fork it meanwhile: they take turns at the text.  (A copy for each mask would be the length of the
// text every time.)
//
// Forks share the text until one of them writes, which then takes a copy: forking costs nothing where only the fork goes
// on, or is asked nothing; where both go on it costs the length of the text, once.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>

#include "json/distinct_mask.hpp"

namespace wfsa {

class DistinctText {
  public:
    DistinctText() = default;
    DistinctText(const DistinctText& other) { *this = other; }
    DistinctText& operator=(const DistinctText& other) {
        std::lock_guard<std::mutex> lock(other.mutex_);
        text_ = other.text_;
        past_ = other.past_;
        return *this;
    }

    // op(operations, companion) is a commit: the snapshot after it, or nullptr.  It may run more than once.
    template <class Op> const Snapshot* commit(Engine& engine, Arena& arena, const Op& op) {
        std::string& text = own();
        const size_t size = text.size();
        JsonScan after;
        const Snapshot* to = engine.run([&](auto& operations) {
            text.resize(size);
            DistinctItems beside(engine.distinct, scan(), text, arena);
            const Snapshot* out = op(operations, beside);
            after = beside.scan;
            return out;
        });
        if (!to || DistinctMask(engine, text).is_stuck(to, after)) {
            text.resize(size);
            return nullptr;
        }
        past_ = new (arena.bytes(sizeof(Past))) Past{past_, after};
        return to;
    }
    void rollback(int64_t n) {
        for (; n && past_; --n) past_ = past_->before;
    }
    const void* end() const { return past_ ? past_ + 1 : nullptr; }  // of what the last commit wrote to the arena
    // Take away from the mask of a snapshot what the tables cannot know.
    void filter(Engine& engine, const Snapshot* at, uint32_t* mask) const {
        std::lock_guard<std::mutex> lock(mutex_);
        DistinctMask(engine, own()).filter(at, scan(), mask);
    }

  private:
    struct Past {
        const Past* before;
        JsonScan scan;
    };
    mutable std::mutex mutex_;  // of masks and forks; what changes the state is called by one thread at a time
    mutable std::shared_ptr<std::string> text_;  // what the scanner has read, and what was rolled back
    const Past* past_ = nullptr;

    JsonScan scan() const { return past_ ? past_->scan : JsonScan(); }
    // The text, to be written behind.
    std::string& own() const {
        const size_t n = size_t(scan().n);
        if (!text_ || text_.use_count() > 1) {
            text_ = std::make_shared<std::string>(text_ ? text_->substr(0, n) : std::string());
        } else {
            std::atomic_thread_fence(std::memory_order_acquire);  // behind what forks that are gone have read
            text_->resize(n);
        }
        return *text_;
    }
};

}  // namespace wfsa
