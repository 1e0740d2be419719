// What lexing finds in the tails of a universe: which of them are taken, and which terminals end inside others.
//
//   place     tails of one universe, each behind what whole terminals have consumed of it, with the longer candidates
//             that may not match: a set of (tail node, watch set)
//   behind    lex from a place with what a context admits: the tails that end inside a terminal, and for each terminal
//             that ends inside tails the place behind it
//
// A context is all that the lexer sees of the stacks, and there are fewer contexts than sets of tops; so this is kept,
// and shared by all transitions of joint_tails.hpp that need it.
#pragma once
#include <map>
#include <set>

#include "containers/growth_lock.hpp"
#include "containers/numbers.hpp"
#include "containers/open_table.hpp"
#include "errors.hpp"
#include "tails/universe.hpp"

namespace wfsa {

class LexedTails {
  public:
    struct End {
        int32_t term, rest;  // the place behind it
    };
    struct Lexed {
        int32_t weight = 0;      // the tails that are taken
        int32_t lo = 0, hi = 0;  // into `ends`, by ascending terminal
    };
    vector<End> ends;

    LexedTails(Lexer& lexer, Staying& staying, const StableVector<Universe>& universes, Interner& weights)
        : lexer_(lexer), tail_lexer_(lexer, staying), universes_(universes), weights_(weights) {}

    // The universe, then a node and a watch set for each of its tails; ascending.
    int32_t place(List code) { return places_.intern(code); }
    List code(int32_t place) const { return places_[place]; }

    // From here on `behind` may take so many steps.
    void begin(int64_t most) { most_work_ = work_ + most; }
    Lexed behind(int32_t place, int32_t context) {
        step();
        if (const Lexed* known = known_.find(pair_key(place, context))) return *known;
        slots_.clear();
        std::map<int32_t, Nodes> found;  // terminal -> what is left of the tails
        const List code = places_[place];
        universe_ = code[0];
        vector<Node> todo;
        for (size_t i = 1; i < code.size(); i += 2) todo.push_back({code[i], code[i + 1]});
        Nodes seen(todo.begin(), todo.end());
        for (size_t i = 0; i < todo.size(); ++i)
            tail_lexer_.lex(universes_[universe_].tails(), todo[i].first, lexer_.root(context, todo[i].second), slots_, [&] { step(); }, [&](const Accept& a, int32_t node) {
                if (!lexer_.terms[a.term].ignore) found[a.term].insert({node, a.watch});
                else if (seen.insert({node, a.watch}).second) todo.push_back({node, a.watch});
            });
        sort_unique(slots_);
        Lexed out{weights_.intern(slots_), int32_t(ends.size()), 0};
        for (const auto& [term, rest] : found) ends.push_back({term, place_of(rest)});
        out.hi = int32_t(ends.size());
        return known_.insert(pair_key(place, context)).first = out;
    }
    int64_t work() const { return work_; }
    template <class Self, class V> static void fields(Self& l, V& v) { v.made(l.places_, l.known_, l.ends); }

  private:
    typedef std::pair<int32_t, int32_t> Node;  // of the tails, with a watch set
    typedef std::set<Node> Nodes;
    Lexer& lexer_;
    TailLexer tail_lexer_;
    const StableVector<Universe>& universes_;
    Interner& weights_;
    Interner places_;
    OpenTable<uint64_t, Lexed, PairHash> known_{2};  // (place, context)
    int64_t work_ = 0, most_work_ = 0;
    int32_t universe_ = 0;  // while one place is lexed
    vector<int32_t> slots_;

    int32_t place_of(const Nodes& nodes) {
        vector<int32_t> code{universe_};
        for (auto [node, watch] : nodes) { code.push_back(node); code.push_back(watch); }
        return place(code);
    }
    void step() {
        if (++work_ % 64) return;
        GrowthLock::let_read();
        if (work_ > most_work_) throw LimitExceeded("a token can be cut into terminals in too many ways");
    }
};

}  // namespace wfsa
