// Memory that is given back in the reverse order of writing: where the nodes of stacks live.
//
// Nothing in an arena has a destructor. Blocks are small, the first ones most, because a branch of a search may be one
// commit long; they go back to a stock of their thread, because a fresh page costs more than a commit. An arena may
// stand on another one, which it keeps alive (shared_arena.hpp).
#pragma once
#include <algorithm>
#include <functional>
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
    static constexpr size_t kFirst = 1 << 8, kBlock = 1 << 14, kMaxStock = 256;
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
    static vector<Block>& stock() {
        static thread_local vector<Block> blocks;
        return blocks;
    }
    static void give_back(Block& b) {
        if (b.size == kBlock && stock().size() < kMaxStock) stock().push_back(std::move(b));
    }
    void grow(size_t n) {
        const size_t size = std::max(n, blocks_.empty() ? kFirst : std::min(kBlock, 4 * blocks_.back().size));
        if (size == kBlock && !stock().empty()) {
            blocks_.push_back(std::move(stock().back()));
            stock().pop_back();
        } else {
            blocks_.push_back({std::unique_ptr<char[]>(new char[size]), size});
        }
        at_ = blocks_.back().memory.get();
        left_ = size;
    }
};

}  // namespace wfsa
