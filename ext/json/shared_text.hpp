// A text for copying: a copy is a few words, shares the bytes, and goes on by itself.
//
//   leaf    the bytes of kLeaf places; written by one arena's owner only, each byte once
//   root    a tree of the leaves that are full, kFan to a branch; never changed: a leaf more is a new path to it
//   tail    the leaf of the last byte
//
// Who writes behind a leaf that another arena's owner began, or that has bytes there already (of what was rolled back),
// copies that leaf.  So forks, checkpoints and trials cost nothing that depends on the length, and threads that read
// what is before their end need no lock.
#pragma once
#include <algorithm>
#include <cstdint>

#include "parser/arena.hpp"

namespace wfsa {

class SharedText {
  public:
    int32_t size() const { return n_; }
    const void* last() const { return tail_; }  // where its last byte lies: texts that differ there have others
    uint8_t operator[](int32_t k) const {
        const int32_t number = k >> kBits;
        if (number == (n_ - 1) >> kBits) return tail_->bytes[k & (kLeaf - 1)];
        const void* at = root_;
        for (int32_t level = height_; level-- > 0;)
            at = static_cast<const Branch*>(at)->below[number >> level * kFanBits & (kFan - 1)];
        return static_cast<const Leaf*>(at)->bytes[k & (kLeaf - 1)];
    }
    void push(uint8_t byte, Arena& arena) {
        const int32_t at = n_ & (kLeaf - 1);
        if (at == 0) {
            if (n_) add_full(arena);
            tail_ = fresh(arena);
        } else if (tail_->owner != &arena || tail_->used != at) {
            Leaf* copy = fresh(arena);
            std::copy(tail_->bytes, tail_->bytes + at, copy->bytes);
            tail_ = copy;
        }
        tail_->bytes[at] = byte;
        tail_->used = at + 1;
        ++n_;
    }

  private:
    static constexpr int32_t kBits = 7, kLeaf = 1 << kBits, kFanBits = 4, kFan = 1 << kFanBits;
    struct Leaf {
        const Arena* owner;
        int32_t used;  // of what has been written; read by the owner only
        uint8_t bytes[kLeaf];
    };
    struct Branch {
        const void* below[kFan];
    };
    const void* root_ = nullptr;  // a branch, or a leaf where the height is 0
    Leaf* tail_ = nullptr;
    int32_t n_ = 0;
    int32_t height_ = 0;  // of branches

    static Leaf* fresh(Arena& arena) {
        Leaf* leaf = static_cast<Leaf*>(arena.bytes(sizeof(Leaf)));
        leaf->owner = &arena;
        leaf->used = 0;
        return leaf;
    }
    // The tail is full: it becomes a leaf of the tree.
    void add_full(Arena& arena) {
        const int32_t number = (n_ - 1) >> kBits;
        if (number == 0) {
            root_ = tail_;
            return;
        }
        if (number == 1 << height_ * kFanBits) {  // the tree is full: a root above it
            Branch* above = branch(arena, nullptr);
            above->below[0] = root_;
            root_ = above;
            ++height_;
        }
        const void** to = &root_;
        for (int32_t level = height_; level-- > 0;) {
            Branch* copy = branch(arena, static_cast<const Branch*>(*to));
            *to = copy;
            to = &copy->below[number >> level * kFanBits & (kFan - 1)];
        }
        *to = tail_;
    }
    static Branch* branch(Arena& arena, const Branch* of) {
        return new (arena.bytes(sizeof(Branch))) Branch(of ? *of : Branch{});
    }
};

}  // namespace wfsa
