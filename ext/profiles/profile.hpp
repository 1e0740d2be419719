// Profiles: what every token does from a lexer state, without looking at the stack.
//
// A token either stays inside the terminals alive in the state, or it is p·q where p ends terminal t and q, not empty,
// is lexed from a fresh start on the stack after shifting t (p empty is a fresh configuration of its own, gss.hpp).
//
//   inside     tokens with a live state at their end: as ids, or as a bitmap when there are many
//   finishes   per terminal t that can end within a token: the trie of its tails q, with the tokens that leave each
//
// A tail is kept only if its first byte can begin something that may follow t, and (under "longest") if no longer
// candidate accepts within it.
//
// Deltas.  Most states are a small change of another one: inside a string whose excluded names have been left, inside
// an identifier that might still be a keyword.  Walking both states in lockstep and stopping where they meet visits
// only the difference.  A delta profile is its base without the tokens in `drop`, plus its own entries for those.
//
// Counts (lexer.hpp).  Whether a token that ends in a state with a span stays inside depends on the count k at its start:
// k + its units must lie in the span.  Such tokens are kept by span and number of units, so that the profile is one for
// all k.  The same holds for the units before a tail.  For nearly all k no token comes near a bound (`free`).
//
// Cost of a full walk: the trie nodes with a live state; subtrees on whose bytes the state loops are one step.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_set>

#include "lexer/lexer.hpp"

namespace wfsa {

// The tokens that stay inside.
struct Inside {
    // Tokens that end in states with one span (numbered locally), by how many units they have.
    struct Group {
        int32_t local_span, least;           // units of the first ones
        vector<int32_t> tokens, indptr;      // with `least + i` units: indptr[i] .. indptr[i+1]
        vector<uint32_t> bitmap;             // of all, when there are many
        vector<vector<uint32_t>> up_to;      // ... and of those with at most `least + i` units, while much is missing
        int32_t most() const { return least + int32_t(indptr.size()) - 2; }
    };
    vector<uint32_t> bitmap;    // when there are many tokens; else
    vector<int32_t> ids;        // both without the tokens of groups
    vector<Group> groups;
    bool empty() const { return bitmap.empty() && ids.empty() && groups.empty(); }
    size_t bytes() const {
        size_t n = 4 * (bitmap.size() + ids.size()) + 256;
        for (const Group& g : groups) n += 4 * (g.tokens.size() + g.indptr.size() + g.bitmap.size() * (1 + g.up_to.size()));
        return n;
    }
};

// What the tokens still spell after a terminal has ended.
struct Tails {
    Trie trie;                  // slot_tokens: the tokens that leave this tail
    int64_t uid;                // distinct for every Tails of a process
    vector<uint8_t> text;       // when it comes from a file and not from the vocabulary
    size_t bytes() const { return 80 * trie.slot_word.size() + 50 * size_t(trie.n_nodes()); }
};

// One universe of tails for several finishes: the union, and for every finish the slots of its tails.
struct SharedTails {
    Trie all;
    vector<uint8_t> text;  // of the tails, when they come from a file
    vector<std::shared_ptr<const vector<int32_t>>> slots;
};

// What a walk finds, as the cache keeps it.
struct WalkResult {
    std::shared_ptr<const Inside> inside;
    vector<std::shared_ptr<const Tails>> tails;
    vector<int32_t> tail_terms;     // of each, numbered in the order of the cache's key
    vector<vector<int32_t>> spans;  // of the groups: ranks of their bounds among those of the key
    int64_t work = 0;               // trie nodes walked
    size_t bytes() const {
        size_t n = inside->bytes();
        for (const auto& t : tails) n += t->bytes();
        return n;
    }
};

// Profiles of full walks, kept with the vocabulary: the body of a JSON string is walked once, not once per schema.
// The key names the state's components by what they mean (StateNames), so equal keys mean equal profiles.  What may
// follow a terminal differs from place to place; so the walk is kept with tails that begin with any byte (`wide`), and
// beside it what is left of the tails for each set of bytes.
class ProfileCache {
  public:
    std::shared_ptr<const WalkResult> find(const vector<int32_t>& key) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto got = map_.find(key);
        return got == map_.end() ? nullptr : got->second;
    }
    void put(const vector<int32_t>& key, std::shared_ptr<const WalkResult> value) {
        std::lock_guard<std::mutex> lock(mutex_);
        bytes_ += value->bytes() + 4 * key.size();
        if (bytes_ > kMaxBytes) { map_.clear(); bytes_ = value->bytes(); }
        map_.emplace(key, std::move(value));
    }
    int64_t next_uid() { return uid_++; }

  private:
    static constexpr size_t kMaxBytes = size_t(96) << 20;
    std::mutex mutex_;
    std::unordered_map<vector<int32_t>, std::shared_ptr<const WalkResult>, VectorHash> map_;
    size_t bytes_ = 0;
    std::atomic<int64_t> uid_{0};
};

struct TerminalEnd {
    int32_t term;
    std::shared_ptr<const Tails> tails;
    int32_t universe = -1;                                // of the parser DWA, and for every tail its slot there
    std::shared_ptr<const vector<int32_t>> slots;
    static constexpr int32_t kNone = -1;
    vector<int32_t> given;  // by slot of the universe: the only token that leaves this tail, or kNone, or below it the tail
    void index(size_t n, bool counted) {
        given.assign(n, kNone);
        const Trie& trie = tails->trie;
        for (size_t i = 0; i < slots->size(); ++i) {
            const int32_t k = trie.slot_indptr[i];
            given[size_t((*slots)[i])] = !counted && trie.slot_indptr[i + 1] == k + 1 ? trie.slot_tokens[k] : kNone - 1 - int32_t(i);
        }
    }
};

struct Profile {
    int32_t base = -1;              // delta: the profile this one is a change of
    vector<int32_t> drop;           // delta: tokens that fare differently
    std::shared_ptr<const vector<uint32_t>> vetoed;  // watched root: tokens that a longer candidate makes void
    std::shared_ptr<const Inside> inside;
    vector<int32_t> terminal_ends;       // numbers of TerminalEnd objects
    vector<int32_t> spans;          // of inside->groups, by their local number
    int32_t free_lo = 0, free_hi = Terminals::kNoMost;  // counts with which no bound is met, those of the base included
};

class Profiler {
  public:
    std::deque<Profile> profiles;
    std::deque<TerminalEnd> terminal_ends;

    Profiler(const Trie& trie, Lexer& lexer, ProfileCache& cache, int64_t n_words)
        : trie_(trie), lexer_(lexer), cache_(cache), n_words_(n_words) {}

    int64_t work() const { return work_; }  // trie nodes walked so far
    size_t n_profiles() const { return profiles.size(); }

    // The profile of a lexer state, computed on first use.
    int32_t profile(int32_t y) {
        if (lexer_.states[y].profile >= 0) return lexer_.states[y].profile;
        lexer_.expand(y);
        const vector<int32_t> large = signature(y);
        // Under "longest" there is a root for every context, none of them in another grammar; they share what is below a byte.
        const bool apart = lexer_.terms.longest && lexer_.states[y].root;
        Profile p;
        WalkResult found;
        int32_t z;
        if (lexer_.states[y].root && !lexer_.states[y].hyps[0].watch.empty()) {
            p.base = profile(lexer_.unwatched(y));
            p.vetoed = vetoed(lexer_.states[y].hyps[0].watch);
            found.inside = std::make_shared<Inside>();
        } else if (!apart && (z = base_state(y, large)) >= 0 && delta(y, z)) {
            p.base = profile(z);
            p.drop = drop_;
            terms_.clear();
            found = collect();
        } else {
            if (apart || large.empty() || !walk_key(y)) {
                terms_.clear();
                spans_.clear();
                found = walked(y);
            } else {
                found = shared_walk(y);
            }
            if (!apart && found.bytes() > 4096) examples_[large].push_back(y);
        }
        const vector<int32_t> terms = terms_;
        p.inside = found.inside;
        for (size_t i = 0; i < found.tails.size(); ++i) {
            const int32_t term = terms[found.tail_terms[i]];
            auto got = finish_ids_.emplace(std::make_pair(term, found.tails[i].get()), int32_t(terminal_ends.size()));
            if (got.second) terminal_ends.push_back({term, found.tails[i], -1, nullptr, {}});
            p.terminal_ends.push_back(got.first->second);
        }
        if (!p.inside->groups.empty()) p.spans = spans_;
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
            const vector<int32_t>& span = lexer_.spans[p.spans[g.local_span]];
            if (span.size() == 2) bound(span[0], span[1], g.least, g.most());
            else bound(1, 0, 0, 0);  // several ranges: always looked at
        }
        for (int32_t f : p.terminal_ends) {
            const Terminals& t = lexer_.terms;
            const int32_t term = terminal_ends[f].term;
            if (!t.counted[term]) continue;
            const vector<int32_t>& counts = terminal_ends[f].tails->trie.slot_counts;
            bound(t.least[term], t.most[term], counts.empty() ? 0 : *std::min_element(counts.begin(), counts.end()),
                  counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end()));
        }
    }

  private:
    const Trie& trie_;
    Lexer& lexer_;
    ProfileCache& cache_;
    int64_t n_words_;
    vector<int32_t> tokens_, drop_, key_;
    vector<int32_t> terms_;  // local number -> terminal
    vector<int32_t> spans_;  // local number -> span
    vector<int32_t> bounds_;  // of the counted terminals of the key, ascending
    struct Counted { int32_t local_span, count, token; };
    vector<Counted> counted_;
    // Tails of one terminal: those behind a cut at a node (by what can come first), those below a node that has been
    // read, or those of one slot.  Most profiles have the same pieces as others, and thus the same tails.
    enum PieceKind : int32_t { kCut, kBelow, kSlot };
    struct Piece { int32_t term, kind, at, watch, depth, count; };
    vector<Piece> pieces_;
    vector<Word> words_;
    std::unordered_map<vector<int32_t>, std::shared_ptr<const Tails>, VectorHash> tails_by_pieces_;
    std::map<std::pair<int32_t, const Tails*>, int32_t> finish_ids_;  // (terminal, tails) -> number
    struct Segment { vector<int32_t> tokens; vector<Piece> pieces; };
    std::unordered_map<uint64_t, Segment> segments_;  // (first node, lexer state) -> what a walk finds below

    struct Open { int32_t term, watch, depth, count; };  // a cut both states made on the current path; depth of the tail
    std::unordered_map<vector<int32_t>, vector<int32_t>, VectorHash> examples_;  // signature -> states walked in full
    std::unordered_map<vector<int32_t>, std::shared_ptr<const vector<uint32_t>>, VectorHash> vetoed_;
    std::unordered_map<uint64_t, ByteBits> first_bytes_[2];  // (terminal, watch set), by `wide_`
    int32_t budget_ = 0;
    bool wide_ = false;  // walking for the cache: tails may begin with any byte
    int64_t work_ = 0;
    std::unordered_set<size_t> shared_;  // hashes of the keys of shared walks

    static constexpr int32_t kDeltaBudget = 20000;    // trie nodes; beyond that a full walk is no dearer
    static constexpr int64_t kSharedWork = 1000;      // what it counts to take a walk that this engine has taken before
    static constexpr size_t kMinCached = 2048;        // bytes
    static constexpr size_t kMaxDrop = 3000;          // tokens; more would make every mask dearer
    static constexpr size_t kMaxClear = 512;          // tokens cleared one by one from a group's bitmap

    void begin() {
        tokens_.clear();
        drop_.clear();
        pieces_.clear();
        counted_.clear();
    }
    WalkResult walked(int32_t y) {
        begin();
        const int64_t before = work_;
        if (lexer_.terms.longest && !wide_) walk_segments(y);
        else walk(0, y, 0, 0);
        WalkResult out = collect();
        out.work = work_ - before;
        return out;
    }
    // The walk from a state with a large language, by way of the cache; key_ is set.
    WalkResult shared_walk(int32_t y) {
        const Terminals& t = lexer_.terms;
        const vector<int32_t> wide_key = key_;
        vector<int32_t> key = key_;
        for (int32_t u : terms_)
            for (uint64_t w : t.follow[u].w) { key.push_back(int32_t(w)); key.push_back(int32_t(w >> 32)); }
        std::shared_ptr<const WalkResult> got = cache_.find(key);
        if (!got) {
            std::shared_ptr<const WalkResult> wide = cache_.find(wide_key);
            if (!wide) {
                wide_ = true;
                auto fresh = std::make_shared<WalkResult>(walked(y));
                wide_ = false;
                fresh->spans = ranks_of_spans();
                work_ -= fresh->work;  // counted below: once a key, whatever the cache held before
                if (fresh->bytes() > kMinCached) cache_.put(wide_key, fresh);
                wide = fresh;
            }
            auto narrow = std::make_shared<WalkResult>(*wide);
            narrow->tails.clear();
            narrow->tail_terms.clear();
            for (size_t i = 0; i < wide->tails.size(); ++i)
                if (auto tails = narrow_tails(*wide->tails[i], t.follow[terms_[wide->tail_terms[i]]])) {
                    narrow->tails.push_back(tails);
                    narrow->tail_terms.push_back(wide->tail_terms[i]);
                }
            if (narrow->bytes() > kMinCached) cache_.put(key, narrow);
            got = narrow;
        }
        work_ += shared_.insert(VectorHash()(wide_key)).second ? got->work : kSharedWork;
        spans_ = spans_of(*got);
        return *got;
    }
    std::shared_ptr<const Tails> narrow_tails(const Tails& from, const ByteBits& follow) {
        const Trie& trie = from.trie;
        vector<Word> words;
        for (size_t s = 0; s < trie.slot_word.size(); ++s) {
            Word w = trie.slot_word[s];
            if (!follow.has(w.text[0])) continue;
            for (int32_t k = trie.slot_indptr[s]; k < trie.slot_indptr[s + 1]; ++k) {
                w.token = trie.slot_tokens[k];
                w.count = trie.slot_counts.empty() ? 0 : trie.slot_counts[k];
                words.push_back(w);
            }
        }
        return words.empty() ? nullptr : std::make_shared<Tails>(Tails{Trie(words), cache_.next_uid(), {}});
    }

    WalkResult collect() {
        auto inside = std::make_shared<Inside>();
        if (int64_t(tokens_.size()) > n_words_ / 4) {
            inside->bitmap.assign(size_t(n_words_), 0u);
            for (int32_t t : tokens_) inside->bitmap[size_t(t) >> 5] |= 1u << (t & 31);
        } else {
            inside->ids = tokens_;
        }
        collect_groups(*inside);
        WalkResult out;
        out.inside = inside;
        auto by_term = [](const Piece& a, const Piece& b) { return a.term < b.term; };
        if (!std::is_sorted(pieces_.begin(), pieces_.end(), by_term)) std::stable_sort(pieces_.begin(), pieces_.end(), by_term);
        vector<int32_t> key;
        for (size_t i = 0, end; i < pieces_.size(); i = end) {
            const int32_t term = pieces_[i].term;
            key = {term, wide_};
            for (end = i; end < pieces_.size() && pieces_[end].term == term; ++end)
                for (int32_t x : {pieces_[end].kind, pieces_[end].at, pieces_[end].watch, pieces_[end].depth, pieces_[end].count}) key.push_back(x);
            auto got = tails_by_pieces_.emplace(key, nullptr);
            if (got.second) {
                words_.clear();
                for (size_t k = i; k < end; ++k) spell(pieces_[k]);
                if (!words_.empty()) got.first->second = std::make_shared<Tails>(Tails{Trie(words_), cache_.next_uid(), {}});
            }
            if (!got.first->second) continue;
            out.tails.push_back(got.first->second);
            out.tail_terms.push_back(local(terms_, term));
        }
        return out;
    }

    void collect_groups(Inside& out) {
        int32_t n_spans = 0;
        for (const Counted& c : counted_) n_spans = std::max(n_spans, c.local_span + 1);
        for (int32_t span = 0; span < n_spans; ++span) {
            vector<int32_t> at;  // by units, first how many tokens, then where the next one goes
            for (const Counted& c : counted_) {
                if (c.local_span != span) continue;
                if (c.count >= int32_t(at.size())) at.resize(size_t(c.count) + 1, 0);
                ++at[size_t(c.count)];
            }
            vector<int32_t> counts;
            for (size_t n = 0; n < at.size(); ++n) {
                const int32_t here = int32_t(counts.size());
                counts.insert(counts.end(), size_t(at[n]), int32_t(n));
                at[n] = here;
            }
            if (counts.empty()) continue;
            vector<int32_t> tokens(counts.size());
            for (const Counted& c : counted_) if (c.local_span == span) tokens[size_t(at[size_t(c.count)]++)] = c.token;
            out.groups.push_back(group(span, std::move(tokens), counts));
        }
    }
    int32_t local(vector<int32_t>& known, int32_t x) {
        const auto at = std::find(known.begin(), known.end(), x);
        if (at == known.end()) { known.push_back(x); return int32_t(known.size()) - 1; }
        return int32_t(at - known.begin());
    }

  public:
    // Tokens with ascending counts, as a group.
    Inside::Group group(int32_t local_span, vector<int32_t> tokens, const vector<int32_t>& counts) const {
        Inside::Group g{local_span, counts.front(), std::move(tokens), {}, {}, {}};
        for (size_t k = 0; k < counts.size(); ++k)
            while (int32_t(g.indptr.size()) <= counts[k] - g.least) g.indptr.push_back(int32_t(k));
        g.indptr.push_back(int32_t(g.tokens.size()));
        if (int64_t(g.tokens.size()) <= n_words_ / 4) return g;
        g.bitmap.assign(size_t(n_words_), 0u);
        for (size_t i = 0; i + 1 < g.indptr.size(); ++i) {
            for (int32_t k = g.indptr[i]; k < g.indptr[i + 1]; ++k) g.bitmap[size_t(g.tokens[size_t(k)]) >> 5] |= 1u << (g.tokens[size_t(k)] & 31);
            if (g.tokens.size() - size_t(g.indptr[i + 1]) > kMaxClear) g.up_to.push_back(g.bitmap);
        }
        return g;
    }

  private:
    // Spell out what decides the walk from y into key_: the components by the names of their states, with their terminals
    // numbered locally in terms_.  False if the walk cannot be shared.
    bool walk_key(int32_t y) {
        const Terminals& t = lexer_.terms;
        const LexState& s = lexer_.states[y];
        key_.assign(1, t.longest | s.root << 1);
        terms_.clear();
        spans_.clear();
        auto put = [&](int64_t x) { key_.push_back(int32_t(x)); key_.push_back(int32_t(x >> 32)); };
        vector<int32_t> counted;
        auto put_term = [&](int32_t u) {
            const size_t before = terms_.size();
            key_.push_back(local(terms_, u));
            if (terms_.size() == before) return;
            if (t.longest) key_.push_back(t.rank[u]);
            key_.push_back(t.ignore[u] | t.restarts_lexing[u] << 1 | t.counted[u] << 2);
            if (t.counted[u]) counted.push_back(u);
        };
        auto put_components = [&](const vector<int32_t>& cs) {
            key_.push_back(int32_t(cs.size()));
            for (int32_t c : cs) { put(t.name[c]); put_term(t.term[c]); if (t.name[c] < 0) return false; }
            return true;
        };
        for (const Hypothesis& h : s.hyps) {
            if (!put_components(h.main) || !put_components(h.watch)) return false;
            key_.push_back(-1);
            if (h.context < 0) continue;
            for (int32_t u : lexer_.contexts[h.context]) {
                if (t.start[u] < 0) continue;
                put(t.name[t.start[u]]);
                put_term(u);
            }
        }
        bounds_.assign(1, 0);  // which spans are equal depends on the order of the bounds only
        for (int32_t u : counted) { bounds_.push_back(t.least[u]); bounds_.push_back(t.most[u]); }
        std::sort(bounds_.begin(), bounds_.end());
        bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
        for (int32_t u : counted) { key_.push_back(rank_of(t.least[u])); key_.push_back(rank_of(t.most[u])); }
        return true;
    }

    int32_t rank_of(int32_t bound) const {
        return int32_t(std::lower_bound(bounds_.begin(), bounds_.end(), bound) - bounds_.begin());
    }
    vector<vector<int32_t>> ranks_of_spans() const {
        vector<vector<int32_t>> out;
        for (int32_t span : spans_) {
            out.push_back(lexer_.spans[span]);
            for (int32_t& bound : out.back()) bound = rank_of(bound);
        }
        return out;
    }
    vector<int32_t> spans_of(const WalkResult& r) {
        vector<int32_t> out;
        for (vector<int32_t> span : r.spans) {
            for (int32_t& bound : span) bound = bounds_[size_t(bound)];
            out.push_back(lexer_.spans.intern(span));
        }
        return out;
    }

    // A state to describe y as a change of: the successor that most bytes lead to, if it is a loop, or a state walked
    // before that holds the same large components.
    int32_t base_state(int32_t y, const vector<int32_t>& key) {
        const LexState& s = lexer_.states[y];
        int32_t best = -1, most = 0, total = 0;
        for (const Edge& e : s.edges) {
            int32_t weight = 0;
            for (const Edge& f : s.edges) if (f.target == e.target) weight += f.hi - f.lo + 1;
            total += e.hi - e.lo + 1;
            if (weight > most) { most = weight; best = e.target; }
        }
        if (best >= 0 && best != y && total >= 32 && most * 2 >= total) {
            lexer_.expand(best);
            const LexState& z = lexer_.states[best];
            int32_t loop_bytes = 0;
            for (const Edge& e : z.edges) if (e.target == best) loop_bytes += e.hi - e.lo + 1;
            if (loop_bytes >= 16 && !z.boundary && differing_bytes(s, z) <= 48) return best;
        }
        auto got = examples_.find(key);
        if (key.empty() || got == examples_.end()) return -1;
        int32_t nearest = -1;
        size_t least = SIZE_MAX;
        for (int32_t z : got->second) {
            const size_t d = distance(y, z);
            if (d < least) { least = d; nearest = z; }
        }
        return nearest;
    }
    static int32_t differing_bytes(const LexState& y, const LexState& z) {
        int32_t same = 0, any = 0;
        for (const Edge& e : y.edges) any += e.hi - e.lo + 1;
        for (const Edge& f : z.edges) any += f.hi - f.lo + 1;
        size_t b = 0;
        for (const Edge& e : y.edges) {
            while (b < z.edges.size() && z.edges[b].hi < e.lo) ++b;
            for (size_t k = b; k < z.edges.size() && z.edges[k].lo <= e.hi; ++k) {
                const int32_t n = std::min(e.hi, z.edges[k].hi) - std::max(e.lo, z.edges[k].lo) + 1;
                any -= n;
                if (e.target == z.edges[k].target && e.count == z.edges[k].count) same += n;
            }
        }
        return any - same;
    }
    // How many terminals and components only one of the two has.
    size_t distance(int32_t y, int32_t z) {
        const vector<Hypothesis>&a = lexer_.states[y].hyps, &b = lexer_.states[z].hyps;
        size_t out = 0;
        for (size_t h = 0; h < a.size() && h < b.size(); ++h) {
            vector<int32_t> d;
            std::set_symmetric_difference(a[h].main.begin(), a[h].main.end(), b[h].main.begin(), b[h].main.end(), std::back_inserter(d));
            if (a[h].context >= 0 && b[h].context >= 0) {
                const vector<int32_t>&c = lexer_.contexts[a[h].context], &e = lexer_.contexts[b[h].context];
                std::set_symmetric_difference(c.begin(), c.end(), e.begin(), e.end(), std::back_inserter(d));
            }
            out += d.size();
        }
        return out;
    }

    // The components with large languages: those a step away from a state that loops on many bytes.  Empty: none.
    vector<int32_t> signature(int32_t y) {
        const Terminals& t = lexer_.terms;
        auto loops = [&](int32_t c) {
            int32_t n = 0;
            for (int32_t e = t.indptr[c]; e < t.indptr[c + 1]; ++e)
                if (t.edges[e].target == c) n += t.edges[e].hi - t.edges[e].lo + 1;
            return n >= 10;
        };
        auto large = [&](int32_t c) {
            if (loops(c)) return true;
            for (int32_t e = t.indptr[c]; e < t.indptr[c + 1]; ++e) if (loops(t.edges[e].target)) return true;
            return false;
        };
        vector<int32_t> out{lexer_.states[y].root};
        bool any = false;
        for (const Hypothesis& h : lexer_.states[y].hyps) {
            for (int32_t c : h.main)
                if (t.place[c] >= 0 || large(c)) { out.push_back(t.place[c] >= 0 ? t.place[c] : c); any = true; }
            out.push_back(-1);
            out.insert(out.end(), h.watch.begin(), h.watch.end());
            out.push_back(-2);
            if (h.context < 0) continue;
            for (int32_t u : lexer_.contexts[h.context])
                if (t.start[u] >= 0 && large(t.start[u])) { out.push_back(t.start[u]); any = true; }
            for (int32_t c : h.main) if (t.restarts_lexing[t.term[c]]) out.push_back(c);
        }
        if (!any) out.clear();
        return out;
    }

    // Tokens of which some prefix makes a watched component accept.
    std::shared_ptr<const vector<uint32_t>> vetoed(const vector<int32_t>& watch) {
        auto& got = vetoed_[watch];
        if (got) return got;
        auto out = std::make_shared<vector<uint32_t>>(size_t(n_words_), 0u);
        veto(0, lexer_.watches.intern(watch), *out);
        return got = out;
    }
    void veto(int32_t node, int32_t watch, vector<uint32_t>& out) {
        for (int32_t c = trie_.first_child[node]; c < trie_.first_child[node + 1]; ++c) {
            bool is_void = false;
            const int32_t rest = lexer_.step_watch(watch, trie_.byte[c], is_void);
            if (is_void) {
                for (int32_t k = trie_.slot_indptr[trie_.slot_lo[c]]; k < trie_.slot_indptr[trie_.slot_hi[c]]; ++k)
                    out[size_t(trie_.slot_tokens[k]) >> 5] |= 1u << (trie_.slot_tokens[k] & 31);
            } else if (rest) {
                veto(c, rest, out);
            }
        }
    }

    void add_tokens(int32_t slot) {
        for (int32_t k = trie_.slot_indptr[slot]; k < trie_.slot_indptr[slot + 1]; ++k) tokens_.push_back(trie_.slot_tokens[k]);
    }

    // Children of `node` whose byte has an edge: visit(child, edge).
    template <class Visit> void children(int32_t node, const LexState& s, Visit visit) {
        int32_t c = trie_.first_child[node], end = trie_.first_child[node + 1];
        const uint8_t* bytes = trie_.byte.data();
        for (const Edge& e : s.edges) {
            if (end - c > 8) c = int32_t(std::lower_bound(bytes + c, bytes + end, e.lo) - bytes);
            else while (c < end && bytes[c] < e.lo) ++c;
            for (; c < end && bytes[c] <= e.hi; ++c) visit(c, e);
            if (c >= end) return;
        }
    }

    void walk(int32_t node, int32_t y, int32_t depth, int32_t count) {
        lexer_.expand(y);
        children(node, lexer_.states[y], [&](int32_t c, const Edge& e) { enter(c, e, depth, count); });
    }
    void enter(int32_t c, const Edge& e, int32_t depth, int32_t count) {
        ++work_;
        LexState& t = lexer_.states[e.target];
        const int32_t after = lexer_.count_after(t, count, e);
        if (trie_.own[c]) inside(trie_.slot_lo[c], t, after);
        if (trie_.slot_hi[c] - trie_.slot_lo[c] == trie_.own[c]) return;
        lexer_.expand(e.target);
        if (lexer_.decided(e.target, trie_.below[c]) && !(wide_ && cuts_wide(t, trie_.below[c]))) {
            const bool counts = t.span >= 0 && trie_.below[c].intersects(t.units);
            for (int32_t s = trie_.slot_lo[c] + trie_.own[c]; s < trie_.slot_hi[c]; ++s)
                inside(s, t, after + (counts ? trie_.slot_word[s].length - depth - 1 : 0));
            return;
        }
        for (const Accept& a : t.accepts) add_cut(a, c, depth + 1, after);
        walk(c, e.target, depth + 1, after);
    }
    // "longest" (nothing is counted): what is below a first byte depends on the state behind it, which many roots have.
    void walk_segments(int32_t y) {
        lexer_.expand(y);
        children(0, lexer_.states[y], [&](int32_t c, const Edge& e) {
            auto got = segments_.emplace(uint64_t(uint32_t(c)) << 32 | uint32_t(e.target), Segment{});
            Segment& below = got.first->second;
            const size_t n = tokens_.size(), m = pieces_.size();
            if (got.second) {
                enter(c, e, 0, 0);
                below.tokens.assign(tokens_.begin() + int64_t(n), tokens_.end());
                below.pieces.assign(pieces_.begin() + int64_t(m), pieces_.end());
                return;
            }
            tokens_.insert(tokens_.end(), below.tokens.begin(), below.tokens.end());
            pieces_.insert(pieces_.end(), below.pieces.begin(), below.pieces.end());
        });
    }
    // The tokens of a slot end in state t.
    void inside(int32_t slot, const LexState& t, int32_t count) {
        if (t.span < 0) return add_tokens(slot);
        const int32_t span = local(spans_, t.span);
        for (int32_t k = trie_.slot_indptr[slot]; k < trie_.slot_indptr[slot + 1]; ++k)
            counted_.push_back({span, count, trie_.slot_tokens[k]});
    }

    void add_piece(int32_t term, PieceKind kind, int32_t at, int32_t watch, int32_t depth, int32_t count) {
        pieces_.push_back({term, kind, at, watch, depth, lexer_.terms.counted[term] ? count : 0});
    }
    void add_cut(const Accept& a, int32_t node, int32_t depth, int32_t count) {
        const ByteBits& first = first_bytes(a);
        for (int32_t c = trie_.first_child[node]; c < trie_.first_child[node + 1]; ++c)
            if (first.has(trie_.byte[c])) return add_piece(a.term, kCut, node, a.watch, depth, count);
    }
    // The bytes that a tail can begin with, by what can follow and by what is watched.
    const ByteBits& first_bytes(const Accept& a) {
        auto got = first_bytes_[wide_].emplace(uint64_t(uint32_t(a.term)) << 32 | uint32_t(a.watch), ByteBits{});
        if (got.second) got.first->second = lexer_.first_bytes(a, wide_);
        return got.first->second;
    }
    bool cuts_wide(const LexState& y, const ByteBits& below) {
        for (const Accept& a : y.accepts) if (first_bytes(a).intersects(below)) return true;
        return false;
    }
    // The tails of a piece, into words_.
    void spell(const Piece& p) {
        if (p.kind == kSlot) return spell_slot(p.at, p.depth, p.count);
        if (p.kind == kBelow) return spell_below(p.at, p.watch, p.depth, p.count);
        const ByteBits& first = first_bytes({p.term, p.watch});
        for (int32_t c = trie_.first_child[p.at]; c < trie_.first_child[p.at + 1]; ++c)
            if (first.has(trie_.byte[c])) spell_child(c, p.watch, p.depth, p.count);
    }
    void spell_child(int32_t node, int32_t watch, int32_t depth, int32_t count) {
        if (watch) {
            bool is_void = false;
            watch = lexer_.step_watch(watch, trie_.byte[node], is_void);
            if (is_void) return;
        }
        spell_below(node, watch, depth, count);
    }
    void spell_below(int32_t node, int32_t watch, int32_t depth, int32_t count) {  // node's byte has been read
        if (!watch) {
            for (int32_t s = trie_.slot_lo[node]; s < trie_.slot_hi[node]; ++s) spell_slot(s, depth, count);
            return;
        }
        if (trie_.own[node]) spell_slot(trie_.slot_lo[node], depth, count);
        for (int32_t c = trie_.first_child[node]; c < trie_.first_child[node + 1]; ++c) spell_child(c, watch, depth, count);
    }
    void spell_slot(int32_t slot, int32_t depth, int32_t count) {
        const Word& w = trie_.slot_word[slot];
        for (int32_t k = trie_.slot_indptr[slot]; k < trie_.slot_indptr[slot + 1]; ++k)
            words_.push_back({w.text + depth, w.length - depth, trie_.slot_tokens[k], count});
    }

    // Lockstep walk of y against z.  Tokens that may fare differently go to drop_, with y's own outcome beside.  False
    // when the two differ in so much that a walk of y is no dearer.
    bool delta(int32_t y, int32_t z) {
        if (profiles[profile(z)].base >= 0) return false;
        begin();
        budget_ = kDeltaBudget;
        spans_.clear();
        difference(0, y, z, 0, 0, {});
        return budget_ > 0 && drop_.size() <= kMaxDrop;
    }
    // -1: dead.  `open`: cuts that both made above, with their watch set after the bytes read since.
    void difference(int32_t node, int32_t y, int32_t z, int32_t depth, int32_t count, const vector<Open>& open) {
        if (y >= 0) lexer_.expand(y);
        if (z >= 0) lexer_.expand(z);
        static const LexState dead;
        const vector<Edge>&in_y = (y < 0 ? dead : lexer_.states[y]).edges, &in_z = (z < 0 ? dead : lexer_.states[z]).edges;
        const uint8_t* bytes = trie_.byte.data();
        int32_t c = trie_.first_child[node];
        const int32_t end = trie_.first_child[node + 1];
        size_t a = 0, b = 0;
        for (int32_t at = 0; at < 256 && c < end;) {  // the bytes on which the two go to different states, range by range
            while (a < in_y.size() && in_y[a].hi < at) ++a;
            while (b < in_z.size() && in_z[b].hi < at) ++b;
            const Edge* y2 = a < in_y.size() && in_y[a].lo <= at ? &in_y[a] : nullptr;
            const Edge* z2 = b < in_z.size() && in_z[b].lo <= at ? &in_z[b] : nullptr;
            int32_t stop = 255;  // last byte of the range
            if (a < in_y.size()) stop = std::min<int32_t>(stop, y2 ? in_y[a].hi : in_y[a].lo - 1);
            if (b < in_z.size()) stop = std::min<int32_t>(stop, z2 ? in_z[b].hi : in_z[b].lo - 1);
            if (!y2 || !z2 ? y2 != z2 : y2->target != z2->target || y2->count != z2->count) {
                c = int32_t(std::lower_bound(bytes + c, bytes + end, uint8_t(at)) - bytes);
                for (; c < end && bytes[c] <= stop; ++c) {
                    if (--budget_ <= 0 || drop_.size() > kMaxDrop) return;
                    differ(c, y2, z2, depth, count, open);
                }
            }
            at = stop + 1;
        }
    }
    void differ(int32_t c, const Edge* to_y, const Edge* to_z, int32_t depth, int32_t count, const vector<Open>& open) {
        static const LexState dead;
        const uint8_t b = trie_.byte[c];
        vector<Open> after;
        for (Open o : open) {
            bool is_void = o.depth == depth && !lexer_.terms.follow[o.term].has(b);
            if (o.watch) o.watch = lexer_.step_watch(o.watch, b, is_void);
            if (!is_void) after.push_back(o);
        }
        const int32_t y2 = to_y ? to_y->target : -1, z2 = to_z ? to_z->target : -1;
        const LexState &in_y = y2 < 0 ? dead : lexer_.states[y2], &in_z = z2 < 0 ? dead : lexer_.states[z2];
        const int32_t now = to_y ? lexer_.count_after(in_y, count, *to_y) : count;
        const bool counts_alike = !to_y || !to_z || (in_y.span == in_z.span && now == lexer_.count_after(in_z, count, *to_z));
        if (!(in_y.accepts == in_z.accepts) || !counts_alike) return everything(c, y2, depth + 1, now, after);
        if (trie_.own[c] && (y2 < 0 || z2 < 0)) {  // otherwise the token stays inside, either way
            drop_tokens(trie_.slot_lo[c]);
            if (y2 >= 0) inside(trie_.slot_lo[c], in_y, now);
            for (const Open& o : after) add_piece(o.term, kSlot, trie_.slot_lo[c], 0, o.depth, o.count);
        }
        if (trie_.slot_hi[c] - trie_.slot_lo[c] == trie_.own[c]) return;
        if (y2 >= 0 && z2 >= 0 && lexer_.alike(y2, z2, trie_.height[c])) return;
        for (const Accept& a : in_y.accepts) after.push_back({a.term, a.watch, depth + 1, now});
        difference(c, y2, z2, depth + 1, now, after);
    }
    // The two disagree on a cut here: everything below differs.
    void everything(int32_t node, int32_t y, int32_t depth, int32_t count, const vector<Open>& open) {
        budget_ -= trie_.slot_hi[node] - trie_.slot_lo[node];
        for (int32_t s = trie_.slot_lo[node]; s < trie_.slot_hi[node]; ++s) drop_tokens(s);
        for (const Open& o : open) add_piece(o.term, kBelow, node, o.watch, o.depth, o.count);
        if (y < 0) return;
        if (trie_.own[node]) inside(trie_.slot_lo[node], lexer_.states[y], count);
        lexer_.expand(y);
        for (const Accept& a : lexer_.states[y].accepts) add_cut(a, node, depth, count);
        walk(node, y, depth, count);
    }
    void drop_tokens(int32_t slot) {
        for (int32_t k = trie_.slot_indptr[slot]; k < trie_.slot_indptr[slot + 1]; ++k) drop_.push_back(trie_.slot_tokens[k]);
    }
};

}  // namespace wfsa
