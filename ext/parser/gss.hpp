// The graph-structured stack: many LR stacks that share suffixes (Tomita 1986).
//
//   Node      an LR state on top of any of its predecessors; immutable once its frontier is built
//   Config    where the parse may be: the tops reached at the last terminal boundary, and the lexer state since then
//   Snapshot  all configurations after a commit; a linked list backwards, so fork and rollback copy one pointer
//
// Rules are binary and have no ε (normalise.hpp), hence in one closure every new node stands on old nodes, whose
// predecessors are final: reducing needs no second look at finished nodes.  Every reduction pops two states.
//
// Two stacks with one top state at one place are one node.  Under "cfg" each top is a configuration of its own, and
// configurations with one top state and one lexer state merge, so their number is bounded by the tables, whatever the
// text.  Under "longest" the tops of one closure stay together, because what the parser can take decides what is longest.
//
// Memory: nodes live in arenas; a fork keeps its ancestor's arena alive and writes to its own.
#pragma once
#include <memory>

#include "lexer/lexer.hpp"
#include "parser/lr0.hpp"

namespace wfsa {

struct Node {
    int32_t state, n_below;
    const Node* below[1];  // n_below of them
};

struct Config {
    const Node* const* tops;  // by ascending state
    int32_t n_tops, lex;
    int32_t count = 0;  // units read in counted terminals (lexer.hpp)
};

struct Snapshot {
    const Snapshot* before;
    int64_t n_commits;
    const uint8_t* text;  // what this commit wrote, for messages: in the vocabulary or in an arena
    int64_t n_text;
    int32_t n, finished;
    Config configs[1];  // n of them
};

// Memory that is given back all at once.  Blocks are small and go back to a stock of their thread, because a fresh page
// costs more than a commit.
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
    static void prepare() { stock(); }  // before thread-local objects with arenas, so that the stock outlives them
    void clear() {  // for scratch arenas: keep the largest block
        if (blocks_.empty()) return;
        auto largest = std::max_element(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.size < b.size; });
        std::swap(blocks_.front(), *largest);
        for (size_t i = 1; i < blocks_.size(); ++i) give_back(blocks_[i]);
        blocks_.resize(1);
        at_ = blocks_[0].memory.get();
        left_ = blocks_[0].size;
    }

  private:
    static constexpr size_t kFirst = 1 << 10, kBlock = 1 << 14, kMaxStock = 256;
    struct Block { std::unique_ptr<char[]> memory; size_t size; };
    std::shared_ptr<Arena> parent_;
    vector<Block> blocks_;
    char* at_ = nullptr;
    size_t left_ = 0;

    static vector<Block>& stock() {
        static thread_local vector<Block> blocks;
        return blocks;
    }
    static void give_back(Block& b) {
        if (b.size == kBlock && stock().size() < kMaxStock) stock().push_back(std::move(b));
    }
    void grow(size_t n) {
        const size_t size = n > kBlock ? n : blocks_.empty() && n <= kFirst ? kFirst : kBlock;
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

// Builds one frontier: shift edges in, every reduction applied, nodes out.
class Closure {
  public:
    struct Top { int32_t state; vector<const Node*> below; };

    void begin() {
        n_ = 0;
        work_.clear();
        if (++epoch_ == 0) { std::fill(seen_.begin(), seen_.end(), Seen{}); epoch_ = 1; }
        n_seen_ = 0;
    }
    void add(int32_t state, const Node* below) {
        int32_t i = 0;
        while (i < n_ && tops_[i].state != state) ++i;
        if (i == n_) {
            if (n_ == int32_t(tops_.size())) tops_.emplace_back();
            tops_[n_].state = state;
            tops_[n_].below.clear();
            ++n_;
        }
        if (!first_time(i, below)) return;
        tops_[i].below.push_back(below);
        work_.push_back({i, below});
    }
    void reduce(const LrTables& lr) {
        reduce(lr, [](int32_t) { return false; });
    }
    template <class Barred> void reduce(const LrTables& lr, const Barred& barred) {  // but not to these nonterminals
        for (size_t k = 0; k < work_.size(); ++k) {
            auto [i, left] = work_[k];
            int32_t s = tops_[i].state;
            for (const int32_t *d = lr.completed_begin(s), *end = lr.completed_end(s); d != end; ++d) {
                if (barred(*d)) continue;
                for (int32_t b = 0; b < left->n_below; ++b) {
                    int32_t g = lr.go(left->below[b]->state, *d);
                    if (g >= 0) add(g, left->below[b]);
                }
            }
        }
    }
    int32_t n() const { return n_; }
    const Top& operator[](int32_t i) const { return tops_[i]; }

    static Node* make(Arena& arena, int32_t state, const Node* const* below, size_t n) {
        Node* node = static_cast<Node*>(arena.bytes(sizeof(Node) + sizeof(Node*) * (n ? n - 1 : 0)));
        node->state = state;
        node->n_below = int32_t(n);
        std::copy(below, below + n, node->below);
        return node;
    }

  private:
    struct Seen { uint32_t epoch = 0; int32_t i = 0; const Node* below = nullptr; };
    vector<Top> tops_;
    int32_t n_ = 0;
    vector<std::pair<int32_t, const Node*>> work_;
    vector<Seen> seen_ = vector<Seen>(64);
    uint32_t epoch_ = 0;
    size_t n_seen_ = 0;

    bool first_time(int32_t i, const Node* below) {
        if (n_seen_ * 2 >= seen_.size()) {
            vector<Seen> old(seen_.size() * 2);
            old.swap(seen_);
            n_seen_ = 0;
            for (const Seen& s : old) if (s.epoch == epoch_) place(s.i, s.below);
        }
        return place(i, below);
    }
    bool place(int32_t i, const Node* below) {
        size_t h = (reinterpret_cast<uintptr_t>(below) >> 4) * 0x9E3779B97F4A7C15ull + size_t(i) * 0xff51afd7ed558ccdull;
        for (size_t k = h >> 20;; ++k) {
            Seen& s = seen_[k & (seen_.size() - 1)];
            if (s.epoch != epoch_) { s = {epoch_, i, below}; ++n_seen_; return true; }
            if (s.i == i && s.below == below) return false;
        }
    }
};

}  // namespace wfsa
