// The masks of many decoders, of any kinds, on several threads.
//
// Decoders of one constraint follow each other, so that what one has read is at hand for the next, and equal masks are
// copied (MaskCache, scratch.hpp).  Each thread has a share of its own, the same one in the next step of decoding: what those
// masks are made of, and where they are written, is in its processor's cache.  Who has done with it helps the others, a
// few masks at a time.  A thread that has to be woken is there after some ten masks, so a small batch stays with the
// caller.
#pragma once
#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "containers/thread_pool.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

struct Asked {
    const void* constraint;
    const Decoder* decoder;
    uint32_t* out;      // for its mask
    Budget budget;
    int64_t most = kAnyTokens;  // tokens that may be needed after the next one: of the budget
    bool operator<(const Asked& o) const { return std::tie(constraint, out) < std::tie(o.constraint, o.out); }
};

// work(thread) on n threads, this one among them.  Of several exceptions one is thrown.
template <class Work> void on_threads(size_t n, const Work& work) {
    std::mutex lock;
    std::exception_ptr failed;
    ThreadPool::run(std::max<size_t>(n, 1) - 1, [&](size_t thread) {
        try {
            work(thread);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            failed = std::current_exception();
        }
    });
    if (failed) std::rethrow_exception(failed);
}
constexpr size_t kWorthWaking = 16;  // masks

// What the budgets allow.  BudgetTooSmall: one does not suffice.
inline void grant(std::vector<Asked>& asked) {
    for (Asked& one : asked)
        one.most = one.decoder->finished() ? kAnyTokens : most_after(*one.decoder, one.budget);
}

// Masks of n_words words, within what was granted.
inline void fill_masks(std::vector<Asked> asked, int64_t n_words, int64_t n_threads) {
    constexpr size_t kDealt = 4;
    std::sort(asked.begin(), asked.end());
    const size_t n = asked.size(), n_shares = std::min(size_t(n_threads), std::max<size_t>(1, n / kWorthWaking));
    struct Share {
        alignas(64) std::atomic<size_t> next;
        size_t end;
    };
    std::vector<Share> shares(n_shares);
    for (size_t k = 0; k < n_shares; ++k) {
        shares[k].next = n * k / n_shares;
        shares[k].end = n * (k + 1) / n_shares;
    }
    on_threads(n_shares, [&](size_t thread) {
        for (size_t k = 0; k < n_shares; ++k) {
            Share& share = shares[(thread + k) % n_shares];
            for (size_t i; (i = share.next.fetch_add(kDealt)) < share.end;)
                for (const size_t end = std::min(share.end, i + kDealt); i < end; ++i) {
                    const Asked& one = asked[i];
                    fill_mask(*one.decoder, one.out, n_words, one.most);
                }
        }
    });
}

// The masks of draft trees: what may follow each of the tokens that a draft model has proposed.
//
// A tree of n nodes is three arrays, as in XGrammar's traverse_draft_tree and SGLang's speculative decoding:
//
//   node           0    1    2    3    4          0 ─┬─ 1 ─── 3        node 0 is the last committed token, which is
//   next           1    3   -1   -1   -1  child      ├─ 2              not committed again; its row is the mask of
//   sibling       -1    2    4   -1   -1             └─ 4              the decoder as it stands
//   tokens         ·    a    b    c    d
//
// Row i of the masks is what may follow the tokens on the way from node 0 to node i, each of which takes one of the budget.
// Rows stay as they were where there is nothing to tell: below a token that is not allowed, which a verifier refuses
// anyway, and where the text has ended.
//
// The walk is depth first on a fork, one commit and one rollback a node, with a path in place of recursion: a chain may be
// as long as a text.  What the arrays say is checked before the first row is written.  Whole trees are dealt to threads as
// they become free; a tree is not divided, since its nodes follow each other.

struct DraftTree {
    const int64_t *next, *sibling, *tokens;  // of n nodes each
    int64_t n;
};

enum class TreeFault { Sound, Child, Sibling, RootSibling, Met };

struct TreeCheck {
    TreeFault fault;
    int64_t node;
};

// A tree: from node 0 each node is met once at most.  Nodes that are not met are padding.
inline TreeCheck check_tree(const DraftTree& tree) {
    const auto within = [&](int64_t node) { return node >= -1 && node < tree.n; };
    for (int64_t i = 0; i < tree.n; ++i) {
        if (!within(tree.next[i])) return {TreeFault::Child, i};
        if (!within(tree.sibling[i])) return {TreeFault::Sibling, i};
    }
    if (tree.sibling[0] != -1) return {TreeFault::RootSibling, 0};
    std::vector<bool> met(tree.n, false);
    std::vector<int64_t> todo{0};
    met[0] = true;
    while (!todo.empty()) {
        const int64_t at = todo.back();
        todo.pop_back();
        for (int64_t child = tree.next[at]; child != -1; child = tree.sibling[child]) {
            if (met[child]) return {TreeFault::Met, child};
            met[child] = true;
            todo.push_back(child);
        }
    }
    return {TreeFault::Sound, 0};
}

// What is asked of one sequence.  `probe` is a fork that the walk may change; it is as it was in the end.
struct AskedTree {
    std::unique_ptr<Decoder> probe;
    DraftTree tree;
    int64_t n_tokens;    // of the vocabulary: other ids are not allowed
    Budget budget;       // of the sequence as it stands
    uint32_t* rows;      // n of them
    int64_t n_filled{};  // how many have been written
};

inline void fill_tree(AskedTree& asked, int64_t n_words) {
    Decoder& probe = *asked.probe;
    const DraftTree& tree = asked.tree;
    const bool bounded = asked.budget.tokens != kAnyTokens;
    std::vector<int64_t> path;  // nodes whose tokens are committed
    const auto fill = [&](int64_t node) {
        if (probe.finished()) return false;
        Budget budget = asked.budget;
        if (bounded) budget.tokens = std::max<int64_t>(0, budget.tokens) - int64_t(path.size());
        fill_mask(probe, asked.rows + node * n_words, n_words, most_after(probe, budget));
        ++asked.n_filled;
        return true;
    };
    const auto commit = [&](int64_t token) {
        if (token < 0 || token >= asked.n_tokens) return false;
        const uint32_t* const allowed = asked.rows + (path.empty() ? 0 : path.back()) * n_words;
        if (bounded && !has_bit(allowed, token)) return false;
        return probe.commit_token(int32_t(token));
    };
    int64_t node = fill(0) ? tree.next[0] : -1;
    for (;;) {
        if (node == -1) {
            if (path.empty()) return;
            probe.rollback(1);
            node = tree.sibling[path.back()];
            path.pop_back();
            continue;
        }
        if (!commit(tree.tokens[node])) {
            node = tree.sibling[node];
            continue;
        }
        path.push_back(node);
        node = fill(node) ? tree.next[node] : -1;
    }
}

// Trees of one constraint follow each other where they stand side by side.
inline void fill_trees(std::vector<AskedTree>& asked, int64_t n_words, int64_t n_threads) {
    std::atomic<size_t> next{0};
    size_t n_nodes = 0;
    for (const AskedTree& one : asked) n_nodes += one.tree.n;
    on_threads(std::min({size_t(n_threads), asked.size(), n_nodes / kWorthWaking}), [&](size_t) {
        for (size_t i; (i = next.fetch_add(1)) < asked.size();) fill_tree(asked[i], n_words);
    });
}

}  // namespace wfsa
