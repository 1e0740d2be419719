// Universes: the tails that are asked about together.
//
// The machines that say which tails a stack takes (parser_dwa.hpp, joint_tails.hpp) number tails by their place in
// one trie. Ahead of time there is one universe a terminal, the union of the tails of all its ends; on demand each
// end of a terminal brings its own, so that nothing waits for ends that may never be needed. For each end the slots
// of its own tails in the universe are kept, to get back from tails to tokens.
#pragma once
#include "profiles/profile.hpp"

namespace wfsa {

struct Universe {
    int32_t term;
    std::shared_ptr<const SharedTails> shared;
    const Trie& tails() const { return shared->all; }  // its slots are the weights' elements
    template <class Self, class V> static void fields(Self&, V&) {}  // its tails are the vocabulary's
};

// Of a loaded table.
inline void check_weight(List weight, const Universe& universe) {
    for (int32_t slot : weight) check(size_t(slot) < universe.tails().slot_word.size(), "a weight is out of range");
}

// Give some ends of one terminal a universe.
inline void add_universe(StableVector<Universe>& universes, Profiler& profiler, const Terminals& terms,
                         const vector<int32_t>& ends) {
    vector<const Tails*> parts;
    for (int32_t i : ends) parts.push_back(profiler.terminal_ends[size_t(i)].tails.get());
    const int32_t term = profiler.terminal_ends[size_t(ends[0])].term;
    const auto united = profiler.cache().united(parts, terms[term].counted);
    for (size_t k = 0; k < ends.size(); ++k) {
        TerminalEnd& end = profiler.terminal_ends[size_t(ends[k])];
        end.universe = int32_t(universes.size());
        end.places = &united->members[k];
    }
    universes.push_back({term, united});
}

}  // namespace wfsa
