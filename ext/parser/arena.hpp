// Memory that is given back in the reverse order of writing: where the nodes of stacks live.
//
// Nothing in an arena has a destructor. Blocks are small, the first ones most, because a branch of a search may be one
// commit long; they go back to a stock of their thread, because a fresh page costs more than a commit, and so does what
// an allocator puts in order when it is asked for a kilobyte after much has been freed. An arena may stand on another
// one, which it keeps alive (arena.hpp).
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <iterator>
#include <memory>
#include <vector>

namespace wfsa {

using std::vector;

class Arena {
  public:
    explicit Arena(std::shared_ptr<Arena> parent = nullptr) : parent_(std::move(parent)) {}
    Arena(const Arena&) = delete;
    ~Arena() {
        for (Block& b : blocks_) give_back(b);
        std::shared_ptr<Arena> p = std::move(parent_);  // release a long chain of ancestors without recursion
        while (p && p.use_count() == 1) p = std::move(p->parent_);
    }
    void* bytes(size_t n) {
        n = (n + 7) & ~size_t(7);
        if (n > left_) grow(n);
        char* p = at_;
        at_ += n;
        left_ -= n;
        return p;
    }
    // Was what ends at `end`, which is never nothing, written here?
    bool holds(const void* end) const { return find(end) != blocks_.rend(); }
    // Everything that was written behind it is given back.
    void cut(const void* end) {
        for (auto keep = find(end).base(); blocks_.end() != keep; blocks_.pop_back()) give_back(blocks_.back());
        const Block& last = blocks_.back();
        const size_t used = (size_t(static_cast<const char*>(end) - last.memory.get()) + 7) & ~size_t(7);
        at_ = last.memory.get() + used;
        left_ = last.size - used;
    }
    const std::shared_ptr<Arena>& parent() const { return parent_; }
    static void prepare() { stock(); }  // before thread-local objects with arenas, so that the stock outlives them
    void clear() {  // for scratch arenas: keep the largest block
        if (blocks_.empty()) return;
        auto largest = std::max_element(blocks_.begin(), blocks_.end(),
                                        [](const Block& a, const Block& b) { return a.size < b.size; });
        std::swap(blocks_.front(), *largest);
        for (size_t i = 1; i < blocks_.size(); ++i) give_back(blocks_[i]);
        blocks_.resize(1);
        at_ = blocks_[0].memory.get();
        left_ = blocks_[0].size;
    }

  private:
    static constexpr size_t kSizes[] = {1 << 8, 1 << 10, 1 << 12, 1 << 14};
    static constexpr size_t kNSizes = std::size(kSizes), kMaxStock = 256;
    struct Block { std::unique_ptr<char[]> memory; size_t size; };
    std::shared_ptr<Arena> parent_;
    vector<Block> blocks_;
    char* at_ = nullptr;
    size_t left_ = 0;

    // Mostly it is the last one.
    vector<Block>::const_reverse_iterator find(const void* end) const {
        const std::less<const char*> before;
        const char* p = static_cast<const char*>(end);
        return std::find_if(blocks_.rbegin(), blocks_.rend(), [&](const Block& b) {
            return before(b.memory.get(), p) && !before(b.memory.get() + b.size, p);
        });
    }
    struct Stock { vector<Block> of_size[kNSizes]; };
    static Stock& stock() {
        static thread_local Stock blocks;
        return blocks;
    }
    static void give_back(Block& b) {
        for (size_t i = 0; i < kNSizes; ++i) {
            vector<Block>& same = stock().of_size[i];
            if (b.size == kSizes[i] && same.size() < kMaxStock) return same.push_back(std::move(b));
        }
    }
    void grow(size_t n) {
        const size_t i = std::min(blocks_.size(), kNSizes - 1);
        vector<Block>& same = stock().of_size[i];
        if (n <= kSizes[i] && !same.empty()) {
            blocks_.push_back(std::move(same.back()));
            same.pop_back();
        } else {
            const size_t size = std::max(n, kSizes[i]);
            blocks_.push_back({std::unique_ptr<char[]>(new char[size]), size});
        }
        at_ = blocks_.back().memory.get();
        left_ = blocks_.back().size;
    }
};

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
