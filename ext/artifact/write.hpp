// A constraint as flat int32 arrays.
//
// Every table that decoding reads is written in the order of its numbers, so the same engine gives the same bytes.
// A complete ("frozen") engine is written without what only expansion needs (the open places of the parser DWA).
//
// A tail is the end of a token's bytes: its length and its tokens say what it is.  A universe is the union of the tails
// of the finishes that name it, and is made again when the constraint is loaded (read.hpp).
#pragma once
#include "artifact/token_sets.hpp"
#include "artifact/write_fields.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

// How many code points begin in a token: nearly always the units that it has in a counted terminal.
inline int32_t code_points(const Vocabulary& v, int32_t token) {
    int32_t n = 0;
    for (int64_t i = v.offsets[token]; i < v.offsets[token + 1]; ++i) n += (v.blob[size_t(i)] & 0xC0) != 0x80;
    return n;
}

class ArtifactWriter {
  public:
    ArtifactWriter(const Engine& e, Arrays& out) : e_(e), out_(out), of_(out.of) {}

    void write() {
        terminals();
        lr_tables();
        unordered_lists();
        lexer_states();
        insides();
        profiles();
        tails();
        parser_dwa();
        joint_tails();
    }

  private:
    const Engine& e_;
    Arrays& out_;
    std::map<std::string, vector<int32_t>>& of_;
    std::map<const Inside*, int32_t> inside_number_;  // equal ones are one object
    vector<const Inside*> insides_;

    void empty(std::initializer_list<const char*> names) { for (const char* name : names) of_[name]; }
    void put_edges(const std::string& name, const vector<Edge>& es) {
        for (const char* part : {"_lo", "_hi", "_target", "_count"}) of_[name + part];
        for (const Edge& x : es) {
            of_[name + "_lo"].push_back(x.lo);
            of_[name + "_hi"].push_back(x.hi);
            of_[name + "_target"].push_back(x.target);
            of_[name + "_count"].push_back(x.count);
        }
    }
    void put_interned(const std::string& name, const Interner& lists) {
        const size_t n = size_t(lists.size());
        out_.put_rows(name, n, [&](size_t i) { return lists[int32_t(i)]; });
    }

    void terminals() {
        const Terminals& t = e_.lexer.terms;
        of_["head"] = {e_.grammar.n_terms, e_.grammar.n_symbols, e_.end_term, t.longest, e_.frozen,
                       int32_t(e_.vocab->size)};
        of_["ignored"] = e_.ignored;
        FieldWriter(out_).table("terminals", t, e_.grammar.n_terms);
        out_.put_rows("term_tokens", e_.token_ids);
    }

    void lr_tables() {
        of_["lr_goto_indptr"] = e_.lr.goto_indptr;
        of_["lr_goto_symbol"] = e_.lr.goto_symbol;
        of_["lr_goto_target"] = e_.lr.goto_target;
        of_["lr_n_shifts"] = e_.lr.n_shifts;
        of_["lr_done_indptr"] = e_.lr.completed_indptr;
        of_["lr_done"] = e_.lr.completed;
        of_["lr_context"] = e_.contexts.of_state;
        of_["set_context"] = e_.contexts.of_set;
        of_["distinct"].assign(e_.distinct.begin(), e_.distinct.end());
        of_["white_space"].assign(std::begin(e_.white_space), std::end(e_.white_space));
    }

    void unordered_lists() {
        const UnorderedStates& unordered = e_.lr.unordered;
        of_["list_of"] = unordered.list_of;
        of_["pair_of"] = unordered.pair_of;
        vector<int32_t>& numbers = of_["list_numbers"];
        vector<vector<int32_t>> keys, pairs, required;
        auto put = [](vector<int32_t>& row, uint64_t x) { row.insert(row.end(), {int32_t(x), int32_t(x >> 32)}); };
        for (const UnorderedList& l : unordered.lists) {
            numbers.insert(numbers.end(), {l.separator, l.close, l.after_member, l.after_separator, l.n_members,
                                           l.least, l.most, int32_t(l.ordered)});
            keys.emplace_back();
            for (auto [terminal, pair] : l.keys) { keys.back().push_back(terminal); keys.back().push_back(pair); }
            pairs.emplace_back();
            for (const UnorderedList::Pair& p : l.pairs) { pairs.back().push_back(p.member); put(pairs.back(), p.meets); }
            required.emplace_back();
            put(required.back(), l.wanted);
            for (uint64_t word : l.required) put(required.back(), word);
        }
        out_.put_rows("list_keys", keys);
        out_.put_rows("list_pairs", pairs);
        out_.put_rows("list_required", required);
        put_interned("list_sets", unordered.sets);
    }

    void lexer_states() {
        put_interned("context", e_.lexer.contexts);
        put_interned("watch", e_.lexer.watches);
        put_interned("span", e_.lexer.spans);
        vector<vector<int32_t>> accepts;
        vector<int32_t> edge_indptr{0};
        vector<Edge> edges;
        empty({"lex_flags", "lex_profile", "roots"});
        for (const LexState& s : e_.lexer.states) {
            accepts.emplace_back();
            for (const Accept& a : s.accepts) { accepts.back().push_back(a.term); accepts.back().push_back(a.watch); }
            edges.insert(edges.end(), s.edges.begin(), s.edges.end());
            edge_indptr.push_back(int32_t(edges.size()));
            of_["lex_flags"].push_back(s.root | s.boundary << 1 | s.goes_on << 2 | s.expanded << 3);
            of_["lex_profile"].push_back(s.profile);
        }
        put_edges("lex_edge", edges);
        of_["lex_edge_indptr"] = edge_indptr;
        out_.put_rows("lex_hypotheses", e_.lexer.n_states(), [&](size_t y) { return e_.lexer.states[y].hyps.code; });
        out_.put_rows("lex_accepts", accepts);
        const std::map<uint64_t, int32_t> roots(e_.lexer.roots().begin(), e_.lexer.roots().end());
        vector<int32_t>& flat = of_["roots"];  // context, watch set, state
        for (auto [k, y] : roots) flat.insert(flat.end(), {int32_t(k >> 32), int32_t(k), y});
    }

    // Sets are shared between profiles: numbered in the order of first use.
    void insides() {
        vector<vector<int32_t>> sets;
        of_["inside_kind"];
        for (const Profile& p : e_.profiler.profiles) {
            if (!inside_number_.emplace(p.inside.get(), int32_t(insides_.size())).second) continue;
            insides_.push_back(p.inside.get());
            sets.emplace_back();
            of_["inside_kind"].push_back(pack_tokens(p.inside->bitmap, p.inside->ids, e_.vocab->size, sets.back()));
        }
        out_.put_rows("inside_tokens", sets);
        vector<vector<int32_t>> group_sets, exceptions;
        empty({"group_inside", "group_span", "group_kind", "group_offset"});
        for (size_t i = 0; i < insides_.size(); ++i)
            for (const Inside::Group& g : insides_[i]->groups) {
                of_["group_inside"].push_back(int32_t(i));
                of_["group_span"].push_back(g.local_span);
                group_sets.emplace_back();
                of_["group_kind"].push_back(pack_tokens(g.bitmap, g.tokens, e_.vocab->size, group_sets.back()));
                exceptions.emplace_back();
                of_["group_offset"].push_back(offset(g, exceptions.back()));
            }
        out_.put_rows("group_tokens", group_sets);
        out_.put_rows("group_exceptions", exceptions);
    }
    // A group's units as code points + offset; where that is wrong, (token, units) by ascending tokens.
    int32_t offset(const Inside::Group& g, vector<int32_t>& exceptions) const {
        std::map<int32_t, int32_t> tokens_with;  // offset -> how many
        vector<std::pair<int32_t, int32_t>> units;
        for (size_t i = 0; i + 1 < g.indptr.size(); ++i)
            for (int32_t k = g.indptr[i]; k < g.indptr[i + 1]; ++k) {
                units.push_back({g.tokens[size_t(k)], g.least + int32_t(i)});
                ++tokens_with[units.back().second - code_points(*e_.vocab, units.back().first)];
            }
        auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
        const int32_t out = std::max_element(tokens_with.begin(), tokens_with.end(), fewer)->first;
        std::sort(units.begin(), units.end());
        for (auto [token, n] : units)
            if (n != code_points(*e_.vocab, token) + out) exceptions.insert(exceptions.end(), {token, n});
        return out;
    }

    void profiles() {
        const auto& profiles = e_.profiler.profiles;
        std::map<const vector<uint32_t>*, int32_t> vetoed_number;  // killed sets are shared by watch set
        vector<vector<int32_t>> killed;
        empty({"profile_base", "profile_inside", "profile_killed", "killed_kind"});
        for (const Profile& p : profiles) {
            of_["profile_base"].push_back(p.base);
            of_["profile_inside"].push_back(inside_number_[p.inside.get()]);
            if (p.vetoed && vetoed_number.emplace(p.vetoed.get(), int32_t(killed.size())).second) {
                killed.emplace_back();
                of_["killed_kind"].push_back(pack_tokens(*p.vetoed, {}, e_.vocab->size, killed.back()));
            }
            of_["profile_killed"].push_back(p.vetoed ? vetoed_number[p.vetoed.get()] : -1);
        }
        out_.put_rows("killed_tokens", killed);
        out_.put_rows("profile_drop", profiles.size(), [&](size_t i) { return profiles[i].drop; });
        out_.put_rows("profile_finishes", profiles.size(), [&](size_t i) { return profiles[i].terminal_ends; });
        out_.put_rows("profile_spans", profiles.size(), [&](size_t i) { return profiles[i].spans; });
    }

    void tails() {
        std::map<const Tails*, int32_t> number;
        vector<const Slots*> tails;
        empty({"finish_term", "finish_tails", "finish_universe", "universe_term", "tails_length", "tails_count"});
        for (const TerminalEnd& f : e_.profiler.terminal_ends) {
            if (number.emplace(f.tails.get(), int32_t(tails.size())).second) tails.push_back(&f.tails->slots);
            of_["finish_term"].push_back(f.term);
            of_["finish_tails"].push_back(number[f.tails.get()]);
            of_["finish_universe"].push_back(f.universe);
        }
        for (const Universe& u : e_.universes) of_["universe_term"].push_back(u.term);
        vector<int32_t>& rows = of_["tails_indptr"];
        rows.assign(1, 0);
        vector<vector<int32_t>> tokens;
        auto counted = [](const Slots* x) { return !x->slot_counts.empty(); };
        const bool counts = std::any_of(tails.begin(), tails.end(), counted);
        for (const Slots* x : tails) {
            for (size_t i = 0; i < x->slot_word.size(); ++i) {
                of_["tails_length"].push_back(x->slot_word[i].length);
                const auto first = x->slot_tokens.begin();
                tokens.emplace_back(first + x->slot_indptr[i], first + x->slot_indptr[i + 1]);
            }
            rows.push_back(int32_t(tokens.size()));
            vector<int32_t>& count = of_["tails_count"];  // a number for every token, if one is not 0
            count.insert(count.end(), x->slot_counts.begin(), x->slot_counts.end());
            if (counts && x->slot_counts.empty()) count.insert(count.end(), x->slot_tokens.size(), 0);
        }
        out_.put_rows("tails_tokens", tokens);
    }

    void parser_dwa() {
        put_interned("dwa_weight", e_.weights);
        vector<vector<int32_t>> places;
        empty({"dwa_universe", "dwa_start", "dwa_from", "dwa_read", "dwa_weight_of", "dwa_next"});
        for (int32_t d = 0; d < int32_t(e_.dwa.n_states()); ++d) {
            of_["dwa_universe"].push_back(e_.dwa.universe_of(d));
            of_["dwa_start"].push_back(e_.dwa.is_start(d));
            places.push_back(e_.dwa.places(d).vector());
        }
        out_.put_rows("dwa_places", places);
        for (const auto& [key, x] : e_.dwa.transitions()) {
            of_["dwa_from"].push_back(pair_first(key));
            of_["dwa_read"].push_back(pair_second(key));
            of_["dwa_weight_of"].push_back(x.weight);
            of_["dwa_next"].push_back(x.next);
        }
    }

    void joint_tails() {
        put_interned("joint_state", e_.joint.states);
        put_interned("joint_tops", e_.joint.tops);
        out_.put_rows("term_follow", e_.joint.follow);
        vector<vector<int32_t>> cuts;
        empty({"joint_from", "joint_read", "joint_weight_of"});
        for (const auto& [key, x] : e_.joint.transitions()) {
            of_["joint_from"].push_back(pair_first(key));
            of_["joint_read"].push_back(pair_second(key));
            of_["joint_weight_of"].push_back(x.weight);
            cuts.emplace_back();
            for (int32_t k = x.cut_lo; k < x.cut_hi; ++k) {
                const JointTails::Cut& c = e_.joint.cuts[size_t(k)];
                cuts.back().insert(cuts.back().end(), {c.term, c.from, c.next});
            }
        }
        out_.put_rows("joint_cuts", cuts);
    }
};

inline void pack(const Engine& e, Arrays& out) {
    const GrowthLock::Reading reading(e.lock);  // other threads may be decoding
    ArtifactWriter(e, out).write();
}

}  // namespace wfsa
