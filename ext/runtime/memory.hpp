// Where the bytes of a constraint are, by part; how much there is of what; and an engine that is destroyed where nobody waits for it.
//
// What equal constraints share is the vocabulary's and counted there, once: sets of tokens, tails, universes, walks.
#pragma once
#include <map>
#include <string>

#include "containers/reaper.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

inline std::map<std::string, int64_t> memory_of(const Engine& e) {
    const GrowthLock::Reading reading(e.lock);  // other threads may be decoding
    Meter meter;
    Tables::fields(static_cast<const Tables&>(e), meter);
    meter.bytes["engine"] = int64_t(sizeof(Engine));
    return meter.bytes;
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
