// Universes: the tails that are asked about together.
//
// The machines that say which tails a stack takes (parser_dwa.hpp, joint_tails.hpp) number tails by their place in
// one trie. Ahead of time there is one universe a terminal, the union of the tails of all its ends; on demand each
// end of a terminal brings its own, so that nothing waits for ends that may never be needed. For each end the slots
// of its own tails in the universe are kept, to get back from tails to tokens.
#pragma once
#include "profiles/profile.hpp"
#include "vocabulary/vocabulary.hpp"

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

// Lexes tails from a place on: those that end inside terminals, and where terminals may end within others.
class TailLexer {
  public:
    TailLexer(Lexer& lexer, Staying& staying) : lexer_(lexer), staying_(staying) {}

    // Behind a node, from lexer state y.  Slots of tails that are taken are appended; cut(accept, node) where a terminal may
    // end; step() at every byte.
    template <class Step, class Cut>
    void lex(const Trie& tails, int32_t node, int32_t y, vector<int32_t>& slots, const Step& step, const Cut& cut) {
        levels_.clear();  // as deep as a token is long
        enter(tails[node], y, 0);
        while (!levels_.empty()) {
            Level& level = levels_.back();
            if (level.child == level.end) { levels_.pop_back(); continue; }
            const int32_t c = level.child++;
            step();
            const Edge* e = lexer_.states[level.y].edge(tails.byte[c]);
            if (!e) continue;
            const int32_t to = e->target, after = lexer_.count_after(lexer_.states[to], level.count, *e);
            if (!lexer_.alive(lexer_.states[to], after)) continue;
            if (tails[c].own) slots.push_back(tails[c].slot_lo);
            if (tails[c].first_child == tails[c].end_child) continue;
            lexer_.expand(to);
            const LexState& in = lexer_.states[to];
            if (staying_.stays(to, tails[c]) && lexer_.alive(in, after + tails[c].height)) {
                for (int32_t s = tails[c].slot_lo + tails[c].own; s < tails[c].slot_hi; ++s) slots.push_back(s);
                continue;
            }
            for (const Accept& a : in.accepts) if (lexer_.terms.takes(a.term, after)) cut(a, c);
            enter(tails[c], to, after);
        }
    }
    template <class Self, class V> static void fields(Self& l, V& v) { v.expansion(l.levels_); }

  private:
    struct Level { int32_t child, end, y, count; };  // children of a tail node still to be entered from lexer state y
    Lexer& lexer_;
    Staying& staying_;
    vector<Level> levels_;

    void enter(const TrieNode& node, int32_t y, int32_t count) {
        lexer_.expand(y);
        levels_.push_back({node.first_child, node.end_child, y, count});
    }
};

// Give some ends of one terminal a universe.
inline void add_universe(StableVector<Universe>& universes, Profiler& profiler, const Terminals& terms,
                         const vector<int32_t>& ends) {
    vector<const Tails*> parts;
    for (int32_t i : ends) parts.push_back(profiler.terminal_ends[i].tails.get());
    const int32_t term = profiler.terminal_ends[ends[0]].term;
    const auto united = profiler.cache().united(parts, terms[term].counted);
    for (size_t k = 0; k < ends.size(); ++k) {
        TerminalEnd& end = profiler.terminal_ends[ends[k]];
        end.universe = int32_t(universes.size());
        end.places = &united->members[k];
    }
    universes.push_back({term, united});
}

// From tails back to tokens: which tokens leave a tail when they end a terminal.

// The tokens of a slot of the tails of a terminal's end; `count`: units of the terminal before the token.
inline void add_leaving_tokens(const Slots& tails, int32_t slot, int32_t term, const Terminals& terms, int32_t count, MaskWriter out) {
    for (int32_t k = tails.slot_indptr[slot]; k < tails.slot_indptr[slot + 1]; ++k) {
        const int32_t units = tails.slot_counts.empty() ? 0 : tails.slot_counts[k];
        if (terms.takes(term, count + units)) out.set(tails.slot_tokens[k]);
    }
}

// ... of a tail, by its slot in the universe.
inline void add_tail(const TerminalEnd& end, int32_t tail, const Terminals& terms, int32_t count, MaskWriter out) {
    const int32_t x = end.places->given[tail];
    if (x >= 0) out.set(x);
    else if (x < SharedTails::kNone) add_leaving_tokens(end.tails->slots, SharedTails::kNone - 1 - x, end.term, terms, count, out);
}

}  // namespace wfsa
