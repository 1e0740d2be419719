// A sequence under a compiled grammar, with all companions that a front end may ask for.
#pragma once
#include "companions/bounded_white_space.hpp"
#include "companions/distinct_items.hpp"
#include "runtime/session.hpp"

namespace wfsa {

using GrammarSession = Session<DistinctItems, BoundedWhiteSpace>;

// Makes what texts need of the vocabulary together with the constraint, so that the first text does not wait for it.
inline void prepare_companions(const Engine& e) {
    BoundedWhiteSpace::tokens_of(e);
    if (!e.distinct.empty()) e.vocab->kept<Quotes>();
}

}  // namespace wfsa
