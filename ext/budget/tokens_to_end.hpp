// How many tokens a text needs to its end, the end token among them: a weighted pushdown system over (min, +).
//
//   on(b, q)        state q on node b of the stacks: the fewest of
//                     1                                   q takes the end
//                     on(b', goto(b', N)), b' below b     q completes N
//                     cost + on(b, goto(b, N))            shifting one symbol at that cost completes N  (symbol_costs.hpp)
//   of(configs)     the rest of a terminal, and what stands behind it: terminal_tokens.hpp and on()
//
// That is pre* of the end over the stacks (Reps, Schwoon, Jha and Melski 2005), evaluated on demand and kept for each
// (node, state), so that texts which share a stack share its values.
//
// The number is the length of a way that exists, one on which every terminal ends where a token ends.  So it is never too
// small, some token lowers it by one, and it is the least number where no token spells the end of one terminal and the
// beginning of the next.
#pragma once
#include <memory>

#include "budget/terminal_tokens.hpp"
#include "containers/open_table.hpp"
#include "lexer/lexer.hpp"
#include "parser/gss.hpp"
#include "parser/symbol_costs.hpp"

namespace wfsa {

// What belongs to the grammar and the vocabulary.
struct BudgetTables {
    TerminalTokens terminals;
    SymbolCosts symbols;

    // by_id: terminals of token ids.
    BudgetTables(const LrTables& lr, const Terminals& terms, const VocabularyTrie& trie, int64_t n_words, int32_t end_term,
                 int32_t n_symbols, const vector<vector<int32_t>>& by_id)
        : terminals(terms, trie, n_words), symbols(lr, end_term, costs(terms, by_id), n_symbols) {}

  private:
    vector<int64_t> costs(const Terminals& terms, const vector<vector<int32_t>>& by_id) const {
        vector<int64_t> out;
        for (size_t t = 0; t < terms.start.size(); ++t) out.push_back(by_id[t].empty() ? terminals.whole(int32_t(t)) : 1);
        return out;
    }
};

// Of one text, and of what it may become: as long as their nodes live.
class TokensToEnd {
  public:
    static constexpr int64_t kNever = SymbolCosts::kNever;

    TokensToEnd(const BudgetTables& tables, const LrTables& lr, const Lexer& lexer)
        : tables_(tables), lr_(lr), lexer_(lexer) {}

    int64_t of(const Config& c) {
        const LexState& y = lexer_.states[size_t(c.lex)];
        int64_t best = kNever;
        for (int32_t k = 0; k < c.n_tops; ++k) {
            if (y.boundary || y.root) best = std::min(best, standing_on(c.tops[k]));
            for (const Hypothesis& h : y.hyps)
                for (const int32_t component : h.main) {
                    const int64_t rest = tables_.terminals.rest(component, c.count);
                    if (rest < best) best = std::min(best, rest + behind(c.tops[k], lexer_.terms.term[size_t(component)]));
                }
        }
        return best;
    }
    int64_t of(const Config* configs, int32_t n) {
        int64_t best = kNever;
        for (int32_t i = 0; i < n; ++i) best = std::min(best, of(configs[i]));
        return best;
    }
    // After terminal t on a top.
    int64_t behind(const Node* top, int32_t t) {
        if (lexer_.terms.ignore[size_t(t)]) return standing_on(top);
        const int32_t to = lr_.go(top->state, t);
        return to < 0 ? kNever : on(top, to);
    }
    int64_t standing_on(const Node* top) {
        if (!top->n_below) return on(nullptr, top->state);
        int64_t best = kNever;
        for (int32_t b = 0; b < top->n_below; ++b) best = std::min(best, on(top->below[b], top->state));
        return best;
    }

  private:
    struct Place {
        const Node* below;
        int32_t state;
        bool operator==(const Place& o) const { return below == o.below && state == o.state; }
    };
    struct HashPlace {
        size_t operator()(const Place& p) const noexcept { return hash_of(p.below, p.state); }
    };
    struct Value { int64_t tokens = -1; };
    const BudgetTables& tables_;
    const LrTables& lr_;
    const Lexer& lexer_;
    OpenTable<Place, Value, HashPlace> known_;
    vector<Place> todo_, missing_;
    vector<std::pair<int64_t, int32_t>> open_;  // tokens spent, state
    vector<int32_t> closed_;

    // Stacks are as deep as a text is nested, so what has to be known first is a list and no recursion.
    int64_t on(const Node* below, int32_t state) {
        int64_t out = look(below, state);
        if (out >= 0) return out;
        todo_.assign(1, {below, state});
        while (!todo_.empty()) {
            const Place at = todo_.back();
            if (look(at.below, at.state) >= 0) { todo_.pop_back(); continue; }
            missing_.clear();
            out = evaluate(at);
            if (missing_.empty()) {
                known_.insert(at).first.tokens = out;
                todo_.pop_back();
            } else {
                todo_.insert(todo_.end(), missing_.begin(), missing_.end());
            }
        }
        return look(below, state);
    }
    int64_t look(const Node* below, int32_t state) {
        const Value* const known = known_.find({below, state});
        return known ? known->tokens : -1;
    }
    // Dijkstra over the states on one node; values of nodes below that are not known yet go to `missing_`.
    int64_t evaluate(const Place& from) {
        int64_t best = kNever;
        open_.assign(1, {0, from.state});
        closed_.clear();
        const auto later = [](const auto& a, const auto& b) { return a > b; };
        while (!open_.empty()) {
            std::pop_heap(open_.begin(), open_.end(), later);
            const auto [spent, state] = open_.back();
            open_.pop_back();
            if (spent >= best) break;
            if (std::find(closed_.begin(), closed_.end(), state) != closed_.end()) continue;
            closed_.push_back(state);
            if (tables_.symbols.ends(state)) best = std::min(best, spent + 1);
            if (from.below)
                for (const int32_t *n = lr_.completed_begin(state), *end = lr_.completed_end(state); n != end; ++n)
                    for (int32_t b = 0; b < from.below->n_below; ++b) {
                        const Node* const node = from.below->below[b];
                        const int32_t to = lr_.go(node->state, *n);
                        if (to < 0) continue;
                        const int64_t then = look(node, to);
                        if (then < 0) missing_.push_back({node, to});
                        else best = std::min(best, spent + then);
                    }
            for (const SymbolCosts::Way& w : tables_.symbols.ways(tables_.symbols.base(state))) {
                if (w.completed < 0) { best = std::min(best, spent + w.least + 1); continue; }
                const int32_t to = from.below ? lr_.go(from.below->state, w.completed) : -1;
                if (to < 0) continue;
                open_.push_back({spent + w.least, to});
                std::push_heap(open_.begin(), open_.end(), later);
            }
        }
        return best;
    }
};

}  // namespace wfsa
