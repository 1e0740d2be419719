// One sequence being decoded: a snapshot, the arena it writes to, and the engine it reads.
//
// fork() shares everything so far; who goes on writes to an arena of its own (parser/shared_arena.hpp). What a commit
// wrote is given back when it is rolled back, or refused.
// What changes a Session is called by one thread at a time; masks and questions change nothing. Sessions of one
// engine run in parallel.
//
// The session chooses what stands beside the parse: JSON's items that must differ, where the grammar has any
// (companion.hpp), and the bound on white space, which sees bytes only.
#pragma once
#include "containers/kept_pointer.hpp"
#include "json/distinct_text.hpp"
#include "json/quotes.hpp"
#include "json/white_space_text.hpp"
#include "parser/shared_arena.hpp"
#include "runtime/budget_mask.hpp"
#include "runtime/budget_memo.hpp"
#include "runtime/decoder.hpp"
#include "runtime/generations.hpp"
#include "runtime/situation.hpp"

namespace wfsa {

class Session final : public Decoder {
  public:
    explicit Session(std::shared_ptr<Generations> tables)
        : tables_(std::move(tables)), engine_(tables_->now()) {
        now_ = engine_->run([&](auto& operations) { return operations.start(arena_.own()); });
        space_ = WhiteSpaceText(white_space_of(*engine_));
    }
    // What texts need of the vocabulary is made when a constraint is, so that the first of them does not wait for it.
    static void prepare(const Engine& e) {
        white_space_of(e);
        if (!e.distinct.empty()) e.vocab->kept<Quotes>();
    }
    std::unique_ptr<Decoder> fork() const override { return copy(); }
    std::unique_ptr<Decoder> restart() const override { return std::make_unique<Session>(tables_); }
    bool commit_token(int32_t token) override {
        WhiteSpaceScan after;
        bool as_text = true;
        if (space_.bounded() && token >= 0 && token < engine_->vocab->n_tokens()) {
            const Vocabulary& v = *engine_->vocab;
            const int64_t lo = v.offsets[size_t(token)], hi = v.offsets[size_t(token) + 1];
            as_text = space_.takes(v.blob.data() + lo, size_t(hi - lo), after);
        }
        return commit(after, [&](auto& operations, Arena& arena, auto& beside) {
            return operations.commit_token(now_, token, arena, beside, as_text);
        });
    }
    bool commit_bytes(const uint8_t* p, size_t n) override {
        if (now_->finished || n == 0) return n == 0;
        WhiteSpaceScan after;
        if (space_.bounded() && !space_.takes(p, n, after)) return false;
        budget_.clear();  // which counts tokens
        uint8_t* kept = static_cast<uint8_t*>(arena_.own().bytes(n));
        std::copy(p, p + n, kept);
        return commit(after, [&](auto& operations, Arena& arena, auto& beside) {
            return operations.commit_bytes(now_, kept, n, arena, beside);
        });
    }
    bool rollback(int64_t n) override {
        if (n < 0 || n > now_->n_commits) return false;
        for (int64_t k = 0; k < n; ++k) now_ = now_->before;
        budget_.rolled_back(now_);
        if (differs()) items_.rollback(n);
        space_.rollback(n);
        arena_.rewind(end());
        return true;
    }
    // n_words words; bits past the vocabulary are 0.
    void mask(uint32_t* out, int64_t n_words) const override {
        engine_->mask(now_, out, n_words);
        if (differs()) items_.filter(*engine_, now_, out);
        if (space_.bounded()) {
            space_.filter(out);
            allow_end(out);
        }
    }
    // A vocabulary without end tokens has none that could be counted.
    int64_t min_tokens() const override {
        const int64_t least = least_tokens();
        if (least >= TokensToEnd::kNever)
            throw Unsupported("no end of this text was found whose terminals the vocabulary spells one by one");
        return least && engine_->vocab->eos.empty() ? least - 1 : least;
    }
    bool has_end() const override { return least_tokens() < TokensToEnd::kNever; }
    Way leave_out(const std::vector<int32_t>& tokens) override {
        const auto reduced = engine_->vocab->kept<ReducedVocabularies>().without(tokens);
        try {
            const bool is_sure = !reduced || reduced->unspelled().empty() || engine_->why_no_budgets() || !has_end();
            reduced_ = reduced;
            budget_.clear();
            tables_of_budgets_.clear();
            if (is_sure || budgets()->terminals.has_all_ends()) return Way::kSure;
            return has_end() ? Way::kNarrow : Way::kNone;
        } catch (const Unsupported&) {  // what texts need is not known
            reduced_ = reduced;
            return Way::kSure;
        }
    }
    void mask_with_end(uint32_t* out, int64_t n_words) const override { mask_within(out, n_words, TokensToEnd::kNever - 1); }
    bool has_min_tokens() const override { return !engine_->why_no_budgets(); }
    bool is_far(int64_t budget) const override {
        const int64_t n = now_->n_commits, most = budget - !engine_->vocab->eos.empty();
        if (now_->finished) return true;
        if (reduced_) {
            engine_->budget_tables();  // which throws where nothing is known
            return false;
        }
        BudgetMemo::Far far = budget_.far();
        if (far.from <= n && n < far.until && far.most <= most) return true;
        const MostToEnd& costs = engine_->most_to_end();
        far = {n, n, 0};
        engine_->run([&](auto&) {
            for (int32_t i = 0; i < now_->n; ++i) far.most = std::max(far.most, costs.of(now_->configs[i].tops, now_->configs[i].n_tops));
        });
        if (far.most > most) return false;
        // Each token takes one of the budget, and adds what it adds.
        const int64_t more = (most - far.most) / (costs.a_token() + 1);
        far.until = n + 1 + more;
        far.most += more * costs.a_token();
        budget_.keep(far);
        return true;
    }
    void mask_within(uint32_t* out, int64_t n_words, int64_t most) const override {
        const std::shared_ptr<const BudgetTables> budget = budgets();
        most = std::min(most + engine_->vocab->eos.empty(), TokensToEnd::kNever - 1);
        BudgetMemo::Found found = budget_.at(now_);
        mask(out, n_words);
        if (found.enough <= most) return;
        found.enough = engine_->run([&](auto& operations) {
            BudgetMask masks(of_cfg(operations), *budget);
            if (!masks.is_without_count(now_)) found.top = nullptr;
            return masks.narrow(now_, most, out);
        });
        if (found.top) budget_.keep(found);
    }
    bool accepting() const override {
        return engine_->run([&](auto& operations) { return operations.takes(now_, engine_->end_term); });
    }
    bool finished() const override { return now_->finished; }
    bool is_quick() const override { return engine_->frozen; }
    int64_t n_commits() const override { return now_->n_commits; }
    int32_t n_configs() const override { return now_->n; }

    // The bytes that must come next, at most `limit` of them.
    std::string forced(size_t limit) const override {
        const std::unique_ptr<Session> probe = copy();
        std::string out;
        while (out.size() < limit) {
            bool tokens = false;
            const ByteBits b = probe->bytes(tokens);
            int32_t n = 0;
            for (uint64_t w : b.w) n += __builtin_popcountll(w);
            if (tokens || n != 1) break;
            uint8_t byte = 0;
            while (!b.has(byte)) ++byte;
            if (!probe->commit_bytes(&byte, 1)) break;
            out.push_back(char(byte));
        }
        return out;
    }
    // The bytes of all commits; tokens that were taken as such and not as text have none.
    std::string text() const override {
        std::string out;
        for (const Snapshot* at = now_; at; at = at->before)
            for (int64_t i = at->n_text; i > 0; --i) out.push_back(char(at->text[i - 1]));
        std::reverse(out.begin(), out.end());
        return out;
    }
    std::string next_bytes() const override {
        bool tokens = false;
        const ByteBits b = bytes(tokens);
        std::string out;
        for (int c = 0; c < 256; ++c) if (b.has(uint8_t(c))) out.push_back(char(c));
        return out;
    }
    vector<int32_t> expected() const override {
        return engine_->run([&](auto& operations) { return operations.expected(now_); });
    }

    // Lexer states and stacks; where items must differ the text as well, since any of them may decide.
    void situation(vector<int64_t>& out) const override {
        out.push_back(now_->finished);
        put_situation(now_, out);
        if (space_.bounded()) {
            const WhiteSpaceScan at = space_.scan();
            out.insert(out.end(), {at.run, at.depth, at.in_string, at.escaped});
        }
        if (!differs()) return;
        const std::string written = text();
        out.insert(out.end(), written.begin(), written.end());
    }
    int64_t least_to_end() const override {
        if (now_->finished) return 0;
        return engine_->run([&](auto&) { return engine_->least_to_end().of(now_->configs, now_->n); });
    }

  private:
    static Operations<Cfg>& of_cfg(Operations<Cfg>& operations) { return operations; }
    static Operations<Cfg>& of_cfg(Operations<Longest>&) { throw Unsupported("no budgets under \"longest\""); }  // seen before

    Session(const Session&) = default;
    std::unique_ptr<Session> copy() const { return std::unique_ptr<Session>(new Session(*this)); }

    std::shared_ptr<Generations> tables_;  // for the next text
    std::shared_ptr<Engine> engine_;
    SharedArena arena_;
    const Snapshot* now_ = nullptr;
    DistinctText items_;    // of use only where items must differ
    WhiteSpaceText space_;  // ... where white space is bounded
    BudgetMemo budget_;
    std::shared_ptr<const ReducedVocabulary> reduced_;  // where some tokens are never text
    KeptPointer<const BudgetTables> tables_of_budgets_;  // without those tokens; the engine keeps few of them

    std::shared_ptr<const BudgetTables> budgets() const {
        return tables_of_budgets_.get([&] { return engine_->budget_tables(reduced_); });
    }
    // To the end, the end token among them, whether or not there is one; kNever: no end was found.
    int64_t least_tokens() const {
        const std::shared_ptr<const BudgetTables> budget = budgets();
        BudgetMemo::Found found = budget_.at(now_);
        if (found.least < 0) {
            found.least = engine_->run([&](auto& operations) {
                BudgetMask masks(of_cfg(operations), *budget);
                if (!masks.is_without_count(now_)) found.top = nullptr;
                return masks.min_tokens(now_);
            });
            if (found.top) budget_.keep(found);
        }
        return found.least;
    }
    static const WhiteSpaceTokens* white_space_of(const Engine& e) {  // nullptr: there is no bound
        const WhiteSpaceLimit limit{e.white_space[0], e.white_space[1]};
        return limit.bounded() ? &e.vocab->kept<WhiteSpaceTables>().of(*e.vocab, limit) : nullptr;
    }
    bool differs() const { return !engine_->distinct.empty(); }
    // The bytes that may come next; `tokens` is set if a token that is taken by its id may.
    ByteBits bytes(bool& tokens) const {
        ByteBits out = engine_->run([&](auto& operations) { return operations.next_bytes(now_, tokens); });
        if (!space_.bounded() && !differs()) return out;
        for (int c = 0; c < 256; ++c) {
            const uint8_t byte = uint8_t(c);
            if (!out.has(byte)) continue;
            const bool taken = (!space_.bounded() || space_.takes(byte)) && (!differs() || copy()->commit_bytes(&byte, 1));
            if (!taken) out.w[byte >> 6] &= ~(uint64_t(1) << (byte & 63));
        }
        return out;
    }
    // End tokens that are text as well may be cleared for their text.
    void allow_end(uint32_t* mask) const {
        for (const int32_t id : engine_->vocab->eos)
            if (!engine_->vocab->special[size_t(id)] && accepting()) mask[size_t(id) >> 5] |= 1u << (id & 31);
    }
    // The end of what the last commit wrote to the arena, in the order of commit().
    const void* end() const {
        if (const void* p = space_.end()) return p;
        if (const void* p = items_.end()) return p;
        return now_->end();
    }
    template <class Op> bool commit(const WhiteSpaceScan& after, const Op& op) {
        struct Rewind {  // what was written for nothing, if the commit is refused or an exception ends it
            Session& session;
            ~Rewind() { session.arena_.rewind(session.end()); }
        } rewind{*this};
        Arena& arena = arena_.own();
        const Snapshot* to = nullptr;
        if (differs()) {
            const auto beside_items = [&](auto& operations, auto& beside) { return op(operations, arena, beside); };
            to = items_.commit(*engine_, arena, beside_items);
        } else {
            Alone alone;
            to = engine_->run([&](auto& operations) { return op(operations, arena, alone); });
        }
        if (!to) return false;
        now_ = to;
        if (space_.bounded()) space_.commit(to->n_text ? after : space_.scan(), arena);
        return true;
    }
};

}  // namespace wfsa
