// Profiles: what every token does from a lexer state, without looking at the stack.
//
// A token either stays inside the terminals alive in the state, or it is p·q where p ends terminal t and q, not empty,
// is lexed from a fresh start on the stack after shifting t (p empty is a fresh configuration of its own, gss.hpp).
//
//   inside     tokens with a live state at their end: as ids, or as a bitmap when there are many (inside.hpp)
//   finishes   per terminal t that can end within a token: its tails q, with the tokens that leave each (tails.hpp)
//
// A tail is kept only if its first byte can begin something that may follow t, and (under "longest") if no longer
// candidate accepts within it.
//
// How a profile is made: by a walk (walk.hpp), which the vocabulary may know already (walk_key.hpp, cache.hpp), or as a
// change of another one (delta.hpp): its base without the tokens in `drop`, plus its own entries for those.
// States with the same edges have one profile.  What a state does on a few bytes on which it loops, as on white space,
// is a profile of its own, and the base of all such states.
//
// Counts (lexer.hpp).  Whether a token that ends in a state with a span stays inside depends on the count k at its
// start: k + its units must lie in the span.  Such tokens are kept by span and number of units, so that the profile is
// one for all k.  The same holds for the units before a tail.  For nearly all k no token comes near a bound (`free`).
#pragma once
#include <map>
#include <unordered_set>

#include "containers/lists.hpp"
#include "containers/open_table.hpp"
#include "profiles/delta.hpp"
#include "profiles/walk_key.hpp"

namespace wfsa {

struct TerminalEnd {
    int32_t term;
    std::shared_ptr<const Tails> tails;
    int32_t universe = -1;                        // of the parser DWA, and where the tails stand there
    const SharedTails::Places* places = nullptr;  // ... which the universe holds
    template <class Self, class V> static void fields(Self&, V&) {}  // no memory of its own
};

struct Profile {
    int32_t base = -1;  // delta: the profile this one is a change of
    int32_t walked = 0; // trie nodes, where it is none and was not loaded
    int32_t free_lo = 0, free_hi = Terminals::kNoMost;  // counts with which no bound is met, those of the base included
    List drop;          // delta: tokens that fare differently
    List terminal_ends; // numbers of TerminalEnd objects
    List spans;         // of inside->groups, by their local number
    std::shared_ptr<const vector<uint32_t>> vetoed;  // watched root: tokens that a longer candidate makes void
    std::shared_ptr<const Inside> inside;
    template <class Self, class V> static void fields(Self&, V&) {}  // no memory of its own: lists are in an arena, sets at the vocabulary
};

class Profiler {
  public:
    StableVector<Profile> profiles;
    StableVector<TerminalEnd> terminal_ends;
    ListArena lists;  // of the profiles

    Profiler(const VocabularyTrie& trie, Lexer& lexer, Staying& staying, ProfileCache& cache, int64_t n_words)
        : trie_(trie), lexer_(lexer), cache_(cache), n_words_(n_words), walk_(trie, lexer, staying, cache),
          delta_(trie, lexer, walk_), bases_(lexer), key_(lexer) {}

    ProfileCache& cache() const { return cache_; }
    int64_t work() const { return walk_.work; }  // trie nodes walked so far
    size_t n_profiles() const { return profiles.size(); }

    // The profile of a lexer state, computed on first use.
    int32_t profile(int32_t y) {
        if (lexer_.states[y].profile >= 0) return lexer_.states[y].profile;
        lexer_.expand(y);
        const bool is_watched = lexer_.states[y].root && !lexer_.states[y].hyps.front().watch.empty();
        int32_t loop = -1;
        if (!is_watched) {
            const int32_t same = like(y, loop);
            if (same >= 0) return lexer_.states[y].profile = profile(same);
        }
        Profile p;
        const WalkResult found = is_watched ? watched(y, p) : find(y, loop, p);
        const vector<int32_t> terms = walk_.terms, spans = walk_.spans;
        p.inside = found.inside;
        // By terminal: a walk that is shared has those of another grammar in another order.
        vector<std::pair<int32_t, size_t>> by_term;
        for (size_t i = 0; i < found.tails.size(); ++i) by_term.push_back({terms[found.tail_terms[i]], i});
        std::sort(by_term.begin(), by_term.end());
        vector<int32_t> numbers;
        for (auto [term, i] : by_term) numbers.push_back(finish(term, found.tails[i]));
        p.terminal_ends = lists.keep(numbers);
        if (!p.inside->groups.empty()) p.spans = lists.keep(spans);
        find_free(p);
        profiles.push_back(std::move(p));
        return lexer_.states[y].profile = int32_t(profiles.size()) - 1;
    }

    void find_free(Profile& p) const {
        if (p.base >= 0) { p.free_lo = profiles[p.base].free_lo; p.free_hi = profiles[p.base].free_hi; }
        auto bound = [&](int32_t lo, int32_t hi, int32_t least, int32_t most) {
            p.free_lo = std::max(p.free_lo, lo - least);
            if (hi != Terminals::kNoMost) p.free_hi = std::min(p.free_hi, hi - most);
        };
        for (const Inside::Group& g : p.inside->groups) {
            const List span = lexer_.spans[p.spans[g.local_span]];
            if (span.size() == 2) bound(span[0], span[1], g.least, g.most());
            else bound(1, 0, 0, 0);  // several ranges: always looked at
        }
        for (int32_t f : p.terminal_ends) {
            const Terminals& t = lexer_.terms;
            const int32_t term = terminal_ends[f].term;
            if (!t[term].counted) continue;
            const vector<int32_t>& counts = terminal_ends[f].tails->slots.slot_counts;
            bound(t[term].least, t[term].most, counts.empty() ? 0 : *std::min_element(counts.begin(), counts.end()),
                  counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end()));
        }
    }

    template <class Self, class V> static void fields(Self& p, V& v) {
        v.part("profiles");
        v.made(p.profiles, p.terminal_ends, p.lists);
        v.table("walk", p.walk_);
        v.table("bases", p.bases_);
        v.expansion(p.finish_ids_, p.vetoed_, p.shared_, p.by_edges_, p.common_);
    }

  private:
    static constexpr int64_t kSharedWork = 1000;  // what it counts to take a walk that this engine has taken before
    static constexpr size_t kMinCached = 2048;    // bytes, or
    static constexpr int64_t kMinWalked = 32;     // nodes
    static constexpr size_t kMinBase = 4096;      // bytes of a walk from which on other states are compared with it
    const VocabularyTrie& trie_;
    Lexer& lexer_;
    ProfileCache& cache_;
    int64_t n_words_;
    Walk walk_;
    Delta delta_;
    BaseStates bases_;
    WalkKey key_;
    std::map<std::pair<int32_t, const Tails*>, int32_t> finish_ids_;  // (terminal, tails) -> number
    std::unordered_map<vector<int32_t>, std::shared_ptr<const vector<uint32_t>>, VectorHash> vetoed_;
    std::unordered_set<size_t> shared_;  // hashes of the keys of shared walks
    struct First { int32_t state = -1; };
    OpenTable<uint64_t, First, AsIs> by_edges_;  // hash of the edges -> the first state that has them
    std::unordered_map<const Inside*, int32_t> common_;  // profiles that only others are changes of

    // Another state with the same edges, so that every token fares the same from it; -1: none.  Then `loop` is the one
    // that loops and that most bytes lead to, or -1.
    int32_t like(int32_t y, int32_t& loop) {
        const LexState& s = lexer_.states[y];
        ContentHash hash;
        for (const Edge& e : s.edges) hash.add(uint64_t(uint32_t(e.target)) << 32 | uint32_t(e.label()));
        const auto [known, is_new] = by_edges_.insert(hash.value());
        if (is_new) known.state = y;
        else if (known.state != y && lexer_.states[known.state].edges == s.edges) return known.state;
        loop = bases_.loop_after(y);
        const int32_t z = loop >= 0 && lexer_.states[loop].edges == s.edges ? loop : white_space_before(y);
        return z < 0 ? -1 : known.state = z;
    }
    // Before a token most roots can take white space, and are then in a state with the same edges, which loops.
    int32_t white_space_before(int32_t y) {
        const LexState& s = lexer_.states[y];
        for (const Edge& e : s.edges) {
            if (!s.root || e.target == y || bytes_to(s.edges, e.target) < 2) continue;
            lexer_.expand(e.target);
            if (lexer_.states[e.target].edges == s.edges) return e.target;
        }
        return -1;
    }
    // What a watched root does: as the one that watches nothing, but for tokens in which something longer ends.
    WalkResult watched(int32_t y, Profile& p) {
        p.base = profile(lexer_.unwatched(y));
        p.vetoed = vetoed(lexer_.states[y].hyps.front().watch);
        WalkResult nothing;
        nothing.inside = cache_.insides.intern(Inside{});
        return nothing;
    }
    // The profile of nothing but these tokens, which stay inside.
    int32_t profile_of(const std::shared_ptr<const Inside>& tokens) {
        const auto [at, is_new] = common_.emplace(tokens.get(), int32_t(profiles.size()));
        if (is_new) {
            profiles.push_back({});
            profiles.back().inside = tokens;
        }
        return at->second;
    }
    // What y does, by a delta, a walk of this or of another engine.  Fills in what makes p a change of another profile.
    WalkResult find(int32_t y, int32_t loop, Profile& p) {
        const vector<int32_t> large = signature(y);
        // Under "longest" there is a root for every context, and no other grammar has it, and so it is with white space
        // after which lexing starts there again; what is below a node they share (Walk::enter_shared).
        const LexState& s = lexer_.states[y];
        const bool is_own = lexer_.terms.longest && (s.root || s.hyps.front().context >= 0);
        const int32_t z = is_own ? -1 : loop >= 0 ? loop : bases_.like(y, large);
        const bool has_base = z >= 0 && profiles[profile(z)].base < 0 &&
                              !walk_.is_shorter_than_delta(y, lexer_.alike_length(y, z));
        if (has_base && delta_.compare(y, z, profiles[profile(z)].walked)) {
            p.base = profile(z);
            p.drop = lists.keep(delta_.drop);
            walk_.terms.clear();
            return walk_.collect();
        }
        WalkResult found;
        const bool has_key = !is_own && (!large.empty() || key_.is_of_shared_names(y)) && key_.spell(y, walk_.terms);
        if (!has_key) {
            walk_.terms.clear();
            walk_.spans.clear();
            found = walk_.from(y, large.empty());
            if (walk_.common) p.base = profile_of(walk_.common);
        } else {
            found = shared_walk(y);
        }
        p.walked = int32_t(found.work);
        if (!is_own && found.bytes() > kMinBase) bases_.add(large, y);
        return found;
    }
    int32_t finish(int32_t term, const std::shared_ptr<const Tails>& tails) {
        const auto got = finish_ids_.emplace(std::make_pair(term, tails.get()), int32_t(terminal_ends.size()));
        if (got.second) terminal_ends.push_back({term, tails, -1, nullptr});
        return got.first->second;
    }

    // The walk from a state with a large language, by way of the cache; key_ is set.
    WalkResult shared_walk(int32_t y) {
        const Terminals& t = lexer_.terms;
        const vector<int32_t> wide_key = key_.key;
        vector<int32_t> key = wide_key;
        for (int32_t u : walk_.terms)
            for (uint64_t w : t[u].follow.w) { key.push_back(int32_t(w)); key.push_back(int32_t(w >> 32)); }
        std::shared_ptr<const WalkResult> got = cache_.walks.find(key);
        const bool at_once = ends_anywhere(y);
        if (!got && at_once) {
            got = walk_under(key, y);
        } else if (!got) {
            const std::shared_ptr<const WalkResult> wide = wide_walk(y, wide_key);
            auto narrow = std::make_shared<WalkResult>(*wide);
            narrow->tails.clear();
            narrow->tail_terms.clear();
            for (size_t i = 0; i < wide->tails.size(); ++i) {
                GrowthLock::let_read();
                const int32_t term = wide->tail_terms[i];
                const auto tails = narrow_tails(*wide->tails[i], t[walk_.terms[term]].follow);
                if (!tails) continue;
                narrow->tails.push_back(tails);
                narrow->tail_terms.push_back(term);
            }
            if (is_worth_keeping(*narrow)) cache_.walks.put(key, narrow);
            got = narrow;
        }
        walk_.work += shared_.insert(VectorHash()(at_once ? key : wide_key)).second ? got->work : std::min(got->work, kSharedWork);
        walk_.spans = key_.spans_of(got->spans);
        return *got;
    }
    static bool is_worth_keeping(const WalkResult& r) { return r.bytes() > kMinCached || r.work >= kMinWalked; }
    std::shared_ptr<const WalkResult> wide_walk(int32_t y, const vector<int32_t>& key) {
        if (auto known = cache_.walks.find(key)) return known;
        struct Wide {
            bool& on;
            ~Wide() { on = false; }
        } wide{walk_.pieces.wide};
        wide.on = true;
        return walk_under(key, y);
    }
    // A walk that is kept under a key; key_ is set.
    std::shared_ptr<const WalkResult> walk_under(const vector<int32_t>& key, int32_t y) {
        walk_.spans.clear();
        auto fresh = std::make_shared<WalkResult>(walk_.from(y));
        fresh->spans = key_.ranks_of(walk_.spans);
        walk_.work -= fresh->work;  // counted by who asked: once a key, whatever the cache held before
        if (is_worth_keeping(*fresh)) cache_.walks.put(key, fresh);
        return fresh;
    }
    // Is some terminal a run of many bytes that may end behind each of them, as an identifier or free text?  With tails
    // of any bytes such a walk has one for nearly every place in every token, and with those that may follow a few.
    bool ends_anywhere(int32_t y) const {
        const Terminals& t = lexer_.terms;
        auto is_run = [&](int32_t c) { return t.accept[c] && bytes_to(t.row(c), c) >= kManyBytes / 2; };
        for (const Hypothesis& h : lexer_.states[y].hyps)
            for (int32_t c : h.main) {
                if (is_run(c)) return true;
                for (const Edge& e : t.row(c)) if (is_run(e.target)) return true;
            }
        return false;
    }
    std::shared_ptr<const Tails> narrow_tails(const Tails& from, const ByteBits& follow) {
        vector<int32_t> key{-2, int32_t(from.uid), int32_t(from.uid >> 32)};  // no pieces begin so
        for (const uint64_t w : follow.w) { key.push_back(int32_t(w)); key.push_back(int32_t(w >> 32)); }
        const bool large = from.slots.slot_tokens.size() >= Pieces::kManyWords;
        if (large) if (auto known = cache_.spelled.find(key)) return known;
        vector<Word> words;
        for (const Word& w : from.slots.words()) if (follow.has(w.text[0])) words.push_back(w);
        if (words.empty()) return nullptr;
        auto out = cache_.keep(Slots(words));
        if (large) cache_.spelled.put(key, out);
        return out;
    }

    // The components with large languages: those a step away from a loop on digits or more.  Empty: none.
    vector<int32_t> signature(int32_t y) {
        const Terminals& t = lexer_.terms;
        auto loops = [&](int32_t c) { return bytes_to(t.row(c), c) >= kDigits; };
        auto large = [&](int32_t c) {
            const Span<Edge> row = t.row(c);
            return loops(c) || std::any_of(row.begin(), row.end(), [&](const Edge& e) { return loops(e.target); });
        };
        vector<int32_t> out{lexer_.states[y].root};
        bool any = false;
        for (const Hypothesis& h : lexer_.states[y].hyps) {
            for (int32_t c : h.main)
                if (t.kind[c] >= 0 || large(c)) { out.push_back(t.kind[c] >= 0 ? t.kind[c] : c); any = true; }
            out.push_back(-1);
            out.insert(out.end(), h.watch.begin(), h.watch.end());
            out.push_back(-2);
            if (h.context < 0) continue;
            for (int32_t u : lexer_.contexts[h.context])
                if (t[u].start >= 0 && large(t[u].start)) { out.push_back(t[u].start); any = true; }
            for (int32_t c : h.main) if (t[t.term[c]].restarts_lexing) out.push_back(c);
        }
        if (!any) out.clear();
        return out;
    }

    // Tokens of which some prefix makes a watched component accept.
    std::shared_ptr<const vector<uint32_t>> vetoed(List watch) {
        std::shared_ptr<const vector<uint32_t>>& got = vetoed_[watch.vector()];
        if (got) return got;
        auto out = std::make_shared<vector<uint32_t>>(n_words_, 0u);
        veto(0, lexer_.watches.intern(watch), *out);
        return got = out;
    }
    void veto(int32_t node, int32_t watch, vector<uint32_t>& out) {
        for (int32_t c = trie_[node].first_child; c < trie_[node].end_child; ++c) {
            bool is_void = false;
            const int32_t rest = lexer_.step_watch(watch, trie_.byte[c], is_void);
            if (is_void) {
                for (const int32_t token : trie_.tokens(trie_[c].slot_lo, trie_[c].slot_hi)) set_bit(out, token);
            } else if (rest) {
                veto(c, rest, out);
            }
        }
    }
};

}  // namespace wfsa
