// Where the bytes of a constraint are, by part; how much there is of what; and an engine that is destroyed where nobody waits for it.
//
// What equal constraints share is the vocabulary's and counted there, once: sets of tokens, tails, universes, walks.
#pragma once
#include <map>
#include <string>

#include "containers/heap_bytes.hpp"
#include "containers/reaper.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

inline size_t heap_bytes(const Universe&) { return 0; }  // its tails are the vocabulary's
template <class... Parts> size_t heap_bytes_of(const Parts&... parts) { return (size_t(0) + ... + heap_bytes(parts)); }

inline size_t heap_bytes(const UnorderedRule& u) { return heap_bytes_of(u.members, u.required, u.groups); }
inline size_t heap_bytes(const UnorderedList& l) { return heap_bytes_of(l.required, l.absent, l.pairs, l.keys); }

inline std::map<std::string, int64_t> memory_of(const Engine& e) {
    const GrowthLock::Reading reading(e.lock);  // other threads may be decoding
    const NormalGrammar& g = e.grammar;
    const LrTables& lr = e.lr;
    Meter meter;
    meter.table("terminals", e.lexer.terms, 0);
    std::map<std::string, int64_t>& out = meter.bytes;
    out["terminals"] += int64_t(heap_bytes_of(e.token_ids, e.token_terms, e.ignored));
    out["rules"] = int64_t(heap_bytes_of(g.rules, g.rule_indptr, g.origin, g.distinct, g.unordered, e.distinct));
    out["parser states"] = int64_t(heap_bytes_of(
        lr.goto_indptr, lr.goto_symbol, lr.goto_target, lr.n_shifts, lr.completed_indptr, lr.completed,
        lr.unordered.lists, lr.unordered.sets, lr.unordered.list_of, lr.unordered.pair_of, e.contexts.of_state,
        e.contexts.of_set));
    out["lexer states"] = int64_t(e.lexer.heap_bytes());
    out["profiles"] = int64_t(e.profiler.heap_bytes());
    out["stack reading"] = int64_t(heap_bytes_of(e.universes, e.weights, e.dwa, e.joint, e.bulk));
    out["expansion"] += int64_t(e.lexer.expansion_bytes() + e.staying.bytes() + e.profiler.expansion_bytes());
    out["engine"] = int64_t(sizeof(Engine));
    return out;
}

// How many of what there are by now.
inline std::map<std::string, int64_t> sizes_of(const Engine& e) {
    const GrowthLock::Reading reading(e.lock);
    const size_t n_states = e.dwa.n_states() + e.joint.n_states();
    const size_t n_transitions = e.dwa.n_transitions() + e.joint.n_transitions();
    return {
        {"lr_states", e.lr.n_states()}, {"contexts", e.lexer.n_contexts()}, {"lexer_roots", e.lexer.n_roots()},
        {"lexer_states", e.lexer.n_states()}, {"profiles", e.profiler.n_profiles()},
        {"dwa_states", n_states}, {"dwa_transitions", n_transitions},
    };
}

inline std::shared_ptr<Engine> make_engine(std::shared_ptr<Vocabulary> vocab) {
    auto drop = [](Engine* e) { Reaper::give(e->rough_bytes(), [e] { delete e; }); };
    return std::shared_ptr<Engine>(new Engine(std::move(vocab)), drop);
}

}  // namespace wfsa
