// Of one sequence whose items must differ: the scanner after every commit.
//
// A scanner shares what is before it with its copies and never changes it, so forks and checkpoints are pointers, and a
// mask that tries tokens behind the text writes to an arena of its thread.
#pragma once
#include "json/distinct_mask.hpp"

namespace wfsa {

class DistinctText {
  public:
    // op(operations, companion) is a commit: the snapshot after it, or nullptr.  It may run more than once.
    template <class Op> const Snapshot* commit(Engine& engine, Arena& arena, const Op& op) {
        const Trial to = engine.run([&](auto& operations) {
            DistinctItems beside(engine, scan(), arena);
            const Snapshot* out = op(operations, beside);
            return Trial{out, beside.scan, out && beside.is_close()};
        });
        if (to.close) DistinctMask::arena().clear();
        if (!to.at || (to.close && !DistinctSearch(engine, DistinctMask::arena()).is_alive(to))) return nullptr;
        past_ = new (arena.bytes(sizeof(Past))) Past{past_, to.scan};
        return to.at;
    }
    void rollback(int64_t n) {
        for (; n && past_; --n) past_ = past_->before;
    }
    const void* end() const { return past_ ? past_ + 1 : nullptr; }  // of what the last commit wrote to the arena
    // Take away from the mask of a snapshot what the tables cannot know.
    void filter(Engine& engine, const Snapshot* at, uint32_t* mask) const { DistinctMask(engine).filter(at, scan(), mask); }

  private:
    struct Past {
        const Past* before;
        JsonScan scan;
    };
    const Past* past_ = nullptr;

    JsonScan scan() const { return past_ ? past_->scan : JsonScan(); }
};

}  // namespace wfsa
