// A mask under a budget: the allowed tokens after which the text can be completed with one token fewer.
//
//   inside a terminal   what the stack says is needed behind it (TokensToEnd), and what is left of it: where no token can
//                       make that too much all are taken, else by where each of them ends (TerminalTokens)
//   past its end        the tails that tokens leave are parsed on the real stack, together where they begin alike; a tail
//                       counts where the text behind it is cheap enough
//   by their id         parsed one by one
//
// Far from the limit none of this is asked (budget_memo.hpp).
// What else bounds a text is in the plain mask, of which this is a part.  Policy "cfg" only.
#pragma once
#include "budget/tokens_to_end.hpp"
#include "runtime/operations.hpp"

namespace wfsa {

class BudgetMask {
  public:
    explicit BudgetMask(Operations<Cfg>& operations, const BudgetTables& budget)
        : o_(operations), tables_(operations.access().tables), budget_(budget), to_end_(budget, tables_.lr, tables_.lexer) {}

    // May what is found here be remembered?
    bool is_without_count(const Snapshot* at) const {
        return !at->finished && at->n == 1 && !o_.access().lex(at->configs[0].lex).counted;
    }
    int64_t min_tokens(const Snapshot* at) {
        if (at->finished) return 0;
        for (int32_t i = 0; i < at->n; ++i) o_.access().lex(at->configs[i].lex);
        return to_end_.of(at->configs, at->n);
    }
    // `mask` is the plain one; tokens after which more than `most` are needed go.  Where none goes: a number that is enough
    // after each of them, else kNever.
    int64_t narrow(const Snapshot* at, int64_t most, uint32_t* mask) {
        worst_ = 0;
        const size_t n_words = size_t(tables_.vocab->n_words());
        vector<uint32_t> kept(n_words, 0u);
        if (takes_all_inside(at, most)) {
            o_.mask_by(at, kept.data(), int64_t(n_words), [&](const Config& c, int32_t number, MaskWriter out) {
                const TerminalEnd& end = tables_.profiler.terminal_ends[number];
                add_tails(budget_.terminals.tails_of(number, end.tails->slots), c, end.term, most, out);
            });
        } else {
            worst_ = TokensToEnd::kNever;
            o_.scratch().arena.clear();
            for (int32_t i = 0; i < at->n; ++i) add(at->configs[i], most, {kept.data()});
        }
        if (o_.takes(at, tables_.end_term))
            for (const int32_t id : tables_.vocab->eos) kept[size_t(id) >> 5] |= 1u << (id & 31);
        for (size_t w = 0; w < n_words; ++w) mask[w] &= kept[w];
        return worst_;
    }

  private:
    struct Level {  // a node of a trie of tails, and the configurations behind its bytes
        int32_t child, end;
        vector<Config> configs;
    };
    Operations<Cfg>& o_;
    const Tables& tables_;
    const BudgetTables& budget_;
    TokensToEnd to_end_;
    int64_t worst_ = 0;

    bool takes_all_inside(const Snapshot* at, int64_t most) {
        for (int32_t i = 0; i < at->n; ++i) {
            const Config& c = at->configs[i];
            const LexState& y = o_.access().lex(c.lex);
            for (const Hypothesis& h : y.hyps)
                for (const int32_t component : h.main) {
                    const int32_t t = tables_.lexer.terms.term[component];
                    const int64_t needed = to_end_.behind(c.tops[0], t) + budget_.terminals.most_inside(t, c.count);
                    if (needed > most) return false;
                    worst_ = std::max(worst_, needed);
                }
            bool by_id = false;
            if (y.boundary) tables_.each_shifted_token(c.tops[0]->state, [&](int32_t t) { by_id |= t != tables_.end_term; });
            if (by_id) return false;
        }
        return true;
    }
    void add(const Config& c, int64_t most, MaskWriter kept) {
        const LexState& y = o_.access().lex(c.lex);
        for (const Hypothesis& h : y.hyps)
            for (const int32_t component : h.main) {
                const int32_t t = tables_.lexer.terms.term[component];
                const TerminalTokens::Tokens& tokens = budget_.terminals.of(component);
                add_inside(tokens, c.count, most - to_end_.behind(c.tops[0], t), kept);
                add_tails(tokens.walk->tails, c, t, most, kept);
            }
        if (!y.boundary) return;
        tables_.each_shifted_token(c.tops[0]->state, [&](int32_t t) {
            if (t == tables_.end_term) return;
            vector<Config> after;
            Alone alone;
            o_.policy().shift(after, c, t, o_.scratch().arena, alone);
            if (to_end_.of(after.data(), int32_t(after.size()), most) > most) return;
            for (const int32_t id : tables_.token_ids[t]) kept.set(id);
        });
    }
    void add_inside(const TerminalTokens::Tokens& tokens, int32_t count, int64_t most, MaskWriter kept) const {
        for (const TokenWalk::Group& g : tokens.walk->inside) {
            if (budget_.terminals.rest(tokens.component(g.state), count + g.units) > most) continue;
            kept.add(g.bitmap);
            for (const int32_t id : g.tokens) kept.set(id);
        }
    }
    void add_tails(const Trie& tails, const Config& c, int32_t t, int64_t most, MaskWriter kept) {
        const Terminals& terms = tables_.lexer.terms;
        Arena& arena = o_.scratch().arena;
        Alone alone;
        if (tails.n_nodes() < 2) return;
        vector<Config> next;
        o_.policy().shift(next, c, t, arena, alone);
        vector<Level> open;
        open.push_back({tails[0].first_child, tails[0].end_child, std::move(next)});
        while (!open.empty()) {
            if (open.back().child == open.back().end) { open.pop_back(); continue; }
            const int32_t node = open.back().child++;
            o_.step(open.back().configs, tails.byte[node], next, arena);
            if (next.empty()) continue;
            const int64_t needed = tails[node].own ? to_end_.of(next.data(), int32_t(next.size()), most) : 0;
            worst_ = std::max(worst_, needed <= most ? needed : TokensToEnd::kNever);
            if (tails[node].own && needed <= most) {
                const size_t slot = size_t(tails[node].slot_lo);
                for (int32_t k = tails.slot_indptr[slot]; k < tails.slot_indptr[slot + 1]; ++k) {
                    const int32_t units = tails.slot_counts.empty() ? 0 : tails.slot_counts[k];
                    const int32_t id = tails.slot_tokens[k];
                    if (terms.takes(t, c.count + units)) kept.set(id);
                }
            }
            const int32_t lo = tails[node].first_child, hi = tails[node].end_child;
            if (lo == hi) continue;
            o_.policy().shift_completed(next, hi - lo == 1 ? tails.byte[lo] : -1, arena, alone);
            open.push_back({lo, hi, next});
        }
    }
};

}  // namespace wfsa
