// The vocabulary trie in step with the lexer, from a state on: which tokens stay inside, and which leave tails.
//
// Subtrees on whose bytes the state stays inside are one step (staying.hpp), and so are all tokens along a chain of
// states (chain.hpp).  Cost: the trie nodes with a live state.
#pragma once
#include "containers/growth_lock.hpp"
#include "lexer/chain.hpp"
#include "lexer/staying.hpp"
#include "profiles/pieces.hpp"

namespace wfsa {

class Walk {
  public:
    vector<int32_t> terms, spans;  // local number -> terminal, span
    Pieces pieces;
    int64_t work = 0;  // trie nodes walked so far
    std::shared_ptr<const Inside> common;  // more tokens that stay inside, which other states have, too; or null

    Walk(const VocabularyTrie& trie, Lexer& lexer, Staying& staying, ProfileCache& cache)
        : pieces(trie, lexer, cache), trie_(trie), lexer_(lexer), staying_(staying), cache_(cache), chain_(lexer) {}

    void begin() {
        runs_.clear();
        counted_.clear();
        pieces.list.clear();
        common = nullptr;
        shares_ = lexer_.terms.longest && !pieces.wide;
    }
    // All tokens from state y on; those of a loop on few bytes apart, if `apart`.
    WalkResult from(int32_t y, bool apart = false) {
        begin();
        const int64_t before = work;
        lexer_.expand(y);
        if (!round(y, apart) && !along_chain(y)) below(0, y, 0, 0);
        WalkResult out = collect();
        out.work = work - before;
        return out;
    }
    WalkResult collect() {
        GrowthLock::let_read();
        Inside inside;
        inside.set_tokens(runs_, trie_, bits_);
        inside.set_groups(counted_, trie_);
        GrowthLock::let_read();
        WalkResult out;
        out.inside = cache_.insides.intern(std::move(inside));
        pieces.collect(out, terms);
        return out;
    }

    // Steps that a comparison of two states takes, too (delta.hpp).

    void below(int32_t node, int32_t y, int32_t depth, int32_t count) {
        lexer_.expand(y);
        trie_.each_child(node, lexer_.states[y].edges, [&](int32_t c, const Edge& e) { enter(c, e, depth, count); });
    }
    // What a state that is not counted and loops on a few bytes does on these; null: it does not.
    std::shared_ptr<const LoopRuns> few_loops(int32_t y) {
        ByteBits loop;
        bool characters = false;
        if (lexer_.states[y].counted || !staying_.loops(y, loop, characters) || loop.count() >= kManyBytes) return nullptr;
        return cache_.loop_runs(trie_, loop, characters);
    }
    // Is a walk from y, which goes along a chain, cheaper than a delta to a state that only texts of more than `length`
    // bytes tell from it?
    bool is_shorter_than_delta(int32_t y, int32_t length) {
        if (length == 0 || length > kLongInChain) return false;
        const std::shared_ptr<const LoopRuns> known = runs_of_chain(y);
        return known && known->longer_than(length) > kManyInDelta;
    }
    // Do all tokens below a node stay inside from both states, as far as is seen at once?
    bool both_stay(int32_t y, int32_t z, const TrieNode& node) {
        return staying_.stays_plainly(y, node) && staying_.stays_plainly(z, node);
    }
    // The tokens of a slot end in state t.
    void inside(int32_t slot, const LexState& t, int32_t count) {
        if (t.span < 0) add_run(slot, slot + 1);
        else counted_.push_back({local_number(spans, t.span), slot, slot + 1, count, Inside::kNone});
    }
    template <class Self, class V> static void fields(Self& w, V& v) {
        v.expansion(w.runs_, w.bits_, w.counted_, w.segments_);
        v.table("pieces", w.pieces);
    }

  private:
    struct Segment {
        vector<Inside::Run> runs;
        vector<Pieces::Piece> pieces;
        template <class Self, class V> static void fields(Self& s, V& v) { v.expansion(s.runs, s.pieces); }
    };
    const VocabularyTrie& trie_;
    Lexer& lexer_;
    Staying& staying_;
    ProfileCache& cache_;
    Chain chain_;
    vector<Inside::Run> runs_;
    vector<uint64_t> bits_;  // none set between walks
    vector<Inside::CountedRun> counted_;
    static constexpr int32_t kLongInChain = 24;   // bytes; few tokens are longer
    static constexpr int32_t kManyInDelta = 1000; // tokens
    static constexpr int32_t kLeastShared = 64;  // slots
    bool shares_ = false;                        // what is below a node with so many, by way of
    std::unordered_map<uint64_t, Segment> segments_;  // (node, lexer state there) -> what a walk finds below

    void enter(int32_t c, const Edge& e, int32_t depth, int32_t count) {
        if (shares_ && trie_[c].slot_hi - trie_[c].slot_lo >= kLeastShared) enter_shared(c, e, depth);
        else enter_alone(c, e, depth, count);
    }
    // "longest" (nothing is counted): what is below a node depends on the state there, into which many roots lead.
    void enter_shared(int32_t c, const Edge& e, int32_t depth) {
        const uint64_t key = uint64_t(uint32_t(c)) << 32 | uint32_t(e.target);
        const auto got = segments_.find(key);
        if (got != segments_.end()) {
            const Segment& known = got->second;
            runs_.insert(runs_.end(), known.runs.begin(), known.runs.end());
            pieces.list.insert(pieces.list.end(), known.pieces.begin(), known.pieces.end());
            return;
        }
        vector<Inside::Run> before;
        before.swap(runs_);  // a run would go on with what was found before
        const auto n = int64_t(pieces.list.size());
        enter_alone(c, e, depth, 0);
        before.insert(before.end(), runs_.begin(), runs_.end());
        before.swap(runs_);
        segments_.emplace(key, Segment{std::move(before), {pieces.list.begin() + n, pieces.list.end()}});
    }
    void enter_alone(int32_t c, const Edge& e, int32_t depth, int32_t count) {
        if (++work % 64 == 0) GrowthLock::let_read();
        LexState& t = lexer_.states[e.target];
        const int32_t after = lexer_.count_after(t, count, e);
        const TrieNode& node = trie_[c];
        if (node.own) inside(node.slot_lo, t, after);
        if (node.first_child == node.end_child) return;
        lexer_.expand(e.target);
        if (staying_.stays(e.target, node, pieces.wide)) {
            all_inside(c, e.target, depth + 1, after);
            return;
        }
        for (const Accept& a : t.accepts) pieces.add_cut(a, c, depth + 1, after);
        below(c, e.target, depth + 1, after);
    }
    void add_run(int32_t lo, int32_t hi) {
        if (!runs_.empty() && runs_.back().hi == lo) runs_.back().hi = hi;
        else runs_.push_back({lo, hi});
    }
    // Everything below a node that is decided in state y.
    void all_inside(int32_t node, int32_t y, int32_t depth, int32_t count) {
        const int32_t lo = trie_[node].slot_lo + trie_[node].own, hi = trie_[node].slot_hi;
        if (lexer_.states[y].span < 0) return add_run(lo, hi);
        const int32_t span = local_number(spans, lexer_.states[y].span);
        if (!staying_.counts(y, trie_[node])) counted_.push_back({span, lo, hi, count, Inside::kNone});
        else if (!staying_.by_characters(y)) counted_.push_back({span, lo, hi, count - depth, Inside::kBytes});
        else {
            const int32_t read = characters_in(trie_.slot_word[lo].text, depth);
            counted_.push_back({span, lo, hi, count - read, Inside::kCharacters});
        }
    }
    // Do letters lead out of the loop?  Then no other state loops on the same bytes, and most tokens leave it.
    static bool leaves_by_letters(const LexState& s, const ByteBits& loop) {
        for (const Edge& e : s.edges)
            for (int32_t b = e.lo; b <= e.hi; ++b)
                if (((b | 32) >= 'a' && (b | 32) <= 'z') && !loop.has(uint8_t(b))) return true;
        return false;
    }
    // From a state that loops on several bytes: what they lead to is known, what leads out of the loop is walked.
    bool round(int32_t y, bool apart) {
        ByteBits loop;
        bool characters = false;
        if (!staying_.loops(y, loop, characters)) return false;
        const LexState& s = lexer_.states[y];
        // Under "longest" many roots have what is below a white space: `segments` shares that, too.
        if (loop.count() < kManyBytes && (s.counted || lexer_.terms.longest)) return false;
        if (loop.count() >= kManyBytes && leaves_by_letters(s, loop)) return false;
        const std::shared_ptr<const LoopRuns> known = cache_.loop_runs(trie_, loop, characters);
        // A state that lives with any count may have an exit into one that does not.
        const bool counts = s.counted && loop.intersects(Staying::counted(s));
        const Inside::Units units = !counts ? Inside::kNone : characters ? Inside::kCharacters : Inside::kBytes;
        if (apart && known->tokens) common = known->tokens;
        else if (s.span < 0) runs_ = known->inside;
        else for (const Inside::Run& r : known->inside)
            counted_.push_back({local_number(spans, s.span), r.lo, r.hi, 0, units});
        for (const Edge& e : s.edges)
            for (int32_t b = e.lo; b <= e.hi; ++b) {
                if (loop.has(uint8_t(b))) continue;
                for (const LoopRuns::Exit& out : known->exits[b]) {
                    const uint8_t* const text = trie_.slot_word[trie_[out.node].slot_lo].text;
                    const int32_t n = out.depth - 1;
                    enter(out.node, e, n, !counts ? 0 : characters ? characters_in(text, n) : n);
                }
            }
        return true;
    }
    std::shared_ptr<const LoopRuns> runs_of_chain(int32_t y) {
        if (!chain_.find(y, trie_[0].height) || leaves_by_letters(lexer_.states[y], chain_.bytes)) return nullptr;
        return cache_.loop_runs(trie_, chain_.bytes, false);
    }
    // From a state of a chain: the tokens over its bytes that are short enough, and what leads out of it.
    bool along_chain(int32_t y) {
        const std::shared_ptr<const LoopRuns> known = runs_of_chain(y);
        if (!known) return false;
        const int32_t most = int32_t(chain_.states.size()) - 1;
        for (const Inside::Run& r : known->inside)
            for (int32_t slot = r.lo; slot < r.hi; ++slot) {
                const int32_t n = trie_.slot_word[slot].length;
                if (n <= most) inside(slot, lexer_.states[chain_.states[n]], chain_.counts[n]);
            }
        for (int32_t b = 0; b < 256; ++b) {
            if (chain_.bytes.has(uint8_t(b))) continue;
            for (const LoopRuns::Exit& out : known->exits[b]) {
                const int32_t n = out.depth - 1;
                if (n > most) continue;
                const Edge* const e = lexer_.states[chain_.states[n]].edge(uint8_t(b));
                if (e) enter(out.node, *e, n, chain_.counts[n]);
            }
        }
        return true;
    }
};

}  // namespace wfsa
