// The constraint's machine: tables, caches that fill on demand, and the three operations of a decoding loop.
//
//   step    one byte: every configuration moves in its lexer state
//   cut     terminals that are complete are shifted, giving fresh configurations (inside a token only if the next byte
//           can begin what follows)
//   mask    per configuration: the profile of its lexer state, plus the finishes whose tails the stack takes
//
// Tables are either complete ("ahead": `frozen`, read without locks) or grow on first use ("lazy"): an operation runs
// under a shared lock, throws Miss when it needs something new, and runs again under the exclusive lock.  Operations
// write only to their own arena until they succeed, so running one twice is harmless.
#pragma once
#include <map>
#include <mutex>
#include <shared_mutex>

#include "json/distinct.hpp"
#include "parser/least_to_end.hpp"
#include "runtime/mask_cache.hpp"
#include "tails/joint_tails.hpp"

namespace wfsa {

// What the vocabulary contributes; shared by all constraints over it.
struct Vocabulary {
    vector<uint8_t> blob;
    vector<int64_t> offsets;
    vector<uint8_t> special;   // per token: no text
    vector<int32_t> eos;
    int64_t size = 0;          // width of a mask in tokens
    Trie trie;
    ProfileCache profiles;
    std::mutex universes_mutex;
    std::map<vector<int64_t>, std::shared_ptr<const SharedTails>> universes;  // by the tails it unites

    // How tokens stand to JSON's strings and arrays; bits by token.
    struct Quotes {
        vector<uint32_t> without, inside, openers;  // no quote; none that ends a string; outside strings, nothing that ends a value
        vector<int32_t> brackets;           // tokens with an opening bracket
    };
    const Quotes& quotes() {
        std::call_once(quotes_once_, [&] {
            quotes_.without.assign(size_t(n_words()), 0);
            quotes_.inside = quotes_.without;
            quotes_.openers.assign(size_t(n_words()), 0);
            for (int32_t t = 0; t < int32_t(n_tokens()); ++t) {
                if (special[size_t(t)]) continue;
                const uint8_t *p = blob.data() + offsets[size_t(t)], *end = blob.data() + offsets[size_t(t) + 1];
                const bool quote = std::find(p, end, '"') != end;
                if (!quote) quotes_.without[size_t(t) >> 5] |= 1u << (t & 31);
                if (quote ? *p == '"' && std::find(p + 1, end, '"') == end && std::find(p, end, '\\') == end
                          : std::none_of(p, end, [](uint8_t c) { return c <= ' ' || std::strchr("[]{},:", c); }))
                    quotes_.openers[size_t(t) >> 5] |= 1u << (t & 31);
                bool escaped = false, ends = false;
                for (const uint8_t* x = p; x < end; ++x) {
                    ends |= *x == '"' && !escaped;
                    escaped = *x == '\\' && !escaped;
                }
                if (!ends) quotes_.inside[size_t(t) >> 5] |= 1u << (t & 31);
                if (std::find(p, end, '[') != end) quotes_.brackets.push_back(t);
            }
        });
        return quotes_;
    }
    int64_t n_tokens() const { return int64_t(offsets.size()) - 1; }
    int64_t n_words() const { return (size + 31) / 32; }
    void build() {
        vector<Word> words;
        for (int64_t i = 0; i < n_tokens(); ++i)
            if (!special[i] && offsets[i + 1] > offsets[i])
                words.push_back({blob.data() + offsets[i], int32_t(offsets[i + 1] - offsets[i]), int32_t(i)});
        trie = Trie(words);
    }

  private:
    std::once_flag quotes_once_;
    Quotes quotes_;
};

class Engine {
  public:
    std::shared_ptr<Vocabulary> vocab;
    NormalGrammar grammar;
    LrTables lr;
    Lexer lexer;
    Profiler profiler;
    std::deque<Universe> universes;
    Interner weights;                                         // sets of slots of a universe
    ParserDwa dwa;                                            // "cfg"
    JointTails joint;                                         // "longest"
    int32_t end_term = -1;
    vector<vector<int32_t>> token_ids;                        // terminal -> exact token ids (empty: byte terminal)
    std::unordered_map<int32_t, vector<int32_t>> token_terms; // token id -> terminals
    vector<int32_t> state_context;                            // "cfg": LR state -> context
    vector<int32_t> set_context;                              // ... of those with a set of members, -1: not known yet
    vector<int32_t> ignored;
    vector<uint8_t> distinct;  // by symbol: reductions that void a stack if the item that ends repeats (distinct.hpp); or empty
    bool may_run_out = false;  // may there be arrays whose items have finitely many values to differ in?
    bool frozen = false;
    bool use_parsing = false;  // tests: decide tails by parsing them, the slow twin of the parser DWA
    mutable std::shared_mutex mutex;

    explicit Engine(std::shared_ptr<Vocabulary> v)
        : vocab(std::move(v)), profiler(vocab->trie, lexer, vocab->profiles, vocab->n_words()),
          dwa(lr, lexer, universes, weights), joint(lr, lexer, universes, weights) {
        weights({});
        dwa.context_of = [this](int32_t state) { return context_of(&state, 1); };
        joint.context_of = [this](const int32_t* states, int32_t n) { return context_of(states, n); };
    }
    Engine(const Engine&) = delete;

    // One more terminal behind the grammar's own: the end of the text, which the vocabulary's end tokens stand for.
    void add_end() {
        end_term = int32_t(token_ids.size());
        lexer.terms.add(Dfa(), {}, Counters(), 0, false);
        token_ids.push_back(vocab->eos);
    }
    // After grammar and terminals are set: LR tables, contexts, follow sets.
    void build(int64_t max_states) {
        lr = Lr0Builder(grammar, max_states).build();
        distinct = grammar.distinct;
        find_exhaustible();
        index_tokens();
        follow_bytes();
        if (longest()) follow_terminals();
        else {
            vector<int32_t> contexts(lr.n_states());
            for (int32_t s = 0; s < lr.n_states(); ++s) {
                poll();
                contexts[s] = context_of(&s, 1);
            }
            state_context = std::move(contexts);
            attach_unordered(grammar, lr);
        }
    }
    void find_exhaustible() { may_run_out = std::find(distinct.begin(), distinct.end(), 2) != distinct.end(); }
    bool longest() const { return lexer.terms.longest; }
    // For the shortest end of a text; made when it is first asked for.
    const LeastToEnd& least_to_end() {
        std::call_once(least_to_end_once_, [&] { least_to_end_ = std::make_unique<LeastToEnd>(lr, lexer, end_term, int32_t(grammar.n_symbols)); });
        return *least_to_end_;
    }
    void index_tokens() {
        for (int32_t t = 0; t < int32_t(token_ids.size()); ++t)
            for (int32_t id : token_ids[t]) token_terms[id].push_back(t);
    }

    int32_t context_of(const int32_t* states, int32_t n) {
        if (!longest() && !state_context.empty() && known_context(states[0]) >= 0) return known_context(states[0]);
        vector<int32_t> terms;
        terms_of(states, n, terms);
        const int32_t context = lexer.contexts(terms);
        if (longest()) context_by_states_.emplace(vector<int32_t>(states, states + n), context);
        else if (states[0] >= lr.unordered.first) {
            const size_t k = size_t(states[0] - lr.unordered.first);
            if (set_context.size() <= k) set_context.resize(k + 1, -1);
            set_context[k] = context;
        }
        return context;
    }
    // "cfg": the context of an LR state; -1 if it was not asked for before.
    int32_t known_context(int32_t state) const {
        if (state < lr.unordered.first) return state_context[state];
        const size_t k = size_t(state - lr.unordered.first);
        return k < set_context.size() ? set_context[k] : -1;
    }

    // --- operations; `grow` says whether tables may be extended ---------------------------------------------

    const Snapshot* start(Arena& arena, bool grow) {
        Scratch& s = scratch();
        s.grow = grow;
        Node* bottom = Closure::make(arena, 0, nullptr, 0);
        s.out.clear();
        const Node** slot = static_cast<const Node**>(arena.bytes(sizeof(Node*)));
        *slot = bottom;
        int32_t zero = 0;
        s.out.push_back({slot, 1, root_of(&zero, 1, 0, s)});
        return snapshot(nullptr, s.out, arena);
    }

    // The snapshot after these bytes, or nullptr.  They have to live as long as it does.
    // `scan` and `text`, if items must differ: the scanner after the text so far, and that text; both move along.
    const Snapshot* commit_bytes(const Snapshot* from, const uint8_t* p, size_t n, Arena& arena, bool grow, JsonScan* scan = nullptr,
                                 std::string* text = nullptr) {
        if (n == 0) return from;
        Scratch& s = scratch();
        s.grow = grow;
        s.scan = nullptr;
        s.in.assign(from->configs, from->configs + from->n);
        for (size_t i = 0; i < n; ++i) {
            step(s.in, p[i], s.out, arena, s);
            if (s.out.empty()) return nullptr;
            if (scan) {
                text->push_back(char(p[i]));
                scan->push(*text, arena);
                s.scan = scan;
                s.text = text;
                s.repeats = -1;
            }
            cut(s.out, i + 1 < n ? p[i + 1] : -1, arena, s);
            s.scan = nullptr;
            if (i + 1 == n) drop_spent(s.out, s);
            if (s.out.empty()) return nullptr;
            s.in.swap(s.out);
        }
        Snapshot* out = snapshot(from, s.in, arena);
        out->text = p;
        out->n_text = int64_t(n);
        return out;
    }

    const Snapshot* commit_token(const Snapshot* from, int32_t token, Arena& arena, bool grow, JsonScan* scan = nullptr,
                                 std::string* text = nullptr) {
        if (from->finished || token < 0 || token >= vocab->n_tokens()) return nullptr;
        const Snapshot* by_text = nullptr;
        const int64_t lo = vocab->offsets[token], hi = vocab->offsets[token + 1];
        if (!vocab->special[token] && hi > lo)
            by_text = commit_bytes(from, vocab->blob.data() + lo, size_t(hi - lo), arena, grow, scan, text);
        auto terms = token_terms.find(token);
        if (terms == token_terms.end()) return by_text;
        Scratch& s = scratch();
        s.grow = grow;
        s.scan = nullptr;
        s.out.clear();
        if (by_text) s.out.assign(by_text->configs, by_text->configs + by_text->n);
        bool ended = false;
        for (int32_t t : terms->second) ended |= shift_token(from, t, arena, s);
        if (s.out.empty() && !ended) return nullptr;
        merge(s.out, arena, s);
        Snapshot* out = snapshot(from, s.out, arena);
        out->finished = ended;
        if (by_text) out->text = by_text->text, out->n_text = by_text->n_text;
        return out;
    }

    // Write the allowed tokens to `mask`; n_words may be more than the vocabulary needs.
    void mask(const Snapshot* at, uint32_t* mask, int64_t n_words, bool grow) {
        Scratch& s = scratch();
        s.grow = grow;
        const int64_t n_own = vocab->n_words();
        if (at->finished || at->n == 0) { std::memset(mask, 0, size_t(n_words) * 4); return; }
        std::memset(mask + n_own, 0, size_t(n_words - n_own) * 4);
        const bool keyed = cache_key(at, s);
        if (keyed)
            if (const vector<uint32_t>* known = s.masks.find()) {
                std::memcpy(mask, known->data(), size_t(n_own) * 4);
                return;
            }
        s.arena.clear();
        s.deep = false;
        s.path.clear();
        const uint32_t* first = base_bitmap(at->configs[0], s);
        if (first) std::memcpy(mask, first, size_t(n_own) * 4);
        else std::memset(mask, 0, size_t(n_own) * 4);
        for (int32_t i = 0; i < at->n; ++i) contribute(at->configs[i], mask, i == 0 && first, s);
        if (keyed && !s.deep) s.masks.put(mask, size_t(n_own));
    }

    // Can token-level terminal t come next?
    bool takes(const Snapshot* at, int32_t t, bool grow) {
        if (at->finished) return false;
        Scratch& s = scratch();
        s.grow = grow;
        for (int32_t i = 0; i < at->n; ++i) {
            const Config& c = at->configs[i];
            if (!lex(c.lex, s).boundary) continue;
            for (int32_t k = 0; k < c.n_tops; ++k) if (lr.go(c.tops[k]->state, t) >= 0) return true;
        }
        return false;
    }

    // Bytes that can come next (not through token-level terminals); `tokens` is set if one of those can.
    ByteBits next_bytes(const Snapshot* at, bool& tokens, bool grow) {
        ByteBits out;
        tokens = false;
        if (at->finished) return out;
        Scratch& s = scratch();
        s.grow = grow;
        for (int32_t i = 0; i < at->n; ++i) {
            const Config& c = at->configs[i];
            const LexState& y = lex(c.lex, s);
            for (const Edge& e : y.edges) {
                const LexState& to = lexer.states[e.target];
                if (lexer.alive(to, lexer.count_after(to, c.count, e))) out.add_range(e.lo, e.hi);
            }
            if (!y.boundary) continue;
            for (int32_t k = 0; k < c.n_tops; ++k) tokens |= !shifted_tokens(c.tops[k]->state).empty();
        }
        return out;
    }

    // Terminals being read or admissible next, for messages.
    vector<int32_t> expected(const Snapshot* at) {
        vector<int32_t> out;
        for (int32_t i = 0; i < at->n; ++i) {
            for (const Hypothesis& h : lexer.states[at->configs[i].lex].hyps)
                for (int32_t c : h.main) out.push_back(lexer.terms.term[c]);
            if (!lexer.states[at->configs[i].lex].boundary) continue;
            for (int32_t k = 0; k < at->configs[i].n_tops; ++k)
                for (int32_t t : shifted_tokens(at->configs[i].tops[k]->state)) out.push_back(t);
        }
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }

    // On demand a finish brings its own universe; ahead of time all finishes of a terminal share one.
    void unite_tails(int32_t term, const vector<int32_t>& which) {
        vector<int64_t> key;
        for (int32_t i : which) key.push_back(profiler.finishes[i].tails->uid);
        std::shared_ptr<const SharedTails> united;
        {
            std::lock_guard<std::mutex> lock(vocab->universes_mutex);
            auto got = vocab->universes.find(key);
            if (got != vocab->universes.end()) united = got->second;
        }
        if (!united) {
            auto fresh = std::make_shared<SharedTails>();
            vector<Word> words;
            for (int32_t i : which) {
                const vector<Word>& w = profiler.finishes[i].tails->trie.slot_word;
                words.insert(words.end(), w.begin(), w.end());
            }
            fresh->all = Trie(words);
            for (int32_t i : which) {
                auto slots = std::make_shared<vector<int32_t>>();
                size_t at = 0;  // both are sorted: one merge
                for (const Word& w : profiler.finishes[i].tails->trie.slot_word) {
                    const vector<Word>& all = fresh->all.slot_word;
                    while (all[at].length != w.length || std::memcmp(all[at].text, w.text, size_t(w.length))) ++at;
                    slots->push_back(int32_t(at));
                }
                fresh->slots.push_back(std::move(slots));
            }
            united = fresh;
            if (words.size() > 64) {
                std::lock_guard<std::mutex> lock(vocab->universes_mutex);
                if (vocab->universes.size() > 4096) vocab->universes.clear();
                vocab->universes.emplace(key, united);
            }
        }
        const int32_t u = int32_t(universes.size());
        universes.push_back({term, united});
        for (size_t k = 0; k < which.size(); ++k) {
            profiler.finishes[which[k]].universe = u;
            profiler.finishes[which[k]].slots = united->slots[k];
            profiler.finishes[which[k]].index(united->all.slot_word.size(), lexer.terms.counted[term]);
        }
    }
    void shared_universes() {
        std::map<int32_t, vector<int32_t>> by_term;
        for (size_t i = 0; i < profiler.finishes.size(); ++i)
            if (profiler.finishes[i].universe < 0) by_term[profiler.finishes[i].term].push_back(int32_t(i));
        for (auto& [term, which] : by_term) {
            poll();
            unite_tails(term, which);
        }
    }

    template <class Op> auto run(Op op) -> decltype(op(false)) {
        if (frozen) return op(false);
        try {
            std::shared_lock<std::shared_mutex> lock(mutex);
            return op(false);
        } catch (const Miss&) {
        }
        std::unique_lock<std::shared_mutex> lock(mutex);
        const Growth growth(*this);
        return op(true);
    }
    // While one lives, sets of members may be added.  Under the exclusive lock, or before there are other threads.
    class Growth {
      public:
        explicit Growth(Engine& e) : growing_(e.lr.unordered.growing) { growing_ = true; }
        ~Growth() { growing_ = false; }
        Growth(const Growth&) = delete;

      private:
        bool& growing_;
    };

    // --- ahead of time, under "longest" ----------------------------------------------------------------------

    // The configuration after terminal t, not lexed yet; no tops: c does not take it.
    Config shifted(const Config& c, int32_t t, Arena& arena) { return shift(c, t, arena, scratch()); }
    int32_t context(const Config& c) {
        vector<int32_t> states;
        for (int32_t k = 0; k < c.n_tops; ++k) states.push_back(c.tops[k]->state);
        return context_of(states.data(), c.n_tops);
    }
    // Let c's stacks be read for universes.
    void read_tails(const std::set<int32_t>& universes, const Config& c) {
        Scratch& s = scratch();
        s.grow = true;
        s.arena.clear();
        s.fronts.begin(c);
        for (int32_t u : universes) read_jointly(u, s, [](int32_t) {});
    }
    void fill_bulk() {
        std::set<std::pair<int32_t, int32_t>> large;  // (universe, weight)
        for (const JointTails::Transition& t : joint.transitions())
            if (weights[t.weight].size() >= kBulk) large.insert({joint.states[int32_t(t.key >> 32)][0], t.weight});
        for (size_t f = 0; f < profiler.finishes.size(); ++f)
            for (auto at = large.lower_bound({profiler.finishes[f].universe, -1}); at != large.end() && at->first == profiler.finishes[f].universe; ++at)
                bulk(int32_t(f), at->second, true);
    }
    // The topmost states of all stacks, as sets of nodes: for each set its states, and which set lies below each.
    template <class T> static void shape(const Config& c, int32_t depth, vector<T>& out) {
        vector<vector<const Node*>> level{{c.tops, c.tops + c.n_tops}}, next;
        for (; depth && !level.empty(); --depth) {
            next.clear();
            for (vector<const Node*>& set : level) {
                std::sort(set.begin(), set.end(), [](const Node* a, const Node* b) { return a->state < b->state; });
                for (size_t k = 0; k < set.size();) {
                    const int32_t q = set[k]->state;
                    vector<const Node*> below;
                    for (; k < set.size() && set[k]->state == q; ++k) below.insert(below.end(), set[k]->below, set[k]->below + set[k]->n_below);
                    std::sort(below.begin(), below.end());
                    below.erase(std::unique(below.begin(), below.end()), below.end());
                    const auto known = std::find(next.begin(), next.end(), below);
                    out.push_back(q);
                    out.push_back(T(known - next.begin()));
                    if (known == next.end()) next.push_back(std::move(below));
                }
                out.push_back(-1);
            }
            level.swap(next);
        }
    }

  private:
    static constexpr int32_t kKeyDepth = 4;   // stack states in the key of a finished mask
    static constexpr size_t kKeyNodes = 48;   // ... "longest": of all stacks, at most
    static constexpr int32_t kManyBelow = 32; // "longest": stacks branch so much that shifting is dear
    static constexpr size_t kBulk = 256;      // "longest": sets of tails of this size have a bitmap of tokens
    static int64_t next_uid() {
        static std::atomic<int64_t> n{0};
        return n++;
    }
    const int64_t uid_ = next_uid();
    std::once_flag least_to_end_once_;
    std::unique_ptr<const LeastToEnd> least_to_end_;
    std::unordered_map<vector<int32_t>, int32_t, VectorHash> context_by_states_;  // "longest": tops -> context
    std::unordered_map<uint64_t, vector<uint32_t>> bulk_;  // (finish, weight) -> tokens

    struct Out {  // where allowed tokens go; those in `killed` (if any) do not
        uint32_t* mask;
        const uint32_t* killed;
        void set(int32_t t) {
            const size_t w = size_t(t) >> 5;
            const uint32_t bit = 1u << (t & 31);
            mask[w] |= killed ? bit & ~killed[w] : bit;
        }
    };
    // "longest": the stacks behind cuts, while one mask is made.  Equal ones are one, so that a tail like "*****" is
    // soon among stacks that are known.
    class Fronts {
      public:
        void begin(const Config& c) {
            if (++epoch_ == 0) { slots_.assign(slots_.size(), Slot{}); epoch_ = 1; }
            fronts_.clear();
            keys_.clear();
            n_used_ = 0;
            fronts_.push_back({c, -1, 0, 0, 0});
        }
        const Config& config(int32_t front) const { return fronts_[size_t(front)].config; }
        int32_t& tops(int32_t front) { return fronts_[size_t(front)].tops; }  // number of its set of tops, -1: unknown
        void set(int32_t front, const Config& c) { fronts_[size_t(front)].config = c; }
        // The stacks after a terminal, -1 to be filled in.
        int32_t& after(int32_t front, int32_t term) {
            const uint64_t key = uint64_t(uint32_t(front)) << 32 | uint32_t(term);
            if (n_used_ * 2 >= slots_.size()) {
                vector<Slot> old(slots_.size() * 2);
                old.swap(slots_);
                for (const Slot& x : old) if (x.epoch == epoch_) at(x.key) = x;
            }
            Slot& slot = at(key);
            if (slot.epoch != epoch_) { slot = {key, epoch_, -1}; ++n_used_; }
            return slot.front;
        }
        // The front with these tops.
        int32_t find(const Closure& closure, const vector<int32_t>& order, bool& fresh) {
            const size_t from = keys_.size();
            uint64_t hash = order.size();
            for (int32_t i : order) {
                keys_.push_back(uint64_t(closure[i].state));
                const size_t n = keys_.size();
                for (const Node* b : closure[i].below) keys_.push_back(reinterpret_cast<uintptr_t>(b));
                std::sort(keys_.begin() + int64_t(n), keys_.end());
            }
            for (size_t k = from; k < keys_.size(); ++k) hash = (hash ^ keys_[k]) * 0xff51afd7ed558ccdull, hash ^= hash >> 29;
            const size_t size = keys_.size() - from;
            for (size_t f = 1; f < fronts_.size(); ++f)
                if (fronts_[f].hash == hash && fronts_[f].size == size && std::equal(keys_.begin() + int64_t(from), keys_.end(), keys_.begin() + int64_t(fronts_[f].from))) {
                    keys_.resize(from);
                    return int32_t(f);
                }
            fresh = true;
            fronts_.push_back({{}, -1, from, size, hash});
            return int32_t(fronts_.size()) - 1;
        }

      private:
        struct Front {
            Config config;
            int32_t tops;
            size_t from, size;  // of its key in keys_
            uint64_t hash;
        };
        struct Slot { uint64_t key = 0; uint32_t epoch = 0; int32_t front = -1; };
        vector<Front> fronts_;
        vector<uint64_t> keys_;
        vector<Slot> slots_ = vector<Slot>(256);
        uint32_t epoch_ = 0;
        size_t n_used_ = 0;

        Slot& at(uint64_t key) {
            for (size_t k = key * 0x9E3779B97F4A7C15ull >> 40;; ++k) {
                Slot& x = slots_[k & (slots_.size() - 1)];
                if (x.epoch != epoch_ || x.key == key) return x;
            }
        }
    };
    struct Scratch {
        Closure closure;
        vector<Config> in, out;
        vector<int32_t> terms, states, order;
        vector<const Node*> nodes;
        vector<uint32_t> taken, kept, bitmap;
        Fronts fronts;
        vector<int32_t> path;
        std::set<std::pair<int32_t, const Node*>> visited;
        Arena arena;
        MaskCache masks;
        bool grow = false;
        bool deep = false;  // the mask depends on more than the topmost states
        const JsonScan* scan = nullptr;  // during a cut, if items must differ
        const std::string* text = nullptr;
        int repeats = -1;
    };
    static Scratch& scratch() {
        Arena::prepare();
        static thread_local Scratch s;
        return s;
    }

    // --- tables ----------------------------------------------------------------------------------------------

    const LexState& lex(int32_t y, Scratch& s) {
        const LexState& got = lexer.states[y];
        if (!got.expanded) {
            if (!s.grow) throw Miss{1};
            lexer.expand(y);
        }
        return got;
    }
    vector<int32_t> shifted_tokens(int32_t state) const {
        vector<int32_t> out;
        if (state >= lr.unordered.first) return out;
        for (int32_t k = lr.goto_indptr[state]; k < lr.goto_indptr[state] + lr.n_shifts[state]; ++k)
            if (lexer.terms.start[lr.goto_symbol[k]] < 0) out.push_back(lr.goto_symbol[k]);
        return out;
    }
    void terms_of(const int32_t* states, int32_t n, vector<int32_t>& out) const {
        out = ignored;
        for (int32_t i = 0; i < n; ++i) lr.shifted(states[i], out);
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
    }
    int32_t root_of(const int32_t* states, int32_t n, int32_t watch, Scratch& s) {
        int32_t context;
        if (!longest()) {
            context = known_context(states[0]);
            if (context < 0) {
                if (!s.grow) throw Miss{2};
                context = context_of(states, 1);
            }
        } else {
            s.terms.assign(states, states + n);
            auto known = context_by_states_.find(s.terms);
            context = known == context_by_states_.end() ? -1 : known->second;
            if (context < 0) {
                terms_of(states, n, s.terms);
                context = lexer.contexts.find(s.terms);
            }
            if (context < 0) {
                if (!s.grow) throw Miss{2};
                context = lexer.contexts(s.terms);
            }
        }
        int32_t y = lexer.find_root(context, watch);
        if (y < 0) {
            if (!s.grow) throw Miss{3};
            y = lexer.root(context, watch);
        }
        return y;
    }

    // For every byte terminal which others can follow it, ignored ones aside.
    void follow_terminals() {
        const int32_t nt = grammar.n_terms, n = grammar.n_symbols;
        vector<std::set<int32_t>> first(n), after(n);
        for (int32_t t = 0; t < nt; ++t) if (lexer.terms.start[t] >= 0) first[t].insert(t);
        bool changed = true;
        auto merge = [&](std::set<int32_t>& to, const std::set<int32_t>& from) {
            const size_t before = to.size();
            to.insert(from.begin(), from.end());
            changed |= to.size() != before;
        };
        while (changed) {
            changed = false;
            for (const Rule& r : grammar.rules) {
                merge(first[nt + r.lhs], first[r.a]);
                if (r.b >= 0) merge(after[r.a], first[r.b]);
                merge(after[r.b >= 0 ? r.b : r.a], after[nt + r.lhs]);
            }
        }
        for (int32_t t = 0; t < nt; ++t) joint.follow.emplace_back(after[t].begin(), after[t].end());
    }
    void follow_bytes() {
        const int32_t nt = grammar.n_terms, n = grammar.n_symbols;
        vector<ByteBits> first(n), after(n);
        for (int32_t t = 0; t < nt; ++t) {
            int32_t c = lexer.terms.start[t];
            if (c < 0) continue;
            for (int32_t e = lexer.terms.indptr[c]; e < lexer.terms.indptr[c + 1]; ++e)
                first[t].add_range(lexer.terms.edges[e].lo, lexer.terms.edges[e].hi);
        }
        auto merge = [](ByteBits& to, const ByteBits& from) {
            if (from.subset_of(to)) return false;
            to.merge(from);
            return true;
        };
        for (bool changed = true; changed;) {
            changed = false;
            for (size_t i = grammar.rules.size(); i-- > 0;)
                changed |= merge(first[nt + grammar.rules[i].lhs], first[grammar.rules[i].a]);
        }
        for (bool changed = true; changed;) {
            changed = false;
            for (const Rule& r : grammar.rules) {
                if (r.b >= 0) changed |= merge(after[r.a], first[r.b]);
                changed |= merge(after[r.b >= 0 ? r.b : r.a], after[nt + r.lhs]);
            }
        }
        lexer.terms.follow.assign(after.begin(), after.begin() + nt);
        for (int32_t t : ignored)
            for (int32_t u = 0; u < nt; ++u) {
                lexer.terms.follow[u].merge(first[t]);
                lexer.terms.follow[t].merge(first[u]);
            }
    }

    // --- steps -----------------------------------------------------------------------------------------------

    void step(const vector<Config>& in, uint8_t b, vector<Config>& out, Arena& arena, Scratch& s) {
        out.clear();
        for (const Config& c : in) {
            const Edge* e = lex(c.lex, s).edge(b);
            if (!e) continue;
            const LexState& y = lexer.states[e->target];
            Config to = c;
            to.lex = e->target;
            to.count = lexer.count_after(y, c.count, *e);
            if (lexer.alive(y, to.count)) out.push_back(to);
        }
        merge(out, arena, s);
    }

    // "cfg": configurations with one lexer state and one top state become one.
    void merge(vector<Config>& cs, Arena& arena, Scratch& s) {
        if (cs.size() < 2 || longest()) return;
        std::sort(cs.begin(), cs.end(), [](const Config& a, const Config& b) {
            if (a.lex != b.lex) return a.lex < b.lex;
            if (a.count != b.count) return a.count < b.count;
            return a.tops[0]->state < b.tops[0]->state;
        });
        size_t n = 0;
        for (size_t i = 0; i < cs.size();) {
            size_t j = i + 1;
            while (j < cs.size() && cs[j].lex == cs[i].lex && cs[j].count == cs[i].count && cs[j].tops[0]->state == cs[i].tops[0]->state) ++j;
            Config c = cs[i];
            if (j - i > 1) {
                s.nodes.clear();
                for (size_t k = i; k < j; ++k)
                    s.nodes.insert(s.nodes.end(), cs[k].tops[0]->below, cs[k].tops[0]->below + cs[k].tops[0]->n_below);
                std::sort(s.nodes.begin(), s.nodes.end());
                s.nodes.erase(std::unique(s.nodes.begin(), s.nodes.end()), s.nodes.end());
                c = single(Closure::make(arena, c.tops[0]->state, s.nodes.data(), s.nodes.size()), c.lex, arena);
                c.count = cs[i].count;
            }
            cs[n++] = c;
            i = j;
        }
        cs.resize(n);
    }
    static Config single(const Node* node, int32_t lex, Arena& arena) {
        const Node** slot = static_cast<const Node**>(arena.bytes(sizeof(Node*)));
        *slot = node;
        return {slot, 1, lex};
    }

    // Shift complete terminals; the fresh configurations are appended.  next: the byte that follows, -1 if unknown.
    void cut(vector<Config>& cs, int next, Arena& arena, Scratch& s) {
        const size_t n = cs.size();
        if (!longest()) {
            s.closure.begin();
            bool any = false;
            for (size_t i = 0; i < n; ++i)
                for (const Accept& a : lex(cs[i].lex, s).accepts) {
                    if (next >= 0 && !lexer.terms.follow[a.term].has(uint8_t(next))) continue;
                    if (!lexer.terms.takes(a.term, cs[i].count)) continue;
                    const Node* top = cs[i].tops[0];
                    int32_t q = lr.go(top->state, a.term);
                    if (q >= 0) { s.closure.add(q, top); any = true; }
                }
            if (any) fresh(cs, arena, s);
            return;
        }
        for (size_t i = 0; i < n; ++i)
            for (size_t k = 0; k < lex(cs[i].lex, s).accepts.size(); ++k) {
                Accept a = lexer.states[cs[i].lex].accepts[k];
                int32_t watch = a.watch;
                if (next >= 0) {
                    if (!lexer.terms.follow[a.term].has(uint8_t(next))) continue;
                }
                if (lexer.terms.ignore[a.term]) {
                    Config again = cs[i];
                    again.lex = root_of_tops(again, watch, s);
                    cs.push_back(again);
                    continue;
                }
                shift_fresh(cs, cs[i], a.term, watch, arena, s);
            }
    }
    // Shift t on one configuration, and append the configuration(s) that start there.
    void shift_fresh(vector<Config>& cs, const Config& c, int32_t t, int32_t watch, Arena& arena, Scratch& s) {
        if (longest()) {
            Config to = shift(c, t, arena, s);
            if (!to.n_tops) return;
            to.lex = root_of_tops(to, watch, s);
            cs.push_back(to);
            return;
        }
        const int32_t q = lr.go(c.tops[0]->state, t);
        if (q < 0) return;
        s.closure.begin();
        s.closure.add(q, c.tops[0]);
        fresh(cs, arena, s);
    }

    int32_t root_of_tops(const Config& c, int32_t watch, Scratch& s) {
        s.states.clear();
        for (int32_t k = 0; k < c.n_tops; ++k) s.states.push_back(c.tops[k]->state);
        return root_of(s.states.data(), c.n_tops, watch, s);
    }

    // "cfg": the closure's shift edges are in; reduce, and append the configurations that start there.
    void fresh(vector<Config>& cs, Arena& arena, Scratch& s) {
        if (!s.scan) s.closure.reduce(lr);
        else s.closure.reduce(lr, [&](int32_t n) {
            if (!distinct[size_t(n)]) return false;
            if (s.repeats < 0) s.repeats = s.scan->repeats(*s.text);
            return s.repeats > 0;
        });
        for (int32_t i = 0; i < s.closure.n(); ++i) {
            int32_t q = s.closure[i].state;
            if (lr.shifts(q)) cs.push_back(single(make_top(i, arena, s), root_of(&q, 1, 0, s), arena));
        }
    }
    // "longest": shift t on all tops that take it, and reduce.  The tops are in s.closure at s.order.
    void close(const Config& c, int32_t t, Scratch& s) {
        s.closure.begin();
        for (int32_t k = 0; k < c.n_tops; ++k) {
            int32_t q = lr.go(c.tops[k]->state, t);
            if (q >= 0) s.closure.add(q, c.tops[k]);
        }
        s.closure.reduce(lr);
        s.order.clear();
        for (int32_t i = 0; i < s.closure.n(); ++i) if (lr.shifts(s.closure[i].state)) s.order.push_back(i);
        std::sort(s.order.begin(), s.order.end(), [&](int32_t a, int32_t b) { return s.closure[a].state < s.closure[b].state; });
    }
    Config closed(Arena& arena, Scratch& s) {
        const Node** tops = static_cast<const Node**>(arena.bytes(sizeof(Node*) * s.order.size()));
        for (size_t k = 0; k < s.order.size(); ++k) tops[k] = make_top(s.order[k], arena, s);
        return {tops, int32_t(s.order.size()), -1};
    }
    Config shift(const Config& c, int32_t t, Arena& arena, Scratch& s) {
        close(c, t, s);
        return closed(arena, s);
    }
    static const Node* make_top(int32_t i, Arena& arena, Scratch& s) {
        const Closure::Top& t = s.closure[i];
        return Closure::make(arena, t.state, t.below.data(), t.below.size());
    }

    // After the last byte of a commit: a configuration whose terminal cannot go on has given its fresh ones.
    void drop_spent(vector<Config>& cs, Scratch& s) {
        size_t n = 0;
        for (const Config& c : cs) {
            const LexState& y = lex(c.lex, s);
            if (y.root || y.goes_on || y.boundary) cs[n++] = c;
        }
        cs.resize(n);
    }

    // Token-level terminal t after every boundary; true if it is the end of the text.
    bool shift_token(const Snapshot* from, int32_t t, Arena& arena, Scratch& s) {
        bool ended = false;
        for (int32_t i = 0; i < from->n; ++i) {
            const Config& c = from->configs[i];
            if (!lex(c.lex, s).boundary) continue;
            for (int32_t k = 0; k < c.n_tops && t == end_term; ++k) ended |= lr.go(c.tops[k]->state, t) >= 0;
            if (t != end_term) shift_fresh(s.out, c, t, 0, arena, s);
        }
        return ended;
    }

    static Snapshot* snapshot(const Snapshot* before, const vector<Config>& cs, Arena& arena) {
        size_t n = cs.size();
        Snapshot* out = static_cast<Snapshot*>(arena.bytes(sizeof(Snapshot) + sizeof(Config) * (n ? n - 1 : 0)));
        out->before = before;
        out->n_commits = before ? before->n_commits + 1 : 0;
        out->text = nullptr;
        out->n_text = 0;
        out->n = int32_t(n);
        out->finished = 0;
        std::copy(cs.begin(), cs.end(), out->configs);
        return out;
    }

    // --- masks -----------------------------------------------------------------------------------------------

    // What decides the mask unless the parser DWA reads further down.  False: too many configurations to tell apart.
    bool cache_key(const Snapshot* at, Scratch& s) {
        if (at->n > 4) return false;
        vector<int64_t>& key = s.masks.key;
        key.assign(1, uid_);
        for (int32_t i = 0; i < at->n; ++i) {
            const Config& c = at->configs[i];
            key.push_back(c.lex);
            key.push_back(is_free(c) ? -1 : c.count);
            if (longest()) {
                if (!put_stacks(c, key, s)) return false;
            } else {
                const Node* node = c.tops[0];
                for (int32_t k = 0; k < kKeyDepth; ++k) {
                    key.push_back(node->state);
                    if (node->n_below != 1) break;
                    node = node->below[0];
                }
            }
            key.push_back(-1);
        }
        return true;
    }

    // All stacks, node by node from the tops down, each new one when it is met first; false: too many nodes.
    static bool put_stacks(const Config& c, vector<int64_t>& key, Scratch& s) {
        vector<const Node*>& nodes = s.nodes;
        nodes.assign(c.tops, c.tops + c.n_tops);
        for (size_t i = 0; i < nodes.size(); ++i) {
            if (nodes.size() > kKeyNodes) return false;
            const Node* node = nodes[i];
            key.push_back(int64_t(node->n_below) << 32 | node->state);
            for (int32_t b = 0; b < node->n_below; ++b) {
                const size_t at = size_t(std::find(nodes.begin(), nodes.end(), node->below[b]) - nodes.begin());
                if (at == nodes.size()) nodes.push_back(node->below[b]);
                key.push_back(int64_t(at));
            }
        }
        return true;
    }
    // Does the count matter to no token?
    bool is_free(const Config& c) const {
        const LexState& y = lexer.states[c.lex];
        if (!y.counted) return true;
        if (y.profile < 0) return false;
        const Profile& p = profiler.profiles[y.profile];
        return p.free_lo <= c.count && c.count <= p.free_hi;
    }

    // The bitmap a configuration starts from, if it has one: copying it is cheaper than clearing and uniting.
    const uint32_t* base_bitmap(const Config& c, Scratch& s) {
        const LexState& y = lex(c.lex, s);
        if (y.profile < 0) return nullptr;
        const Profile* p = &profiler.profiles[y.profile];
        if (p->killed || !is_free(c)) return nullptr;
        if (p->base >= 0) p = &profiler.profiles[p->base];
        const vector<uint32_t>* bitmap = main_bitmap(*p->inside);
        return bitmap ? bitmap->data() : nullptr;
    }
    static const vector<uint32_t>* main_bitmap(const Inside& r) {
        if (!r.bitmap.empty()) return &r.bitmap;
        for (const Inside::Group& g : r.groups) if (!g.bitmap.empty()) return &g.bitmap;
        return nullptr;
    }

    void contribute(const Config& c, uint32_t* mask, bool copied, Scratch& s) {
        const LexState& y = lex(c.lex, s);
        if (y.profile < 0) {
            if (!s.grow) throw Miss{4};
            profiler.profile(c.lex);
        }
        if (longest()) s.fronts.begin(c);
        add_whole(c, y.profile, {mask, nullptr}, copied, s);
        if (!y.boundary) return;
        for (int32_t k = 0; k < c.n_tops; ++k)
            for (int32_t t : shifted_tokens(c.tops[k]->state))
                for (int32_t id : token_ids[t]) mask[size_t(id) >> 5] |= 1u << (id & 31);
    }
    // A profile with what it is a change of.  `copied`: the mask already is its base bitmap, and nothing else.
    void add_whole(const Config& c, int32_t number, Out out, bool copied, Scratch& s) {
        const Profile& p = profiler.profiles[number];
        if (p.killed) return add_whole(c, p.base, {out.mask, p.killed->data()}, false, s);
        if (p.base >= 0) {
            s.kept.assign(p.drop.size(), 0);
            if (!copied)
                for (size_t i = 0; i < p.drop.size(); ++i) s.kept[i] = out.mask[size_t(p.drop[i]) >> 5] & (1u << (p.drop[i] & 31));
            add_profile(c, profiler.profiles[p.base], out, copied, s);
            for (size_t i = 0; i < p.drop.size(); ++i) {
                uint32_t& w = out.mask[size_t(p.drop[i]) >> 5];
                w = (w & ~(1u << (p.drop[i] & 31))) | s.kept[i];
            }
            copied = false;
        }
        add_profile(c, p, out, copied, s);
    }
    void add_profile(const Config& c, const Profile& p, Out out, bool copied, Scratch& s) {
        const vector<uint32_t>* done = copied ? main_bitmap(*p.inside) : nullptr;
        if (!p.inside->bitmap.empty() && done != &p.inside->bitmap) add_bitmap(p.inside->bitmap, out);
        for (int32_t id : p.inside->ids) out.set(id);
        for (const Inside::Group& g : p.inside->groups)
            if (done == nullptr || done != &g.bitmap) add_group(g, lexer.spans[p.spans[g.local_span]], c.count, out, s);
        for (int32_t f : p.finishes) add_finish(c, f, out, s);
    }
    void add_bitmap(const vector<uint32_t>& bitmap, Out out) {
        const uint32_t* __restrict from = bitmap.data();
        const uint32_t* __restrict killed = out.killed;
        uint32_t* __restrict to = out.mask;
        const int64_t n = vocab->n_words();
        if (killed) for (int64_t i = 0; i < n; ++i) to[i] |= from[i] & ~killed[i];
        else for (int64_t i = 0; i < n; ++i) to[i] |= from[i];
    }
    // The tokens of a group that end with a count in the span, when they start with `count`.
    void add_group(const Inside::Group& g, const vector<int32_t>& span, int32_t count, Out out, Scratch& s) {
        const int64_t n = int64_t(g.indptr.size()) - 1, zero = int64_t(count) + g.least;
        for (size_t i = 0; i < span.size(); i += 2) {
            const int64_t lo = std::max<int64_t>(0, span[i] - zero), hi = std::min<int64_t>(n - 1, span[i + 1] - zero);
            if (lo > hi) continue;
            if (lo == 0 && !g.bitmap.empty()) {
                if (hi == n - 1) { add_bitmap(g.bitmap, out); continue; }
                if (hi < int64_t(g.up_to.size())) { add_bitmap(g.up_to[size_t(hi)], out); continue; }
                s.bitmap = g.bitmap;
                for (int32_t k = g.indptr[size_t(hi) + 1]; k < g.indptr.back(); ++k)
                    s.bitmap[size_t(g.tokens[size_t(k)]) >> 5] &= ~(1u << (g.tokens[size_t(k)] & 31));
                add_bitmap(s.bitmap, out);
                continue;
            }
            for (int32_t k = g.indptr[size_t(lo)]; k < g.indptr[size_t(hi) + 1]; ++k) out.set(g.tokens[size_t(k)]);
        }
    }
    // Hand out the tokens that leave a tail which the stack takes.
    void give(const Finish& f, size_t slot, int32_t count, Out out) {
        const Trie& tails = f.tails->trie;
        const bool counted = lexer.terms.counted[f.term];
        for (int32_t k = tails.slot_indptr[slot]; k < tails.slot_indptr[slot + 1]; ++k)
            if (!counted || lexer.terms.takes(f.term, count + (tails.slot_counts.empty() ? 0 : tails.slot_counts[k]))) out.set(tails.slot_tokens[k]);
    }

    void give_tail(const Finish& f, int32_t u, int32_t count, Out out) {  // by its slot in the universe
        const int32_t x = f.given[size_t(u)];
        if (x >= 0) out.set(x);
        else if (x < Finish::kNone) give(f, size_t(Finish::kNone - 1 - x), count, out);
    }

    // Find the tails that the stack takes, and hand out their tokens.
    void add_finish(const Config& c, int32_t number, Out out, Scratch& s) {
        const Finish& f = profiler.finishes[number];
        bool taken = lexer.terms.ignore[f.term];
        for (int32_t k = 0; k < c.n_tops && !taken; ++k) taken = lr.go(c.tops[k]->state, f.term) >= 0;
        if (!taken) return;  // a delta's base may finish terminals that this stack does not take
        if (use_parsing) return finish_by_parsing(c, f, out, s);
        if (f.universe < 0) {
            if (!s.grow) throw Miss{5};
            unite_tails(f.term, {number});
        }
        int32_t d = -1;
        if (!longest()) {
            if ((d = dwa.find_start(f.universe)) < 0 && !s.grow) throw Miss{6};
            if (d < 0) d = dwa.start(f.universe);
        }
        s.taken.assign((universes[f.universe].tails().slot_word.size() + 31) / 32, 0);
        auto take = [&](int32_t weight) {
            const vector<int32_t>& tails = weights[weight];
            if (longest() && tails.size() >= kBulk) return add_bitmap(bulk(number, weight, s.grow), out);
            for (int32_t u : tails) {
                uint32_t& word = s.taken[size_t(u) >> 5];
                if (word >> (u & 31) & 1) continue;
                word |= 1u << (u & 31);
                give_tail(f, u, c.count, out);
            }
        };
        if (longest()) return read_jointly(f.universe, s, take);
        s.visited.clear();
        descend(d, c.tops[0], s, take);
    }
    // The tokens of a finish with many tails, under "longest".
    const vector<uint32_t>& bulk(int32_t number, int32_t weight, bool grow) {
        const uint64_t key = uint64_t(uint32_t(number)) << 32 | uint32_t(weight);
        auto got = bulk_.find(key);
        if (got != bulk_.end()) return got->second;
        if (!grow) throw Miss{9};
        vector<uint32_t> bits(size_t(vocab->n_words()), 0u);
        const Finish& f = profiler.finishes[number];
        for (int32_t u : weights[weight]) give_tail(f, u, 0, {bits.data(), nullptr});
        return bulk_.emplace(key, std::move(bits)).first->second;
    }
    template <class F> int32_t read(int32_t d, int32_t state, Scratch& s, const F& take) {
        const ParserDwa::Transition* got = dwa.find(d, state);
        ParserDwa::Transition t;
        if (got) t = *got;
        else if (!s.grow) throw Miss{7};
        else t = dwa.step(d, state);
        take(t.weight);
        return t.next;
    }
    template <class F> void descend(int32_t d, const Node* node, Scratch& s, const F& take) {
        for (int32_t depth = 1;; ++depth) {
            d = read(d, node->state, s, take);
            if (d < 0 || node->n_below == 0) return;
            s.deep |= depth >= kKeyDepth || node->n_below > 1;
            if (node->n_below > 1) break;
            node = node->below[0];
        }
        for (int32_t b = 0; b < node->n_below; ++b)
            if (s.visited.insert({d, node->below[b]}).second) descend(d, node->below[b], s, take);
    }
    // "longest": the tails after the universe's terminal.  Where stacks branch much the tops before it may do.
    template <class F> void read_jointly(int32_t universe, Scratch& s, const F& take) {
        const int32_t term = universes[universe].term;
        const Config c = s.fronts.config(0);
        int32_t n_below = 0;
        for (int32_t k = 0; k < c.n_tops; ++k) n_below += c.tops[k]->n_below;
        const bool before = lexer.terms.ignore[term] || n_below > kManyBelow;
        int32_t d = joint.find_start(universe, before);
        if (d < 0) {
            if (!s.grow) throw Miss{7};
            d = joint.start(universe, before);
        }
        read_front(d, before ? 0 : shift_front(0, term, s), s, take);
    }
    template <class F> void read_front(int32_t d, int32_t front, Scratch& s, const F& take) {
        if (!s.fronts.config(front).n_tops) return;
        int32_t& tops = s.fronts.tops(front);
        if (tops < 0) {
            const Config c = s.fronts.config(front);
            s.terms.clear();
            for (int32_t k = 0; k < c.n_tops; ++k) s.terms.push_back(c.tops[k]->state);
            if ((tops = joint.tops.find(s.terms)) < 0) {
                if (!s.grow) throw Miss{8};
                tops = joint.tops(s.terms);
            }
        }
        const JointTails::Transition* known = joint.find(d, tops);
        if (!known && !s.grow) throw Miss{10};
        const JointTails::Transition t = known ? *known : joint.step(d, tops);
        take(t.weight);
        const size_t base = s.path.size();
        for (int32_t k = t.cut_lo; k < t.cut_hi; ++k) {
            const JointTails::Cut cut = joint.cuts[size_t(k)];
            const int32_t to = shift_front(cut.from < 0 ? front : s.path[base + size_t(cut.from)], cut.term, s);
            s.path.push_back(to);
            if (cut.next >= 0) read_front(cut.next, to, s, take);
        }
        s.path.resize(base);
    }
    int32_t shift_front(int32_t from, int32_t term, Scratch& s) {
        int32_t& to = s.fronts.after(from, term);
        if (to >= 0) return to;
        close(s.fronts.config(from), term, s);
        bool fresh = false;
        to = s.fronts.find(s.closure, s.order, fresh);
        if (fresh) s.fronts.set(to, closed(s.arena, s));
        return to;
    }

    // The slow twin of the parser DWA: parse every tail on the real stack.
    void finish_by_parsing(const Config& c, const Finish& f, Out out, Scratch& s) {
        s.deep = true;
        if (lexer.terms.ignore[f.term]) {
            Config again = c;
            again.lex = root_of_tops(c, 0, s);
            parse_tails({again}, f, c.count, 0, out, s);
            return;
        }
        vector<Config> cs;
        shift_fresh(cs, c, f.term, 0, s.arena, s);
        parse_tails(cs, f, c.count, 0, out, s);
    }
    void parse_tails(const vector<Config>& cs, const Finish& f, int32_t count, int32_t node, Out out, Scratch& s) {
        const Trie& tails = f.tails->trie;
        vector<Config> next;
        for (int32_t c = tails.first_child[node]; c < tails.first_child[node + 1]; ++c) {
            step(cs, tails.byte[c], next, s.arena, s);
            if (next.empty()) continue;
            if (tails.own[c]) give(f, size_t(tails.slot_lo[c]), count, out);
            int32_t a = tails.first_child[c], b = tails.first_child[c + 1];
            if (a == b) continue;
            cut(next, b - a == 1 ? tails.byte[a] : -1, s.arena, s);
            parse_tails(next, f, count, c, out, s);
        }
    }
};

}  // namespace wfsa
