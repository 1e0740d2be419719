// Memory of a text that forks and rolls back: what was written before a fork is shared, what is written after is not.
//
//   A ◄── B ◄── C     a text's arenas: it writes to the last one, reads all, and each keeps the one before it alive
//
//   fork       a copy of this object: both have the same last arena
//   writing    who has its last arena to itself writes on there; while others have it too, it opens one on top of it
//   rewinding  arenas behind the end of the text are let go, and the one in which it ends is cut off there, if no one
//              else has it; if others have it, they may be reading what stands behind
//
// So an arena that several have never changes, and one that is cut is read by nobody behind the cut. Counting who has
// it is enough: the count is raised only by who has it, and no fork is made while its origin is being changed.
#pragma once
#include <atomic>

#include "parser/arena.hpp"

namespace wfsa {

class SharedArena {
  public:
    // To be written to.
    Arena& own() {
        if (!is_alone()) last_ = std::make_shared<Arena>(last_);
        return *last_;
    }
    // Give back what was written behind the end of the last thing that is still of use.
    void rewind(const void* end) {
        while (!last_->holds(end)) last_ = std::shared_ptr<Arena>(last_->parent());
        if (is_alone()) last_->cut(end);
    }

  private:
    std::shared_ptr<Arena> last_ = std::make_shared<Arena>();

    bool is_alone() const {
        if (last_.use_count() > 1) return false;
        std::atomic_thread_fence(std::memory_order_acquire);  // behind what forks that are gone have read
        return true;
    }
};

}  // namespace wfsa
