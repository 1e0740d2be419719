// A constraint as flat int32 arrays, and back.
//
// Saving writes every table that decoding reads, in the order of its numbers, so the same engine gives the same bytes.
// Loading trusts nothing: every index is checked against what it indexes before it is used, because a file can be cut,
// altered or written by somebody else.  Lists of lists are CSR pairs "x_indptr", "x".
//
// A complete ("frozen") engine is saved without what only expansion needs (the open places of the parser DWA).
#pragma once
#include <string>

#include "runtime/engine.hpp"

namespace wfsa {

struct Arrays {
    std::map<std::string, vector<int32_t>> of;

    const vector<int32_t>& get(const std::string& name) const {
        auto got = of.find(name);
        if (got == of.end()) throw Damaged("array '" + name + "' is missing");
        return got->second;
    }
    template <class Rows> void put_rows(const std::string& name, const Rows& rows, size_t n) {
        vector<int32_t>&indptr = of[name + "_indptr"], &flat = of[name];
        indptr.assign(1, 0);
        for (size_t i = 0; i < n; ++i) {
            const auto& row = rows(i);
            flat.insert(flat.end(), row.begin(), row.end());
            indptr.push_back(int32_t(flat.size()));
        }
    }
};

class Unpacker {
  public:
    explicit Unpacker(const Arrays& a) : a_(a) {}
    static void check(bool ok, const char* what) { if (!ok) throw Damaged(what); }
    static void check(bool ok, const char* before, const std::string& name, const char* after) {
        if (!ok) throw Damaged(before + name + after);
    }
    const vector<int32_t>& values(const std::string& name, int64_t lo, int64_t hi) const {  // lo <= x < hi
        const vector<int32_t>& v = a_.get(name);
        for (int32_t x : v) check(x >= lo && x < hi, "a value of '", name, "' is out of range");
        return v;
    }
    const vector<int32_t>& values(const std::string& name, int64_t lo, int64_t hi, size_t n) const {
        const vector<int32_t>& v = values(name, lo, hi);
        if (v.size() != n) throw Damaged("array '" + name + "' has " + std::to_string(v.size()) + " values, not " + std::to_string(n));
        return v;
    }
    const vector<int32_t>& indptr(const std::string& name, size_t total) const {
        const vector<int32_t>& v = a_.get(name);
        check(!v.empty() && v.front() == 0 && size_t(v.back()) == total && std::is_sorted(v.begin(), v.end()),
              "row pointers '", name, "' do not fit");
        return v;
    }
    vector<vector<int32_t>> rows(const std::string& name, int64_t lo, int64_t hi) const {
        const vector<int32_t>& flat = values(name, lo, hi);
        const vector<int32_t>& at = indptr(name + "_indptr", flat.size());
        vector<vector<int32_t>> out;
        for (size_t i = 0; i + 1 < at.size(); ++i) out.emplace_back(flat.begin() + at[i], flat.begin() + at[i + 1]);
        return out;
    }

  private:
    const Arrays& a_;
};

// A set of tokens as bytes: the gaps between ascending ids (or between the missing ones, when there are fewer), seven
// bits a byte, low first; or the bitmap itself when that is smaller.
enum TokenSetKind : int32_t { kList, kDenseMissing, kDenseGiven, kDenseBitmap };

inline int32_t pack_tokens(const vector<uint32_t>& bitmap, const vector<int32_t>& inside, int64_t size, vector<int32_t>& out) {
    auto gaps = [&](const vector<int32_t>& ids) {
        out.clear();
        int32_t at = -1;
        for (int32_t id : ids) {
            uint32_t gap = uint32_t(id - at - 1);
            at = id;
            for (; gap >= 128; gap >>= 7) out.push_back(int32_t(gap & 127) | 128);
            out.push_back(int32_t(gap));
        }
    };
    if (bitmap.empty()) {
        vector<int32_t> ids = inside;
        std::sort(ids.begin(), ids.end());
        gaps(ids);
        return kList;
    }
    vector<int32_t> given, missing;
    for (int64_t i = 0; i < size; ++i) (bitmap[size_t(i) >> 5] >> (i & 31) & 1 ? given : missing).push_back(int32_t(i));
    const bool few_missing = missing.size() < given.size();
    gaps(few_missing ? missing : given);
    if (out.size() <= 4 * bitmap.size()) return few_missing ? kDenseMissing : kDenseGiven;
    out.clear();
    for (uint32_t w : bitmap) for (int k = 0; k < 32; k += 8) out.push_back(int32_t(w >> k & 255));
    return kDenseBitmap;
}

// Into a bitmap, or into ids for a list.
inline void unpack_tokens(vector<uint32_t>& bitmap, vector<int32_t>& ids, int32_t kind, const vector<int32_t>& in, int64_t n_tokens, int64_t size) {
    const size_t n_words = size_t(size + 31) / 32;
    if (kind == kDenseBitmap) {
        Unpacker::check(in.size() == 4 * n_words, "a bitmap has the wrong width");
        bitmap.assign(n_words, 0);
        for (size_t i = 0; i < in.size(); ++i) bitmap[i / 4] |= uint32_t(in[i]) << (8 * (i % 4));
        for (int64_t i = n_tokens; i < int64_t(n_words) * 32; ++i)
            Unpacker::check(!(bitmap[size_t(i) >> 5] >> (i & 31) & 1), "a bitmap allows what is no token");
        return;
    }
    int64_t at = -1;
    for (size_t i = 0; i < in.size();) {
        uint64_t gap = 0;
        int shift = 0;
        do {
            Unpacker::check(i < in.size() && shift < 35, "a token set is cut short");
            gap |= uint64_t(in[i] & 127) << shift;
            shift += 7;
        } while (in[i++] & 128);
        at += int64_t(gap) + 1;
        Unpacker::check(at < (kind == kDenseMissing ? size : n_tokens), "a token set has an unknown token");
        ids.push_back(int32_t(at));
    }
    if (kind == kList) return;
    bitmap.assign(n_words, 0);
    if (kind == kDenseMissing) for (int64_t i = 0; i < size; ++i) bitmap[size_t(i) >> 5] |= 1u << (i & 31);
    for (int32_t id : ids) bitmap[size_t(id) >> 5] ^= 1u << (id & 31);
    ids.clear();
    for (int64_t i = n_tokens; i < size; ++i)
        Unpacker::check(!(bitmap[size_t(i) >> 5] >> (i & 31) & 1), "a bitmap allows what is no token");
}

// How many code points begin in a token: nearly always the units that it has in a counted terminal.
inline int32_t code_points(const Vocabulary& v, int32_t token) {
    int32_t n = 0;
    for (int64_t i = v.offsets[token]; i < v.offsets[token + 1]; ++i) n += (v.blob[size_t(i)] & 0xC0) != 0x80;
    return n;
}

inline void pack(const Engine& e, Arrays& out) {
    std::shared_lock<std::shared_mutex> lock(e.mutex);  // other threads may be decoding
    auto& of = out.of;
    const Terminals& t = e.lexer.terms;
    of["head"] = {e.grammar.n_terms, e.grammar.n_symbols, e.end_term, t.longest, e.frozen, int32_t(e.vocab->size)};
    of["ignored"] = e.ignored;
    of["term_start"] = t.start;
    of["term_rank"] = t.rank;
    of["term_least"] = t.least;
    of["term_most"] = t.most;
    of["term_counted"].assign(t.counted.begin(), t.counted.end());
    of["term_ignore"].assign(t.ignore.begin(), t.ignore.end());
    of["term_inlined"].assign(t.restarts_lexing.begin(), t.restarts_lexing.end());
    of["component_indptr"] = t.indptr;
    of["component_term"] = t.term;
    of["component_accept"].assign(t.accept.begin(), t.accept.end());
    auto put_edges = [&](const std::string& name, const vector<Edge>& es) {
        for (const char* part : {"_lo", "_hi", "_target", "_count"}) of[name + part];
        for (const Edge& x : es) {
            of[name + "_lo"].push_back(x.lo);
            of[name + "_hi"].push_back(x.hi);
            of[name + "_target"].push_back(x.target);
            of[name + "_count"].push_back(x.count);
        }
    };
    put_edges("component_edge", t.edges);
    out.put_rows("term_tokens", [&](size_t i) -> const vector<int32_t>& { return e.token_ids[i]; }, e.token_ids.size());
    for (const ByteBits& b : e.lexer.terms.follow)
        for (uint64_t w : b.w) { of["follow"].push_back(int32_t(w)); of["follow"].push_back(int32_t(w >> 32)); }

    of["lr_goto_indptr"] = e.lr.goto_indptr;
    of["lr_goto_symbol"] = e.lr.goto_symbol;
    of["lr_goto_target"] = e.lr.goto_target;
    of["lr_n_shifts"] = e.lr.n_shifts;
    of["lr_done_indptr"] = e.lr.completed_indptr;
    of["lr_done"] = e.lr.completed;
    of["lr_context"] = e.contexts.of_state;
    const UnorderedStates& unordered = e.lr.unordered;
    of["set_context"] = e.contexts.of_set;
    of["list_of"] = unordered.list_of;
    of["member_of"] = unordered.member_of;
    of["distinct"].assign(e.distinct.begin(), e.distinct.end());
    of["list_numbers"];
    vector<vector<int32_t>> keys;
    for (const UnorderedList& l : unordered.lists) {
        for (int32_t x : {l.separator, l.close, l.after_member, l.after_separator, l.n_members, l.least, l.most, int32_t(l.others), l.n_bits})
            of["list_numbers"].push_back(x);
        keys.emplace_back();
        for (auto [terminal, member] : l.keys) { keys.back().push_back(terminal); keys.back().push_back(member); }
    }
    out.put_rows("list_keys", [&](size_t i) -> const vector<int32_t>& { return keys[i]; }, keys.size());
    vector<vector<int32_t>> required;
    for (const UnorderedList& l : unordered.lists) {
        required.emplace_back();
        auto put = [&](const vector<uint64_t>& words) {
            for (uint64_t w : words) { required.back().push_back(int32_t(w)); required.back().push_back(int32_t(w >> 32)); }
        };
        put(l.required);
        for (const auto& group : l.groups) put(group);
    }
    out.put_rows("list_required", [&](size_t i) -> const vector<int32_t>& { return required[i]; }, required.size());
    out.put_rows("list_sets", [&](size_t i) -> const vector<int32_t>& { return unordered.sets[int32_t(i)]; }, size_t(unordered.sets.size()));

    out.put_rows("context", [&](size_t i) -> const vector<int32_t>& { return e.lexer.contexts[int32_t(i)]; }, size_t(e.lexer.contexts.size()));
    out.put_rows("watch", [&](size_t i) -> const vector<int32_t>& { return e.lexer.watches[int32_t(i)]; }, size_t(e.lexer.watches.size()));

    out.put_rows("span", [&](size_t i) -> const vector<int32_t>& { return e.lexer.spans[int32_t(i)]; }, size_t(e.lexer.spans.size()));

    vector<vector<int32_t>> hyps, accepts;
    vector<int32_t> edge_indptr{0};
    of["lex_flags"];
    of["lex_profile"];
    vector<Edge> edges;
    for (const LexState& s : e.lexer.states) {
        hyps.emplace_back();
        for (const Hypothesis& h : s.hyps) {
            hyps.back().push_back(h.context);
            hyps.back().push_back(int32_t(h.main.size()));
            hyps.back().insert(hyps.back().end(), h.main.begin(), h.main.end());
            hyps.back().push_back(int32_t(h.watch.size()));
            hyps.back().insert(hyps.back().end(), h.watch.begin(), h.watch.end());
        }
        accepts.emplace_back();
        for (const Accept& a : s.accepts) { accepts.back().push_back(a.term); accepts.back().push_back(a.watch); }
        edges.insert(edges.end(), s.edges.begin(), s.edges.end());
        edge_indptr.push_back(int32_t(edges.size()));
        of["lex_flags"].push_back(s.root | s.boundary << 1 | s.goes_on << 2 | s.expanded << 3);
        of["lex_profile"].push_back(s.profile);
    }
    put_edges("lex_edge", edges);
    of["lex_edge_indptr"] = edge_indptr;
    out.put_rows("lex_hypotheses", [&](size_t i) -> const vector<int32_t>& { return hyps[i]; }, hyps.size());
    out.put_rows("lex_accepts", [&](size_t i) -> const vector<int32_t>& { return accepts[i]; }, accepts.size());
    std::map<uint64_t, int32_t> roots(e.lexer.roots().begin(), e.lexer.roots().end());
    of["roots"];
    for (auto [k, y] : roots) { of["roots"].push_back(int32_t(k >> 32)); of["roots"].push_back(int32_t(k)); of["roots"].push_back(y); }

    // Sets and tails are shared between profiles: number them in the order of first use.
    std::map<const Inside*, int32_t> number;
    std::map<const Tails*, int32_t> tails_number;
    vector<const Inside*> insides;
    vector<const Tails*> tails;
    vector<vector<int32_t>> sets;
    of["inside_kind"];
    std::map<std::pair<int32_t, vector<int32_t>>, int32_t> same;  // sets without groups, by content
    for (const Profile& p : e.profiler.profiles) {
        if (number.count(p.inside.get())) continue;
        vector<int32_t> packed;
        const int32_t kind = pack_tokens(p.inside->bitmap, p.inside->ids, e.vocab->size, packed);
        if (p.inside->groups.empty()) {
            const auto got = same.emplace(std::make_pair(kind, packed), int32_t(insides.size()));
            if (!got.second) { number[p.inside.get()] = got.first->second; continue; }
        }
        number[p.inside.get()] = int32_t(insides.size());
        insides.push_back(p.inside.get());
        sets.push_back(std::move(packed));
        of["inside_kind"].push_back(kind);
    }
    for (const TerminalEnd& f : e.profiler.terminal_ends)
        if (tails_number.emplace(f.tails.get(), int32_t(tails.size())).second) tails.push_back(f.tails.get());
    // Killed sets are shared by watch set; they are packed like the results, after them.
    std::map<const vector<uint32_t>*, int32_t> vetoed_number;
    vector<const vector<uint32_t>*> vetoed;
    for (const char* name : {"profile_base", "profile_inside", "profile_killed"}) of[name];
    for (const Profile& p : e.profiler.profiles) {
        of["profile_base"].push_back(p.base);
        of["profile_inside"].push_back(number[p.inside.get()]);
        if (p.vetoed && vetoed_number.emplace(p.vetoed.get(), int32_t(vetoed.size())).second) vetoed.push_back(p.vetoed.get());
        of["profile_killed"].push_back(p.vetoed ? vetoed_number[p.vetoed.get()] : -1);
    }
    vector<vector<int32_t>> vetoed_sets(vetoed.size());
    of["killed_kind"];
    for (size_t i = 0; i < vetoed.size(); ++i) of["killed_kind"].push_back(pack_tokens(*vetoed[i], {}, e.vocab->size, vetoed_sets[i]));
    out.put_rows("killed_tokens", [&](size_t i) -> const vector<int32_t>& { return vetoed_sets[i]; }, vetoed_sets.size());
    out.put_rows("profile_drop", [&](size_t i) -> const vector<int32_t>& { return e.profiler.profiles[i].drop; }, e.profiler.profiles.size());
    out.put_rows("profile_finishes", [&](size_t i) -> const vector<int32_t>& { return e.profiler.profiles[i].terminal_ends; }, e.profiler.profiles.size());
    out.put_rows("inside_tokens", [&](size_t i) -> const vector<int32_t>& { return sets[i]; }, sets.size());
    // Groups: the tokens as a set, their units as code points + offset, and the exceptions (token, units).
    for (const char* name : {"group_inside", "group_span", "group_kind", "group_offset"}) of[name];
    vector<vector<int32_t>> group_sets, exceptions;
    for (const Inside* r : insides)
        for (const Inside::Group& g : r->groups) {
            std::map<int32_t, int32_t> offsets;
            auto each = [&](auto visit) {
                for (size_t i = 0; i + 1 < g.indptr.size(); ++i)
                    for (int32_t k = g.indptr[i]; k < g.indptr[i + 1]; ++k) visit(g.tokens[size_t(k)], g.least + int32_t(i));
            };
            each([&](int32_t token, int32_t units) { ++offsets[units - code_points(*e.vocab, token)]; });
            int32_t offset = offsets.begin()->first;
            for (auto [o, n] : offsets) if (n > offsets[offset]) offset = o;
            exceptions.emplace_back();
            each([&](int32_t token, int32_t units) {
                if (units == code_points(*e.vocab, token) + offset) return;
                exceptions.back().push_back(token);
                exceptions.back().push_back(units);
            });
            group_sets.emplace_back();
            of["group_inside"].push_back(number[r]);
            of["group_span"].push_back(g.local_span);
            of["group_offset"].push_back(offset);
            of["group_kind"].push_back(pack_tokens(g.bitmap, g.tokens, e.vocab->size, group_sets.back()));
        }
    out.put_rows("group_tokens", [&](size_t i) -> const vector<int32_t>& { return group_sets[i]; }, group_sets.size());
    out.put_rows("group_exceptions", [&](size_t i) -> const vector<int32_t>& { return exceptions[i]; }, exceptions.size());
    out.put_rows("profile_spans", [&](size_t i) -> const vector<int32_t>& { return e.profiler.profiles[i].spans; }, e.profiler.profiles.size());
    auto put_words = [&](const std::string& name, const vector<const Trie*>& tries) {
        vector<int32_t>&rows = of[name + "_indptr"], &lengths = of[name + "_length"], &text = of[name + "_text"];
        rows.assign(1, 0);
        for (const Trie* x : tries) {
            for (const Word& w : x->slot_word) { lengths.push_back(w.length); text.insert(text.end(), w.text, w.text + w.length); }
            rows.push_back(int32_t(lengths.size()));
        }
    };
    vector<const Trie*> tries;
    for (const auto* x : tails) tries.push_back(&x->trie);
    put_words("tails_word", tries);
    vector<vector<int32_t>> word_tokens;
    for (const Trie* x : tries)
        for (size_t i = 0; i + 1 < x->slot_indptr.size(); ++i)
            word_tokens.emplace_back(x->slot_tokens.begin() + x->slot_indptr[i], x->slot_tokens.begin() + x->slot_indptr[i + 1]);
    vector<int32_t>& tail_counts = of["tails_count"];  // a number for every token of the tails, if one is not 0
    if (std::any_of(tries.begin(), tries.end(), [](const Trie* x) { return !x->slot_counts.empty(); }))
        for (const Trie* x : tries) {
            tail_counts.insert(tail_counts.end(), x->slot_counts.begin(), x->slot_counts.end());
            if (x->slot_counts.empty()) tail_counts.insert(tail_counts.end(), x->slot_tokens.size(), 0);
        }
    out.put_rows("tails_tokens", [&](size_t i) -> const vector<int32_t>& { return word_tokens[i]; }, word_tokens.size());
    for (const char* name : {"finish_term", "finish_tails", "finish_universe"}) of[name];
    vector<vector<int32_t>> slots;
    for (const TerminalEnd& f : e.profiler.terminal_ends) {
        of["finish_term"].push_back(f.term);
        of["finish_tails"].push_back(tails_number[f.tails.get()]);
        of["finish_universe"].push_back(f.universe);
        slots.push_back(f.universe >= 0 ? *f.slots : vector<int32_t>{});
    }
    out.put_rows("finish_slots", [&](size_t i) -> const vector<int32_t>& { return slots[i]; }, slots.size());

    tries.clear();
    of["universe_term"];
    for (const auto& u : e.universes) { of["universe_term"].push_back(u.term); tries.push_back(&u.tails()); }
    put_words("universe_word", tries);
    out.put_rows("dwa_weight", [&](size_t i) -> const vector<int32_t>& { return e.weights[int32_t(i)]; }, size_t(e.weights.size()));
    vector<vector<int32_t>> places;
    of["dwa_universe"];
    of["dwa_start"];
    for (size_t d = 0; d < e.dwa.n_states(); ++d) {
        of["dwa_universe"].push_back(e.dwa.universe_of(int32_t(d)));
        of["dwa_start"].push_back(e.dwa.is_start(int32_t(d)));
        places.push_back(e.frozen ? vector<int32_t>{} : e.dwa.places(int32_t(d)));
    }
    out.put_rows("dwa_places", [&](size_t i) -> const vector<int32_t>& { return places[i]; }, places.size());
    std::map<uint64_t, ParserDwa::Transition> transitions(e.dwa.transitions().begin(), e.dwa.transitions().end());
    for (const char* name : {"dwa_from", "dwa_read", "dwa_weight_of", "dwa_next"}) of[name];
    for (auto& [k, x] : transitions) {
        of["dwa_from"].push_back(int32_t(k >> 32));
        of["dwa_read"].push_back(int32_t(k));
        of["dwa_weight_of"].push_back(x.weight);
        of["dwa_next"].push_back(x.next);
    }
    out.put_rows("joint_state", [&](size_t i) -> const vector<int32_t>& { return e.joint.states[int32_t(i)]; }, size_t(e.joint.states.size()));
    out.put_rows("joint_tops", [&](size_t i) -> const vector<int32_t>& { return e.joint.tops[int32_t(i)]; }, size_t(e.joint.tops.size()));
    out.put_rows("term_follow", [&](size_t i) -> const vector<int32_t>& { return e.joint.follow[i]; }, e.joint.follow.size());
    vector<vector<int32_t>> cuts;
    for (const char* name : {"joint_from", "joint_read", "joint_weight_of"}) of[name];
    for (const auto& [key, x] : e.joint.transitions()) {
        of["joint_from"].push_back(pair_first(key));
        of["joint_read"].push_back(pair_second(key));
        of["joint_weight_of"].push_back(x.weight);
        cuts.emplace_back();
        for (int32_t k = x.cut_lo; k < x.cut_hi; ++k) {
            const JointTails::Cut& c = e.joint.cuts[size_t(k)];
            cuts.back().insert(cuts.back().end(), {c.term, c.from, c.next});
        }
    }
    out.put_rows("joint_cuts", [&](size_t i) -> const vector<int32_t>& { return cuts[i]; }, cuts.size());
}

// The lists with sets; returns how many LR states they add.
inline int32_t restore_unordered(const Unpacker& u, int32_t n_lr, int32_t n_terms, int32_t n_symbols, UnorderedStates& out) {
    const int64_t big = int64_t(1) << 31;
    const vector<int32_t>& numbers = u.values("list_numbers", 0, big);
    const auto keys = u.rows("list_keys", -1, big), required = u.rows("list_required", -big, big), sets = u.rows("list_sets", -big, big);
    const int64_t n_lists = int64_t(keys.size());
    Unpacker::check(numbers.size() == 9 * keys.size() && required.size() == keys.size(), "the arrays of unordered lists have different lengths");
    out.list_of = u.values("list_of", -1, n_lists, n_lists ? size_t(n_symbols) : 0);
    out.member_of = u.values("member_of", -1, big, out.list_of.size());
    for (size_t i = 0; i < keys.size(); ++i) {
        const int32_t* x = numbers.data() + 9 * i;
        UnorderedList l;
        Unpacker::check(x[0] < n_terms && x[1] < n_terms && x[2] < n_lr && x[3] < n_lr && x[7] < 2 && x[4] <= x[8], "an unordered list is out of range");
        l.separator = x[0], l.close = x[1], l.after_member = x[2], l.after_separator = x[3];
        l.n_members = x[4], l.least = x[5], l.most = x[6], l.others = x[7], l.n_bits = x[8];
        const size_t n = 2 * l.n_words();
        Unpacker::check((n ? required[i].size() >= n && required[i].size() % n == 0 : required[i].empty()) && keys[i].size() % 2 == 0,
                        "an unordered list has the wrong size");
        for (size_t w = 0; w < required[i].size(); w += 2) {
            if (w && w % n == 0) l.groups.emplace_back();
            (w < n ? l.required : l.groups.back()).push_back(uint64_t(uint32_t(required[i][w])) | uint64_t(uint32_t(required[i][w + 1])) << 32);
        }
        for (size_t k = 0; k < keys[i].size(); k += 2) {
            Unpacker::check(keys[i][k] < n_terms && keys[i][k + 1] < l.n_bits, "a key of an unordered list is out of range");
            l.keys.push_back({keys[i][k], keys[i][k + 1]});
        }
        Unpacker::check(std::is_sorted(l.keys.begin(), l.keys.end()), "the keys of an unordered list are not sorted");
        out.lists.push_back(std::move(l));
    }
    for (size_t s = 0; s < out.list_of.size(); ++s)
        Unpacker::check(out.list_of[s] < 0 || out.member_of[s] < out.lists[size_t(out.list_of[s])].n_bits, "a member is out of range");
    for (const auto& set : sets) {
        Unpacker::check(!set.empty() && set[0] >= 0 && set[0] < n_lists && set.size() == 2 + 2 * out.lists[size_t(set[0])].n_words() && set[1] >= 0,
                        "a set of members does not fit its list");
        out.sets.intern(set);
    }
    Unpacker::check(out.sets.size() == int32_t(sets.size()), "a set of members is repeated");
    if (n_lists) out.first = n_lr;
    out.n_terms = n_terms;
    return out.n_states();
}

// Fill a fresh engine; throws Damaged at the first thing that does not fit.
inline void unpack(const Arrays& in, Engine& e) {
    Unpacker u(in);
    const int64_t n_tokens = e.vocab->n_tokens(), big = int64_t(1) << 31;
    const vector<int32_t>& head = u.values("head", -1, big, 6);
    const int32_t n_terms = head[0], n_symbols = head[1];
    Unpacker::check(n_terms > 0 && n_symbols > n_terms && head[2] >= 0 && head[2] < n_terms && head[5] == e.vocab->size,
                    "the header does not fit");
    e.grammar.n_terms = n_terms;
    e.grammar.n_symbols = n_symbols;
    e.end_term = head[2];
    const bool frozen = head[4] != 0;
    e.ignored = u.values("ignored", 0, n_terms);

    Terminals& t = e.lexer.terms;
    t.longest = head[3] != 0;
    t.term = u.values("component_term", 0, n_terms);
    const int64_t n_comp = int64_t(t.term.size());
    t.start = u.values("term_start", -1, n_comp, size_t(n_terms));
    t.rank = u.values("term_rank", 0, big, size_t(n_terms));
    t.least = u.values("term_least", 0, big, size_t(n_terms));
    t.most = u.values("term_most", 0, big, size_t(n_terms));
    auto flags = [&](const char* name, size_t n) {
        const vector<int32_t>& v = u.values(name, 0, 2, n);
        return vector<uint8_t>(v.begin(), v.end());
    };
    t.counted = flags("term_counted", size_t(n_terms));
    t.ignore = flags("term_ignore", size_t(n_terms));
    t.restarts_lexing = flags("term_inlined", size_t(n_terms));
    t.accept = flags("component_accept", size_t(n_comp));
    auto edges = [&](const std::string& name, int64_t n_targets) {
        const vector<int32_t>& to = u.values(name + "_target", 0, n_targets);
        const vector<int32_t>&lo = u.values(name + "_lo", 0, 256, to.size()), &hi = u.values(name + "_hi", 0, 256, to.size()),
                              &count = u.values(name + "_count", 0, 2, to.size());
        vector<Edge> out;
        for (size_t i = 0; i < to.size(); ++i) {
            Unpacker::check(lo[i] <= hi[i], "an edge of '", name, "' is empty");
            out.push_back({uint8_t(lo[i]), uint8_t(hi[i]), to[i], uint8_t(count[i])});
        }
        return out;
    };
    t.edges = edges("component_edge", n_comp);
    t.indptr = u.indptr("component_indptr", t.edges.size());
    Unpacker::check(int64_t(t.indptr.size()) == n_comp + 1, "component_indptr has the wrong length");
    t.open.assign(size_t(n_comp), 0);
    t.find_open(0);
    t.name.assign(size_t(n_comp), -1);
    t.place.assign(size_t(n_comp), -1);  // only shortens expansion
    t.remaining.assign(size_t(n_comp), 0);
    e.token_ids = u.rows("term_tokens", 0, n_tokens);
    Unpacker::check(e.token_ids.size() == size_t(n_terms), "term_tokens has the wrong length");
    e.index_tokens();
    const vector<int32_t>& follow = u.values("follow", -big, big, size_t(n_terms) * 8);
    e.lexer.terms.follow.resize(size_t(n_terms));
    for (size_t i = 0; i < follow.size(); i += 2)
        e.lexer.terms.follow[i / 8].w[i / 2 % 4] = uint64_t(uint32_t(follow[i])) | uint64_t(uint32_t(follow[i + 1])) << 32;

    LrTables& lr = e.lr;
    lr.n_shifts = u.values("lr_n_shifts", 0, big);
    const int32_t n_lr = lr.n_states(), n_all = n_lr + restore_unordered(u, n_lr, n_terms, n_symbols, lr.unordered);
    lr.goto_target = u.values("lr_goto_target", 0, n_all);
    lr.goto_symbol = u.values("lr_goto_symbol", 0, n_symbols, lr.goto_target.size());
    lr.goto_indptr = u.indptr("lr_goto_indptr", lr.goto_symbol.size());
    lr.completed = u.values("lr_done", n_terms, n_symbols);
    lr.completed_indptr = u.indptr("lr_done_indptr", lr.completed.size());
    Unpacker::check(n_lr > 0 && int32_t(lr.goto_indptr.size()) == n_lr + 1 && int32_t(lr.completed_indptr.size()) == n_lr + 1,
                    "the LR tables have different lengths");
    for (int32_t s = 0; s < n_lr; ++s) {
        const int32_t *b = lr.goto_symbol.data() + lr.goto_indptr[s], *end = lr.goto_symbol.data() + lr.goto_indptr[s + 1];
        Unpacker::check(std::is_sorted(b, end) && std::lower_bound(b, end, n_terms) - b == lr.n_shifts[s], "a row of the LR tables is not sorted");
    }
    for (const auto& c : u.rows("context", 0, n_terms)) e.lexer.contexts.intern(c);
    for (const auto& w : u.rows("watch", 0, n_comp)) e.lexer.watches.intern(w);
    for (const auto& s : u.rows("span", 0, big)) {
        Unpacker::check(!s.empty() && s.size() % 2 == 0 && std::is_sorted(s.begin(), s.end()), "a span is not made of ranges");
        e.lexer.spans.intern(s);
    }
    const int32_t n_contexts = e.lexer.contexts.size(), n_watches = e.lexer.watches.size();
    e.contexts.of_state = u.values("lr_context", 0, n_contexts, t.longest ? 0 : size_t(n_lr));
    const vector<int32_t>& distinct = u.values("distinct", 0, 3);
    Unpacker::check(distinct.empty() || distinct.size() == size_t(n_symbols), "distinct has the wrong length");
    e.distinct.assign(distinct.begin(), distinct.end());
    e.find_exhaustible();
    e.contexts.of_set = u.values("set_context", -1, n_contexts);

    const vector<int32_t>& lex_flags = u.values("lex_flags", 0, 16);
    const int64_t n_lex = int64_t(lex_flags.size());
    const vector<int32_t>& lex_profile = u.values("lex_profile", -1, int64_t(in.get("profile_base").size()), size_t(n_lex));
    const vector<Edge> lex_edges = edges("lex_edge", n_lex);
    const vector<int32_t>& lex_indptr = u.indptr("lex_edge_indptr", lex_edges.size());
    const auto hyps = u.rows("lex_hypotheses", -1, big), accepts = u.rows("lex_accepts", 0, big);
    Unpacker::check(int64_t(lex_indptr.size()) == n_lex + 1 && int64_t(hyps.size()) == n_lex && int64_t(accepts.size()) == n_lex,
                    "the lexer arrays have different lengths");
    for (int64_t y = 0; y < n_lex; ++y) {
        LexState s;
        s.root = lex_flags[y] & 1;
        s.boundary = lex_flags[y] & 2;
        s.goes_on = lex_flags[y] & 4;
        s.expanded = lex_flags[y] & 8;
        Unpacker::check(!frozen || (s.expanded && lex_profile[y] >= 0), "a complete artifact has an unfinished lexer state");
        s.profile = lex_profile[y];
        s.edges.assign(lex_edges.begin() + lex_indptr[y], lex_edges.begin() + lex_indptr[y + 1]);
        for (size_t i = 0; i < s.edges.size(); ++i) {
            Unpacker::check(i == 0 || s.edges[i - 1].hi < s.edges[i].lo, "a row of lexer edges is not sorted");
            s.live.add_range(s.edges[i].lo, s.edges[i].hi);
            if (s.edges[i].target == y) s.loops.add_range(s.edges[i].lo, s.edges[i].hi);
            if (s.edges[i].count) s.units.add_range(s.edges[i].lo, s.edges[i].hi);
        }
        for (size_t i = 0; i < accepts[y].size(); i += 2) {
            Unpacker::check(i + 1 < accepts[y].size() && accepts[y][i] < n_terms && accepts[y][i + 1] < n_watches, "an accept is out of range");
            s.accepts.push_back({accepts[y][i], accepts[y][i + 1]});
        }
        const vector<int32_t>& h = hyps[y];
        for (size_t i = 0; i < h.size();) {
            Hypothesis x{h[i++], {}, {}};
            Unpacker::check(x.context < n_contexts, "a hypothesis has an unknown context");
            for (vector<int32_t>* part : {&x.main, &x.watch}) {
                Unpacker::check(i < h.size() && h[i] >= 0 && size_t(h[i]) < h.size() - i, "a hypothesis is cut short");
                for (int32_t k = h[i++]; k; --k) {
                    Unpacker::check(h[i] >= 0 && h[i] < n_comp, "a hypothesis has an unknown component");
                    part->push_back(h[i++]);
                }
            }
            for (int32_t c : x.main)
                Unpacker::check(!t.longest || !t.restarts_lexing[t.term[c]] || x.context >= 0, "a hypothesis lacks its context");
            s.hyps.push_back(std::move(x));
        }
        Unpacker::check(frozen || !s.hyps.empty(), "a lexer state has no hypothesis");
        if (frozen) e.lexer.append(std::move(s));
        else e.lexer.restore(std::move(s));
    }
    const vector<int32_t>& roots = u.values("roots", 0, big);
    Unpacker::check(roots.size() % 3 == 0, "the roots are cut short");
    for (size_t i = 0; i < roots.size(); i += 3) {
        Unpacker::check(roots[i] < n_contexts && roots[i + 1] < n_watches && roots[i + 2] < n_lex, "a root is out of range");
        e.lexer.restore_root(roots[i], roots[i + 1], roots[i + 2]);
    }

    // Sets of tokens, and tails.
    const auto sets = u.rows("inside_tokens", 0, 256);
    const vector<int32_t>& kinds = u.values("inside_kind", kList, kDenseBitmap + 1, sets.size());
    vector<std::shared_ptr<Inside>> insides;
    for (size_t i = 0; i < sets.size(); ++i) {
        insides.push_back(std::make_shared<Inside>());
        unpack_tokens(insides.back()->bitmap, insides.back()->ids, kinds[i], sets[i], n_tokens, e.vocab->size);
    }
    const auto group_sets = u.rows("group_tokens", 0, 256), exceptions = u.rows("group_exceptions", 0, big);
    const size_t n_groups = group_sets.size();
    const vector<int32_t>&group_inside = u.values("group_inside", 0, int64_t(insides.size()), n_groups),
                          &group_span = u.values("group_span", 0, big, n_groups),
                          &group_kind = u.values("group_kind", kList, kDenseBitmap + 1, n_groups),
                          &group_offset = u.values("group_offset", -big, big, n_groups);
    Unpacker::check(exceptions.size() == n_groups, "group_exceptions has the wrong length");
    for (size_t i = 0; i < n_groups; ++i) {
        vector<uint32_t> bitmap;
        vector<int32_t> ids;
        unpack_tokens(bitmap, ids, group_kind[i], group_sets[i], n_tokens, e.vocab->size);
        for (int64_t k = 0; k < n_tokens && !bitmap.empty(); ++k) if (bitmap[size_t(k) >> 5] >> (k & 31) & 1) ids.push_back(int32_t(k));
        std::unordered_map<int32_t, int32_t> units;
        Unpacker::check(exceptions[i].size() % 2 == 0, "group_exceptions is cut short");
        for (size_t k = 0; k < exceptions[i].size(); k += 2) units[exceptions[i][k]] = exceptions[i][k + 1];
        vector<std::pair<int32_t, int32_t>> sorted;
        for (int32_t id : ids) {
            const auto got = units.find(id);
            const int64_t n = got == units.end() ? int64_t(code_points(*e.vocab, id)) + group_offset[i] : got->second;
            Unpacker::check(n >= 0 && n <= e.vocab->offsets[id + 1] - e.vocab->offsets[id], "a token has an impossible number of units");
            sorted.push_back({int32_t(n), id});
        }
        Unpacker::check(!sorted.empty(), "a group is empty");
        std::sort(sorted.begin(), sorted.end());
        vector<int32_t> counts;
        ids.clear();
        for (auto [n, id] : sorted) { counts.push_back(n); ids.push_back(id); }
        insides[size_t(group_inside[i])]->groups.push_back(e.profiler.group(group_span[i], std::move(ids), counts));
    }
    auto words = [&](const std::string& name, size_t n_rows, auto make) {  // make(row, text, lengths of the row)
        const vector<int32_t>& lengths = u.values(name + "_length", 1, 1 << 20);
        const vector<int32_t>& text = u.values(name + "_text", 0, 256);
        const vector<int32_t>& rows = u.indptr(name + "_indptr", lengths.size());
        Unpacker::check(rows.size() == n_rows + 1, "'", name, "' has the wrong number of rows");
        size_t at = 0;
        for (size_t i = 0; i < n_rows; ++i) {
            int64_t total = 0;
            for (int32_t k = rows[i]; k < rows[i + 1]; ++k) total += lengths[k];
            Unpacker::check(at + size_t(total) <= text.size(), "'", name, "' is cut short");
            make(i, vector<uint8_t>(text.begin() + int64_t(at), text.begin() + int64_t(at) + total), rows[i], rows[i + 1], lengths);
            at += size_t(total);
        }
    };
    const auto word_tokens = u.rows("tails_tokens", 0, n_tokens);
    Unpacker::check(word_tokens.size() == in.get("tails_word_length").size(), "tails_tokens has the wrong length");
    size_t n_word_tokens = 0;
    for (const auto& w : word_tokens) n_word_tokens += w.size();
    const vector<int32_t>& tail_counts = u.values("tails_count", 0, 1 << 20);
    Unpacker::check(tail_counts.empty() || tail_counts.size() == n_word_tokens, "tails_count has the wrong length");
    size_t tail_count_at = 0;
    vector<std::shared_ptr<const Tails>> tails;
    words("tails_word", in.get("tails_word_indptr").size() - 1, [&](size_t i, vector<uint8_t> text, int32_t lo, int32_t hi, const vector<int32_t>& lengths) {
        auto x = std::make_shared<Tails>();
        x->text = std::move(text);
        vector<Word> ws;
        const uint8_t* p = x->text.data();
        for (int32_t k = lo; k < hi; p += lengths[k++])
            for (int32_t token : word_tokens[k]) ws.push_back({p, lengths[k], token, tail_counts.empty() ? 0 : tail_counts[tail_count_at++]});
        x->trie = Trie(ws);
        x->uid = e.vocab->profiles.next_uid();
        Unpacker::check(int32_t(x->trie.slot_word.size()) == hi - lo, "tails are repeated");
        tails.push_back(std::move(x));
    });
    vector<std::shared_ptr<SharedTails>> shared;
    const vector<int32_t>& universe_term = u.values("universe_term", 0, n_terms);
    words("universe_word", universe_term.size(), [&](size_t i, vector<uint8_t> text, int32_t lo, int32_t hi, const vector<int32_t>& lengths) {
        auto s = std::make_shared<SharedTails>();
        s->text = std::move(text);
        vector<Word> ws;
        const uint8_t* p = s->text.data();
        for (int32_t k = lo; k < hi; p += lengths[k++]) ws.push_back({p, lengths[k], 0});
        s->all = Trie(ws);
        Unpacker::check(int32_t(s->all.slot_word.size()) == hi - lo, "a universe repeats a tail");
        e.universes.push_back({universe_term[i], s});
        shared.push_back(std::move(s));
    });
    const int64_t n_universes = int64_t(shared.size());
    const vector<int32_t>& finish_tails = u.values("finish_tails", 0, int64_t(tails.size()));
    const size_t n_finishes = finish_tails.size();
    const vector<int32_t>&finish_term = u.values("finish_term", 0, n_terms, n_finishes),
                          &finish_universe = u.values("finish_universe", frozen ? 0 : -1, n_universes, n_finishes);
    const auto slots = u.rows("finish_slots", 0, big);
    Unpacker::check(slots.size() == n_finishes, "finish_slots has the wrong length");
    for (size_t f = 0; f < n_finishes; ++f) {
        TerminalEnd out{finish_term[f], tails[finish_tails[f]], finish_universe[f], nullptr, {}};
        if (out.universe >= 0) {
            const Trie& all = shared[size_t(out.universe)]->all;
            Unpacker::check(slots[f].size() == out.tails->trie.slot_word.size(), "a finish has the wrong number of tails");
            for (int32_t s : slots[f]) Unpacker::check(size_t(s) < all.slot_word.size(), "a tail is out of range");
            out.slots = std::make_shared<vector<int32_t>>(slots[f]);
            out.index(all.slot_word.size(), t.counted[out.term]);
        }
        e.profiler.terminal_ends.push_back(std::move(out));
    }
    const vector<int32_t>& base = in.get("profile_base");
    const int64_t n_profiles = int64_t(base.size());
    u.values("profile_base", -1, n_profiles);
    const vector<int32_t>& inside = u.values("profile_inside", 0, int64_t(insides.size()), size_t(n_profiles));
    const auto drop = u.rows("profile_drop", 0, n_tokens), finishes = u.rows("profile_finishes", 0, int64_t(n_finishes));
    Unpacker::check(int64_t(drop.size()) == n_profiles && int64_t(finishes.size()) == n_profiles, "the profiles have different lengths");
    const auto profile_spans = u.rows("profile_spans", 0, e.lexer.spans.size());
    Unpacker::check(int64_t(profile_spans.size()) == n_profiles, "profile_spans has the wrong length");
    const auto vetoed_sets = u.rows("killed_tokens", 0, 256);
    const vector<int32_t>& vetoed_kinds = u.values("killed_kind", kDenseMissing, kDenseBitmap + 1, vetoed_sets.size());
    vector<std::shared_ptr<const vector<uint32_t>>> vetoed;
    for (size_t i = 0; i < vetoed_sets.size(); ++i) {
        vector<uint32_t> bitmap;
        vector<int32_t> none;
        unpack_tokens(bitmap, none, vetoed_kinds[i], vetoed_sets[i], n_tokens, e.vocab->size);
        vetoed.push_back(std::make_shared<vector<uint32_t>>(std::move(bitmap)));
    }
    const vector<int32_t>& vetoed_of = u.values("profile_killed", -1, int64_t(vetoed.size()), size_t(n_profiles));
    for (int64_t i = 0; i < n_profiles; ++i) {
        const int32_t b = base[i], k = vetoed_of[i];
        Unpacker::check(k < 0 || (b >= 0 && vetoed_of[b] < 0), "a watched profile has no base");
        Unpacker::check(k >= 0 || b < 0 || (base[b] < 0 && vetoed_of[b] < 0), "a delta profile is based on another");
        Profile p{b, drop[i], k < 0 ? nullptr : vetoed[size_t(k)], insides[inside[i]], finishes[i], profile_spans[i]};
        for (const Inside::Group& g : p.inside->groups)
            Unpacker::check(size_t(g.local_span) < p.spans.size(), "a profile lacks a span");
        e.profiler.profiles.push_back(std::move(p));
    }
    for (int64_t i = 0; i < n_profiles; ++i) {  // bases may come later than their deltas
        Profile& p = e.profiler.profiles[size_t(i)];
        if (p.base >= 0) e.profiler.find_free(e.profiler.profiles[size_t(p.base)]);
        e.profiler.find_free(p);
    }

    // The parser DWA.
    for (const auto& w : u.rows("dwa_weight", 0, big)) e.weights.intern(w);
    const int32_t n_weights = e.weights.size();
    auto check_weight = [&](int32_t universe, int32_t weight) {
        for (int32_t s : e.weights[weight])
            Unpacker::check(size_t(s) < shared[size_t(universe)]->all.slot_word.size(), "a weight is out of range");
    };
    const vector<int32_t>& dwa_universe = u.values("dwa_universe", 0, n_universes);
    const int64_t n_dwa = int64_t(dwa_universe.size());
    const vector<int32_t>& dwa_start = u.values("dwa_start", 0, 2, size_t(n_dwa));
    const auto places = u.rows("dwa_places", 0, big);
    Unpacker::check(int64_t(places.size()) == n_dwa, "dwa_places has the wrong length");
    for (int64_t d = 0; d < n_dwa; ++d) {
        const Trie& all = shared[size_t(dwa_universe[d])]->all;
        const vector<int32_t>& p = places[d];
        Unpacker::check(p.size() % 3 == 0, "a place is cut short");
        for (size_t i = 0; i < p.size(); i += 3)
            Unpacker::check(p[i] < all.n_nodes() && p[i + 1] >= n_terms && p[i + 1] < n_symbols && p[i + 2] >= 1 && p[i + 2] <= 2,
                            "a place is out of range");
        e.dwa.restore_state(dwa_universe[d], dwa_start[d], p);
    }
    const vector<int32_t>& from = u.values("dwa_from", 0, n_dwa);
    const size_t n_tr = from.size();
    const vector<int32_t>&read = u.values("dwa_read", 0, n_all, n_tr), &weight = u.values("dwa_weight_of", 0, n_weights, n_tr),
                          &next = u.values("dwa_next", -1, n_dwa, n_tr);
    for (size_t i = 0; i < n_tr; ++i) {
        check_weight(dwa_universe[from[i]], weight[i]);
        Unpacker::check(next[i] < 0 || dwa_universe[next[i]] == dwa_universe[from[i]], "a transition changes its universe");
        e.dwa.restore_transition(from[i], read[i], {weight[i], next[i]});
    }

    // Joint tails.
    const auto joint_states = u.rows("joint_state", 0, big), joint_tops = u.rows("joint_tops", 0, n_lr);
    for (const vector<int32_t>& d : joint_states) {
        Unpacker::check(d.size() % 2 == 1 && d[0] < n_universes, "a state of joint tails is cut short");
        for (size_t i = 1; i < d.size(); i += 2)
            Unpacker::check(d[i] < shared[size_t(d[0])]->all.n_nodes() && d[i + 1] < n_watches, "a state of joint tails is out of range");
        e.joint.state(d);
    }
    for (const vector<int32_t>& x : joint_tops) {
        Unpacker::check(!x.empty(), "a set of tops is empty");
        e.joint.tops.intern(x);
    }
    e.joint.follow = u.rows("term_follow", 0, n_terms);
    Unpacker::check(e.joint.follow.size() == (t.longest ? size_t(n_terms) : 0), "term_follow has the wrong length");
    const int32_t n_joint = int32_t(joint_states.size());
    const vector<int32_t>& joint_from = u.values("joint_from", 0, n_joint);
    const vector<int32_t>&joint_read = u.values("joint_read", 0, int64_t(joint_tops.size()), joint_from.size()),
                          &joint_weight = u.values("joint_weight_of", 0, n_weights, joint_from.size());
    const auto cuts = u.rows("joint_cuts", -1, big);
    Unpacker::check(cuts.size() == joint_from.size(), "joint_cuts has the wrong length");
    for (size_t i = 0; i < joint_from.size(); ++i) {
        const vector<int32_t>& c = cuts[i];
        const int32_t universe = joint_states[joint_from[i]][0];
        check_weight(universe, joint_weight[i]);
        Unpacker::check(c.size() % 3 == 0, "a cut is cut short");
        vector<JointTails::Cut> out;
        for (size_t k = 0; k < c.size(); k += 3) {
            Unpacker::check(c[k] >= 0 && c[k] < n_terms && c[k + 1] < int32_t(k / 3) && c[k + 2] < n_joint, "a cut is out of range");
            Unpacker::check(c[k + 1] < 0 || c[3 * size_t(c[k + 1]) + 2] < 0, "a cut goes on from unknown stacks");
            Unpacker::check(c[k + 2] < 0 || (joint_states[c[k + 2]][0] == universe && joint_states[c[k + 2]].size() > 1), "a cut changes its universe");
            out.push_back({c[k], c[k + 1], c[k + 2]});
        }
        Unpacker::check(!e.joint.find(joint_from[i], joint_read[i]), "a transition is repeated");
        e.joint.add(joint_from[i], joint_read[i], joint_weight[i], out);
    }
    e.frozen = frozen;
}

}  // namespace wfsa
