// What a thread keeps between operations so as not to allocate: buffers, and its finished masks.
//
// An operation owns it while it runs; operations do not nest.
#pragma once
#include "parser/closure.hpp"
#include "parser/same_stacks.hpp"
#include "runtime/mask_cache.hpp"
#include "tails/fronts.hpp"

namespace wfsa {

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
    struct At {
        const Node* node;
        int32_t state;
        bool operator==(const At& o) const { return node == o.node && state == o.state; }
    };
    struct HashAt {
        size_t operator()(const At& a) const noexcept {
            return hash_of(a.node, a.state);
        }
    };
    struct Nothing {};
    vector<At> open;
    OpenTable<At, Nothing, HashAt> visited;
    // "longest": the stacks behind cuts, and the transitions of joint tails whose cuts are still to be followed.
    struct Reading {
        int32_t cut, end, front;
        size_t base;  // in `path`, the fronts behind this transition's cuts
    };
    Fronts fronts;
    vector<Reading> readings;
    OpenTable<uint64_t, Nothing, PairHash> begun;  // (transition's machine state, front)
    vector<int32_t> path;

    static Scratch& of_thread() {
        Arena::prepare();
        static thread_local Scratch s;
        return s;
    }
};

}  // namespace wfsa
