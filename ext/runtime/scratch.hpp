// What a thread keeps between operations so as not to allocate: buffers, and its finished masks.
//
// An operation owns it while it runs; operations do not nest.
#pragma once
#include "parser/closure.hpp"
#include "parser/gss.hpp"
#include "tails/fronts.hpp"

namespace wfsa {

// Finished masks of one thread, keyed by what decides them.
//
// The same few situations come again and again (inside this string, at a digit of that number), and copying a finished
// bitmap is cheaper than composing it.  A mask is kept when its key is seen for the second time and only if the parser
// DWA decided it on the topmost states; the key holds those.  Direct-mapped and per thread: no lock, bounded memory
// (64 bitmaps, 1 MB for 128k tokens).
class MaskCache {
  public:
    struct Entry {
        vector<int64_t> key;
        vector<uint32_t> bitmap;
    };
    vector<int64_t> key;  // of the mask being asked for; the caller fills it

    const vector<uint32_t>* find() {
        hash_ = 0x9E3779B97F4A7C15ull;
        for (int64_t k : key) { hash_ ^= uint64_t(k); hash_ *= 0xff51afd7ed558ccdull; hash_ ^= hash_ >> 29; }
        const Entry& e = entries_[hash_ % kEntries];
        return e.key == key ? &e.bitmap : nullptr;
    }
    // After a miss: keep the mask if this key was seen before.
    void put(const uint32_t* mask, size_t n_words) {
        uint64_t& seen = seen_[hash_ % kSeen];
        if (seen != hash_) { seen = hash_; return; }
        Entry& e = entries_[hash_ % kEntries];
        e.key = key;
        e.bitmap.assign(mask, mask + n_words);
    }

  private:
    static constexpr size_t kEntries = 64, kSeen = 4096;
    uint64_t hash_ = 0;
    vector<Entry> entries_ = vector<Entry>(kEntries);
    vector<uint64_t> seen_ = vector<uint64_t>(kSeen);
};

struct Scratch {
    vector<Config> in, out;         // configurations before and after a byte
    Closure closure;
    SameStacks same_stacks;
    vector<const Node*> nodes;
    vector<int32_t> states, terms, order;
    vector<int32_t> token_terms;    // token-level terminals that one token can be
    MaskCache masks;
    bool deep = false;              // the mask being made depends on more than its key
    Arena arena;                    // of stacks that live as long as one mask
    vector<uint32_t> kept, bitmap;  // tokens
    vector<uint32_t> taken;         // tails, one bit each
    // "cfg": where the parser DWA still has to read, and where it has been.
    vector<NodeState> open;
    OpenSet<NodeState, NodeState::Hash> visited;
    // "longest": the stacks behind cuts, and the transitions of joint tails whose cuts are still to be followed.
    struct Reading {
        int32_t cut, end, front;
        size_t base;  // in `path`, the fronts behind this transition's cuts
    };
    Fronts fronts;
    vector<Reading> readings;
    OpenSet<uint64_t, PairHash> begun;  // (transition's machine state, front)
    vector<int32_t> path;

    static Scratch& of_thread() {
        Arena::prepare();
        static thread_local Scratch s;
        return s;
    }
};

}  // namespace wfsa
