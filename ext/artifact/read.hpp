// A constraint from flat int32 arrays (write.hpp).
//
// Reading trusts nothing: every index is checked against what it indexes before it is used, because a file can be cut,
// altered or written by somebody else.  The first thing that does not fit is a Damaged.
//
// Sets of tokens, tails and universes are looked for at the vocabulary, so that what another constraint has already is
// not held twice.
#pragma once
#include "artifact/read_fields.hpp"
#include "artifact/write.hpp"

namespace wfsa {

// The lists with sets; returns how many LR states they add.
inline int32_t restore_unordered(const Unpacker& u, int32_t n_lr, int32_t n_terms, int32_t n_symbols,
                                 UnorderedStates& out) {
    const int64_t big = int64_t(1) << 31;
    const vector<int32_t>& numbers = u.values("list_numbers", 0, big);
    const auto keys = u.rows("list_keys", 0, big), pairs = u.rows("list_pairs", -big, big),
               required = u.rows("list_required", -big, big), sets = u.rows("list_sets", -big, big);
    const int64_t n_lists = int64_t(keys.size());
    Unpacker::check(numbers.size() == 8 * keys.size() && required.size() == keys.size() && pairs.size() == keys.size(),
                    "the arrays of unordered lists have different lengths");
    out.list_of = u.values("list_of", -1, n_lists, n_lists ? size_t(n_symbols) : 0);
    out.pair_of = u.values("pair_of", -1, big, out.list_of.size());
    auto word = [](const vector<int32_t>& row, size_t at) {
        return uint64_t(uint32_t(row[at])) | uint64_t(uint32_t(row[at + 1])) << 32;
    };
    for (size_t i = 0; i < keys.size(); ++i) {
        const int32_t* x = numbers.data() + 8 * i;
        UnorderedList l;
        Unpacker::check(x[0] < n_terms && x[1] < n_terms && x[2] < n_lr && x[3] < n_lr && x[7] < 2,
                        "an unordered list is out of range");
        l.separator = x[0], l.close = x[1], l.after_member = x[2], l.after_separator = x[3];
        l.n_members = x[4], l.least = x[5], l.most = x[6], l.ordered = x[7];
        Unpacker::check(required[i].size() == 2 + 2 * l.n_words() && pairs[i].size() % 3 == 0 && keys[i].size() % 2 == 0,
                        "an unordered list has the wrong size");
        l.wanted = word(required[i], 0);
        for (size_t w = 0; w < l.n_words(); ++w) l.required.push_back(word(required[i], 2 + 2 * w));
        for (size_t k = 0; k < pairs[i].size(); k += 3) {
            Unpacker::check(pairs[i][k] >= -1 && pairs[i][k] < l.n_members, "a pair of an unordered list is out of range");
            l.pairs.push_back({pairs[i][k], word(pairs[i], k + 1)});
            l.others |= pairs[i][k] < 0;
        }
        for (size_t k = 0; k < keys[i].size(); k += 2) {
            Unpacker::check(keys[i][k] < n_terms && keys[i][k + 1] < int64_t(l.pairs.size()),
                            "a key of an unordered list is out of range");
            l.keys.push_back({keys[i][k], keys[i][k + 1]});
        }
        Unpacker::check(std::is_sorted(l.keys.begin(), l.keys.end()), "the keys of an unordered list are not sorted");
        l.find_absent();
        out.lists.push_back(std::move(l));
    }
    for (size_t s = 0; s < out.list_of.size(); ++s) {
        const bool is_pair = out.list_of[s] >= 0;
        Unpacker::check((out.pair_of[s] >= 0) == is_pair &&
                            (!is_pair || out.pair_of[s] < int64_t(out.lists[size_t(out.list_of[s])].pairs.size())),
                        "a pair is out of range");
    }
    for (const auto& set : sets) {
        Unpacker::check(!set.empty() && set[0] >= 0 && set[0] < n_lists && set[1] >= 0 &&
                            set.size() == out.lists[size_t(set[0])].set_size(),
                        "a set of members does not fit its list");
        out.sets.intern(set);
    }
    Unpacker::check(out.sets.size() == int32_t(sets.size()), "a set of members is repeated");
    if (n_lists) out.first = n_lr;
    out.n_terms = n_terms;
    return out.n_states();
}

class ArtifactReader {
  public:
    ArtifactReader(const Arrays& in, Engine& e) : u_(in), fields_(in), e_(e), n_tokens_(e.vocab->n_tokens()) {}

    void read() {
        head();
        terminals();
        lr_tables();
        interned();
        lexer_states();
        const auto insides = read_insides();
        finishes(read_tails());
        profiles(insides);
        parser_dwa();
        joint_tails();
        if (frozen_) e_.freeze();
    }

  private:
    static constexpr int64_t kBig = int64_t(1) << 31;
    static constexpr int64_t kMostWhiteSpace = int64_t(1) << 20;
    static constexpr int64_t kMostPlaces = 1 << 25;  // slots of all finishes; a file could name the same tails often
    Unpacker u_;
    FieldReader fields_;
    Engine& e_;
    int64_t n_tokens_;
    int32_t n_terms_ = 0, n_symbols_ = 0;
    bool frozen_ = false;
    int32_t n_states_ = 0;  // LR states, those with sets among them

    static void check(bool ok, const char* what) { Unpacker::check(ok, what); }
    static uint64_t word(const vector<int32_t>& v, size_t i) {
        return uint64_t(uint32_t(v[i])) | uint64_t(uint32_t(v[i + 1])) << 32;
    }

    void head() {
        const vector<int32_t>& head = u_.values("head", -1, kBig, 6);
        n_terms_ = head[0];
        n_symbols_ = head[1];
        check(n_terms_ > 0 && n_symbols_ > n_terms_ && head[2] >= 0 && head[2] < n_terms_ && head[5] == e_.vocab->size,
              "the header does not fit");
        e_.grammar.n_terms = n_terms_;
        e_.grammar.n_symbols = n_symbols_;
        e_.end_term = head[2];
        e_.lexer.terms.longest = head[3] != 0;
        frozen_ = head[4] != 0;
        e_.ignored = u_.values("ignored", 0, n_terms_);
    }

    vector<Edge> edges(const std::string& name, int64_t n_targets) const {
        const vector<int32_t>& to = u_.values(name + "_target", 0, n_targets);
        const vector<int32_t>&lo = u_.values(name + "_lo", 0, 256, to.size()),
                              &hi = u_.values(name + "_hi", 0, 256, to.size()),
                              &count = u_.values(name + "_count", 0, 2, to.size());
        vector<Edge> out;
        out.reserve(to.size());
        for (size_t i = 0; i < to.size(); ++i) {
            Unpacker::check(lo[i] <= hi[i], "an edge of '", name, "' is empty");
            out.push_back({uint8_t(lo[i]), uint8_t(hi[i]), to[i], uint8_t(count[i])});
        }
        return out;
    }

    void terminals() {
        Terminals& t = e_.lexer.terms;
        fields_.table("terminals", t, int64_t(n_terms_));
        e_.token_ids = u_.rows("term_tokens", 0, n_tokens_, size_t(n_terms_));
        e_.index_tokens();
    }

    void lr_tables() {
        LrTables& lr = e_.lr;
        lr.n_shifts = u_.values("lr_n_shifts", 0, kBig);
        const int32_t n_lr = lr.n_states();
        n_states_ = n_lr + restore_unordered(u_, n_lr, n_terms_, n_symbols_, lr.unordered);
        lr.goto_target = u_.values("lr_goto_target", 0, n_states_);
        lr.goto_symbol = u_.values("lr_goto_symbol", 0, n_symbols_, lr.goto_target.size());
        lr.goto_indptr = u_.indptr("lr_goto_indptr", lr.goto_symbol.size());
        lr.completed = u_.values("lr_done", n_terms_, n_symbols_);
        lr.completed_indptr = u_.indptr("lr_done_indptr", lr.completed.size());
        check(n_lr > 0 && int32_t(lr.goto_indptr.size()) == n_lr + 1 && int32_t(lr.completed_indptr.size()) == n_lr + 1,
              "the LR tables have different lengths");
        for (int32_t s = 0; s < n_lr; ++s) {
            const int32_t* symbols = lr.goto_symbol.data();
            const int32_t *b = symbols + lr.goto_indptr[s], *end = symbols + lr.goto_indptr[s + 1];
            check(std::is_sorted(b, end) && std::lower_bound(b, end, n_terms_) - b == lr.n_shifts[s],
                  "a row of the LR tables is not sorted");
        }
    }

    void interned() {
        for (const auto& c : u_.rows("context", 0, n_terms_)) e_.lexer.contexts.intern(c);
        for (const auto& w : u_.rows("watch", 0, int64_t(e_.lexer.terms.term.size()))) e_.lexer.watches.intern(w);
        for (const auto& s : u_.rows("span", 0, kBig)) {
            const bool ranges = s.size() % 2 == 0 && std::is_sorted(s.begin(), s.end());
            check(ranges, "a span is not made of ranges");
            e_.lexer.spans.intern(s);
        }
        const int32_t n_contexts = e_.lexer.contexts.size();
        e_.contexts.of_state = u_.values("lr_context", 0, n_contexts, e_.longest() ? 0 : size_t(e_.lr.n_states()));
        const vector<int32_t>& distinct = u_.values("distinct", 0, 4);
        check(distinct.empty() || distinct.size() == size_t(n_symbols_), "distinct has the wrong length");
        e_.distinct.assign(distinct.begin(), distinct.end());
        e_.find_marks();
        const vector<int32_t>& white_space = u_.values("white_space", -1, kMostWhiteSpace, 2);
        check(white_space[1] >= 0, "white space has a bound that shrinks");
        std::copy(white_space.begin(), white_space.end(), e_.white_space);
        e_.contexts.of_set = u_.values("set_context", -1, n_contexts);
    }

    void lexer_states() {
        const int32_t n_contexts = e_.lexer.contexts.size(), n_watches = e_.lexer.watches.size();
        const vector<int32_t>& flags = u_.values("lex_flags", 0, 16);
        const size_t n = flags.size();
        const vector<int32_t>& profile = u_.values("lex_profile", -1, int64_t(u_.get("profile_base").size()), n);
        const vector<Edge> all_edges = edges("lex_edge", int64_t(n));
        const vector<int32_t>& edge_at = u_.indptr("lex_edge_indptr", all_edges.size());
        check(edge_at.size() == n + 1, "lex_edge_indptr has the wrong length");
        const auto hyps = u_.rows("lex_hypotheses", -1, kBig, n), accepts = u_.rows("lex_accepts", 0, kBig, n);
        for (size_t y = 0; y < n; ++y) {
            LexState s;
            s.root = flags[y] & 1;
            s.boundary = flags[y] & 2;
            s.goes_on = flags[y] & 4;
            s.expanded = flags[y] & 8;
            check(!frozen_ || (s.expanded && profile[y] >= 0), "a complete artifact has an unfinished lexer state");
            s.profile = profile[y];
            const Span<Edge> row{all_edges.data() + edge_at[y], edge_at[y + 1] - edge_at[y]};
            for (size_t i = 1; i < row.size(); ++i)
                check(row[i - 1].hi < row[i].lo, "a row of lexer edges is not sorted");
            check(accepts[y].size() % 2 == 0, "an accept is cut short");
            vector<Accept> cuts;
            for (size_t i = 0; i < accepts[y].size(); i += 2) {
                check(accepts[y][i] < n_terms_ && accepts[y][i + 1] < n_watches, "an accept is out of range");
                cuts.push_back({accepts[y][i], accepts[y][i + 1]});
            }
            check_hypotheses(hyps[y]);
            e_.lexer.restore(s, hyps[y], row, cuts, frozen_);
        }
        const vector<int32_t>& roots = u_.values("roots", 0, kBig);
        check(roots.size() % 3 == 0, "the roots are cut short");
        for (size_t i = 0; i < roots.size(); i += 3) {
            const bool known = roots[i] < n_contexts && roots[i + 1] < n_watches && roots[i + 2] < int64_t(n);
            check(known, "a root is out of range");
            e_.lexer.restore_root(roots[i], roots[i + 1], roots[i + 2]);
        }
    }
    void check_hypotheses(const vector<int32_t>& code) const {
        const Terminals& t = e_.lexer.terms;
        for (size_t i = 0; i < code.size();) {
            const int32_t context = code[i++];
            check(context < e_.lexer.contexts.size(), "a hypothesis has an unknown context");
            for (const bool main : {true, false}) {
                const bool whole = i < code.size() && code[i] >= 0 && size_t(code[i]) < code.size() - i;
                check(whole, "a hypothesis is cut short");
                for (int32_t k = code[i++]; k; --k) {
                    const int32_t c = code[i++];
                    check(c >= 0 && c < int64_t(t.term.size()), "a hypothesis has an unknown component");
                    check(!main || !t.longest || !t[t.term[size_t(c)]].restarts_lexing || context >= 0,
                          "a hypothesis lacks its context");
                }
            }
        }
        check(frozen_ || !code.empty(), "a lexer state has no hypothesis");
    }

    vector<std::shared_ptr<const Inside>> read_insides() {
        const Vocabulary& v = *e_.vocab;
        const auto sets = u_.rows("inside_tokens", 0, 256);
        const vector<int32_t>& kinds = u_.values("inside_kind", kList, kDenseBitmap + 1, sets.size());
        vector<Inside> found(sets.size());
        for (size_t i = 0; i < sets.size(); ++i)
            unpack_tokens(found[i].bitmap, found[i].ids, kinds[i], sets[i], n_tokens_, v.size);
        const auto group_sets = u_.rows("group_tokens", 0, 256);
        const size_t n = group_sets.size();
        const auto exceptions = u_.rows("group_exceptions", 0, kBig, n);
        const vector<int32_t>&inside = u_.values("group_inside", 0, int64_t(sets.size()), n),
                              &span = u_.values("group_span", 0, kBig, n),
                              &kind = u_.values("group_kind", kList, kDenseBitmap + 1, n),
                              &offset = u_.values("group_offset", -kBig, kBig, n);
        for (size_t i = 0; i < n; ++i) {
            vector<uint32_t> bitmap;
            vector<int32_t> ids;
            unpack_tokens(bitmap, ids, kind[i], group_sets[i], n_tokens_, v.size);
            for (int64_t k = 0; k < n_tokens_ && !bitmap.empty(); ++k)
                if (bitmap[size_t(k) >> 5] >> (k & 31) & 1) ids.push_back(int32_t(k));
            found[size_t(inside[i])].add_group(span[i], units(ids, offset[i], exceptions[i]), v.n_words());
        }
        vector<std::shared_ptr<const Inside>> out;
        for (Inside& x : found) {
            x.groups.shrink_to_fit();
            out.push_back(e_.profiler.cache().insides.intern(std::move(x)));
        }
        return out;
    }
    // The tokens of a group, ascending, with their units.
    vector<Inside::Counted> units(const vector<int32_t>& ids, int32_t offset, const vector<int32_t>& exceptions) const {
        check(!ids.empty(), "a group is empty");
        check(exceptions.size() % 2 == 0, "group_exceptions is cut short");
        vector<Inside::Counted> out;
        out.reserve(ids.size());
        size_t at = 0;
        for (int32_t id : ids) {
            const bool is_exception = at < exceptions.size() && exceptions[at] == id;
            const int64_t n = is_exception ? exceptions[at + 1] : int64_t(code_points(*e_.vocab, id)) + offset;
            at += 2 * is_exception;
            const int64_t length = e_.vocab->offsets[id + 1] - e_.vocab->offsets[id];
            check(n >= 0 && n <= length, "a token has an impossible number of units");
            out.push_back({id, int32_t(n)});
        }
        check(at == exceptions.size(), "group_exceptions has tokens that are not in their group, or not in order");
        return out;
    }

    // A tail is the end of its tokens' bytes.
    vector<std::shared_ptr<const Tails>> read_tails() {
        const Vocabulary& v = *e_.vocab;
        const vector<int32_t>& lengths = u_.values("tails_length", 1, kBig);
        const auto tokens = u_.rows("tails_tokens", 0, n_tokens_, lengths.size());
        const vector<int32_t>& rows = u_.indptr("tails_indptr", lengths.size());
        const vector<int32_t>& counts = u_.values("tails_count", 0, 1 << 20);
        check(counts.empty() || counts.size() == u_.get("tails_tokens").size(), "tails_count has the wrong length");
        vector<std::shared_ptr<const Tails>> out;
        size_t at = 0;
        for (size_t i = 0; i + 1 < rows.size(); ++i) {
            vector<Word> words;
            for (int32_t k = rows[i]; k < rows[i + 1]; ++k) {
                check(!tokens[k].empty(), "a tail has no token");
                for (int32_t token : tokens[k]) {
                    check(lengths[k] <= v.offsets[token + 1] - v.offsets[token], "a tail is longer than its token");
                    const uint8_t* text = v.blob.data() + v.offsets[token + 1] - lengths[k];
                    const Word word{text, lengths[k], token, counts.empty() ? 0 : counts[at++]};
                    const bool alike = token == tokens[k].front() || same_text(word, words.back());
                    check(alike, "the tokens of a tail end differently");
                    words.push_back(word);
                }
            }
            Slots slots(words);
            check(int32_t(slots.slot_word.size()) == rows[i + 1] - rows[i], "tails are repeated");
            out.push_back(e_.profiler.cache().keep(std::move(slots)));
        }
        return out;
    }

    // Finishes, and the universes that unite their tails.
    void finishes(const vector<std::shared_ptr<const Tails>>& tails) {
        const vector<int32_t>& universe_term = u_.values("universe_term", 0, n_terms_);
        const int64_t n_universes = int64_t(universe_term.size());
        const vector<int32_t>& of_tails = u_.values("finish_tails", 0, int64_t(tails.size()));
        const vector<int32_t>&term = u_.values("finish_term", 0, n_terms_, of_tails.size()),
                              &universe = u_.values("finish_universe", frozen_ ? 0 : -1, n_universes, of_tails.size());
        vector<vector<int32_t>> members(universe_term.size());
        for (size_t f = 0; f < of_tails.size(); ++f) {
            e_.profiler.terminal_ends.push_back({term[f], tails[size_t(of_tails[f])], -1, nullptr});
            if (universe[f] < 0) continue;
            check(term[f] == universe_term[size_t(universe[f])], "a universe has tails of two terminals");
            members[size_t(universe[f])].push_back(int32_t(f));
        }
        int64_t n_places = 0;
        for (size_t k = 0; k < members.size(); ++k) {
            check(!members[k].empty(), "a universe has no tails");
            int64_t n = 0;
            for (int32_t f : members[k]) n += int64_t(tails[size_t(of_tails[size_t(f)])]->slots.slot_word.size());
            n_places += n;
            check(n_places <= kMostPlaces, "its finishes have too many tails");
            add_universe(e_.universes, e_.profiler, e_.lexer.terms, members[k]);
            n_places += int64_t(members[k].size() * e_.universes.back().tails().slot_word.size());
            check(n_places <= kMostPlaces, "its finishes have too many tails");
        }
    }

    void profiles(const vector<std::shared_ptr<const Inside>>& insides) {
        const vector<int32_t>& base = u_.values("profile_base", -1, int64_t(u_.get("profile_base").size()));
        const size_t n = base.size();
        const vector<int32_t>& inside = u_.values("profile_inside", 0, int64_t(insides.size()), n);
        const auto drop = u_.rows("profile_drop", 0, n_tokens_, n);
        const auto finishes = u_.rows("profile_finishes", 0, int64_t(e_.profiler.terminal_ends.size()), n);
        const auto spans = u_.rows("profile_spans", 0, e_.lexer.spans.size(), n);
        const auto vetoed_sets = u_.rows("killed_tokens", 0, 256);
        const size_t n_killed = vetoed_sets.size();
        const vector<int32_t>& vetoed_kinds = u_.values("killed_kind", kDenseMissing, kDenseBitmap + 1, n_killed);
        vector<std::shared_ptr<const vector<uint32_t>>> killed;
        for (size_t i = 0; i < vetoed_sets.size(); ++i) {
            vector<uint32_t> bitmap;
            vector<int32_t> none;
            unpack_tokens(bitmap, none, vetoed_kinds[i], vetoed_sets[i], n_tokens_, e_.vocab->size);
            killed.push_back(std::make_shared<vector<uint32_t>>(std::move(bitmap)));
        }
        const vector<int32_t>& vetoed_of = u_.values("profile_killed", -1, int64_t(killed.size()), n);
        Profiler& to = e_.profiler;
        for (size_t i = 0; i < n; ++i) {
            const int32_t b = base[i], k = vetoed_of[i];
            check(k < 0 || (b >= 0 && vetoed_of[b] < 0), "a watched profile has no base");
            check(k >= 0 || b < 0 || (base[b] < 0 && vetoed_of[b] < 0), "a delta profile is based on another");
            Profile p;
            p.base = b;
            p.drop = to.lists.keep(drop[i]);
            p.terminal_ends = to.lists.keep(finishes[i]);
            p.spans = to.lists.keep(spans[i]);
            if (k >= 0) p.vetoed = killed[size_t(k)];
            p.inside = insides[size_t(inside[i])];
            for (const Inside::Group& g : p.inside->groups)
                check(size_t(g.local_span) < p.spans.size(), "a profile lacks a span");
            to.profiles.push_back(std::move(p));
        }
        for (Profile& p : to.profiles) {  // bases may come later than their deltas
            if (p.base >= 0) to.find_free(to.profiles[size_t(p.base)]);
            to.find_free(p);
        }
    }

    void check_weight(int32_t universe, int32_t weight) const {
        for (int32_t s : e_.weights[weight])
            check(size_t(s) < e_.universes[size_t(universe)].tails().slot_word.size(), "a weight is out of range");
    }

    void parser_dwa() {
        for (const auto& w : u_.rows("dwa_weight", 0, kBig)) e_.weights.intern(w);
        const int32_t n_weights = e_.weights.size();
        const vector<int32_t>& universe = u_.values("dwa_universe", 0, int64_t(e_.universes.size()));
        const size_t n = universe.size();
        const vector<int32_t>& start = u_.values("dwa_start", 0, 2, n);
        const auto places = u_.rows("dwa_places", 0, kBig, n);
        for (size_t d = 0; d < n; ++d) {
            const int32_t n_nodes = e_.universes[size_t(universe[d])].tails().n_nodes();
            const vector<int32_t>& p = places[d];
            check(p.size() % 3 == 0, "a place is cut short");
            for (size_t i = 0; i < p.size(); i += 3)
                check(p[i] < n_nodes && p[i + 1] >= n_terms_ && p[i + 1] < n_symbols_ && p[i + 2] >= 1 && p[i + 2] <= 2,
                      "a place is out of range");
            e_.dwa.restore_state(universe[d], start[d], p, frozen_);
            check(e_.dwa.n_states() == d + 1, "a state of the parser DWA is there twice");
        }
        const vector<int32_t>& from = u_.values("dwa_from", 0, int64_t(n));
        const size_t n_tr = from.size();
        const vector<int32_t>&read = u_.values("dwa_read", 0, n_states_, n_tr),
                              &weight = u_.values("dwa_weight_of", 0, n_weights, n_tr),
                              &next = u_.values("dwa_next", -1, int64_t(n), n_tr);
        for (size_t i = 0; i < n_tr; ++i) {
            check_weight(universe[from[i]], weight[i]);
            check(next[i] < 0 || universe[next[i]] == universe[from[i]], "a transition changes its universe");
            e_.dwa.restore_transition(from[i], read[i], {weight[i], next[i]});
        }
    }

    void joint_tails() {
        const auto states = u_.rows("joint_state", 0, kBig), tops = u_.rows("joint_tops", 0, e_.lr.n_states());
        for (const vector<int32_t>& d : states) {
            check(d.size() % 2 == 1 && d[0] < int64_t(e_.universes.size()), "a state of joint tails is cut short");
            for (size_t i = 1; i < d.size(); i += 2)
                check(d[i] < e_.universes[size_t(d[0])].tails().n_nodes() && d[i + 1] < e_.lexer.watches.size(),
                      "a state of joint tails is out of range");
            e_.joint.state(d);
        }
        for (const vector<int32_t>& x : tops) {
            check(!x.empty(), "a set of tops is empty");
            e_.joint.tops.intern(x);
        }
        e_.joint.follow = u_.rows("term_follow", 0, n_terms_, e_.longest() ? size_t(n_terms_) : 0);
        const vector<int32_t>& from = u_.values("joint_from", 0, int64_t(states.size()));
        const vector<int32_t>&read = u_.values("joint_read", 0, int64_t(tops.size()), from.size()),
                              &weight = u_.values("joint_weight_of", 0, e_.weights.size(), from.size());
        const auto cuts = u_.rows("joint_cuts", -1, kBig, from.size());
        for (size_t i = 0; i < from.size(); ++i) {
            check_weight(states[from[i]][0], weight[i]);
            check(!e_.joint.find(from[i], read[i]), "a transition is repeated");
            e_.joint.add(from[i], read[i], weight[i], read_cuts(cuts[i], states, states[from[i]][0]));
        }
    }
    vector<JointTails::Cut> read_cuts(const vector<int32_t>& c, const vector<vector<int32_t>>& states,
                                      int32_t universe) const {
        check(c.size() % 3 == 0, "a cut is cut short");
        vector<JointTails::Cut> out;
        for (size_t k = 0; k < c.size(); k += 3) {
            const int32_t term = c[k], from = c[k + 1], next = c[k + 2];
            check(term >= 0 && term < n_terms_, "a cut has an unknown terminal");
            check(from < int32_t(k / 3) && next < int64_t(states.size()), "a cut is out of range");
            check(from < 0 || c[3 * size_t(from) + 2] < 0, "a cut goes on from unknown stacks");
            check(next < 0 || (states[next][0] == universe && states[next].size() > 1), "a cut changes its universe");
            out.push_back({term, from, next});
        }
        return out;
    }
};

// Fill a fresh engine.
inline void unpack(const Arrays& in, Engine& e) { ArtifactReader(in, e).read(); }

}  // namespace wfsa
