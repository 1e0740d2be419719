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
#include "vocabulary/vocabulary.hpp"

namespace wfsa {

// What belongs to the grammar and the vocabulary.
struct BudgetTables {
    TerminalTokens terminals;
    SymbolCosts symbols;

    // by_id: terminals of token ids.
    BudgetTables(const LrTables& lr, const Terminals& terms, const VocabularyTrie& trie, int64_t n_words,
                 const SharedTokenWalks& shared, int32_t end_term, int32_t n_symbols, const vector<vector<int32_t>>& by_id,
                 bool thorough = false)
        : terminals(terms, trie, n_words, shared, thorough), symbols(lr, end_term, costs(terms, by_id), n_symbols, false) {}

  private:
    vector<int64_t> costs(const Terminals& terms, const vector<vector<int32_t>>& by_id) const {
        vector<int64_t> out;
        for (size_t t = 0; t < terms.size(); ++t) out.push_back(by_id[t].empty() ? terminals.whole(int32_t(t)) : 1);
        return out;
    }
};

// Of one text, and of what it may become: as long as their nodes live.
class TokensToEnd {
  public:
    static constexpr int64_t kNever = SymbolCosts::kNever;

    TokensToEnd(const BudgetTables& tables, const LrTables& lr, const Lexer& lexer)
        : tables_(tables), lr_(lr), lexer_(lexer), m_(Memory::of_thread()) {
        m_.known.clear();
        m_.arrived.resize(std::max(m_.arrived.size(), size_t(lr.n_states())), 0);
    }
    TokensToEnd(const TokensToEnd&) = delete;

    // Any number up to `enough` is as good as the least one.
    int64_t of(const Config& c, int64_t enough = 0) {
        const LexState& y = lexer_.states[c.lex];
        int64_t best = kNever;
        for (int32_t k = 0; k < c.n_tops; ++k) {
            if (y.boundary || y.root) best = std::min(best, standing_on(c.tops[k]));
            for (const Hypothesis& h : y.hyps)
                for (const int32_t component : h.main) {
                    if (best <= enough) return best;
                    const int64_t rest = tables_.terminals.rest(component, c.count);
                    if (rest < best) best = std::min(best, rest + behind(c.tops[k], lexer_.terms.term[component]));
                }
        }
        return best;
    }
    int64_t of(const Config* configs, int32_t n, int64_t enough = 0) {
        int64_t best = kNever;
        for (int32_t i = 0; i < n && best > enough; ++i) best = std::min(best, of(configs[i], enough));
        return best;
    }
    // After terminal t on a top.
    int64_t behind(const Node* top, int32_t t) {
        if (lexer_.terms[t].ignore) return standing_on(top);
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
    struct Open {
        int64_t spent;
        int32_t state, way;  // -1: has arrived in the state
        bool operator<(const Open& o) const { return spent > o.spent; }
    };
    struct Memory {  // of one thread: numbers live as long as the nodes, and one mask at a time is made
        OpenTable<Place, Value, HashPlace> known;
        vector<Place> todo, missing;
        vector<Open> open;
        vector<int64_t> arrived;  // by state: in which evaluation it was met last
        int64_t n_evaluated = 0;
        static Memory& of_thread() {
            static thread_local Memory m;
            return m;
        }
    };
    const BudgetTables& tables_;
    const LrTables& lr_;
    const Lexer& lexer_;
    Memory& m_;

    // Stacks are as deep as a text is nested, so what has to be known first is a list and no recursion.
    int64_t on(const Node* below, int32_t state) {
        int64_t out = look(below, state);
        if (out >= 0) return out;
        m_.todo.assign(1, {below, state});
        while (!m_.todo.empty()) {
            const Place at = m_.todo.back();
            if (look(at.below, at.state) >= 0) { m_.todo.pop_back(); continue; }
            m_.missing.clear();
            out = evaluate(at);
            if (m_.missing.empty()) {
                m_.known.insert(at).first.tokens = out;
                m_.todo.pop_back();
            } else {
                m_.todo.insert(m_.todo.end(), m_.missing.begin(), m_.missing.end());
            }
        }
        return look(below, state);
    }
    int64_t look(const Node* below, int32_t state) {
        const Value* const known = m_.known.find({below, state});
        return known ? known->tokens : -1;
    }
    // Dijkstra over the states on one node; values of nodes below that are not known yet go to `missing_`.  Ways ascend by
    // cost, and one is looked at when it is the cheapest of all that are left: an object of a hundred optional members
    // has a hundred ways, of which the first closes it.
    int64_t evaluate(const Place& from) {
        int64_t best = kNever;
        m_.open.assign(1, {0, from.state, -1});
        const int64_t now = ++m_.n_evaluated;
        const auto push = [&](const Open& next) {
            m_.open.push_back(next);
            std::push_heap(m_.open.begin(), m_.open.end());
        };
        while (!m_.open.empty()) {
            std::pop_heap(m_.open.begin(), m_.open.end());
            const Open at = m_.open.back();
            m_.open.pop_back();
            if (at.spent >= best) break;
            if (at.state >= lr_.unordered.first) {
                best = std::min(best, at.spent + arrive(from, at.state));
                const auto [cost, completed] = tables_.symbols.of_set(at.state);
                if (const int32_t to = from.below ? lr_.go(from.below->state, completed) : -1; to >= 0) push({at.spent + cost, to, -1});
                continue;
            }
            const auto& ways = tables_.symbols.ways(at.state);
            if (at.way < 0) {
                if (m_.arrived[at.state] == now) continue;
                m_.arrived[at.state] = now;
                best = std::min(best, at.spent + arrive(from, at.state));
            } else {
                const SymbolCosts::Way& w = ways[at.way];
                if (w.completed < 0) best = std::min(best, at.spent + 1);
                else if (from.below) {
                    const auto [to, more] = tables_.symbols.lead(from.below->state, w.completed);
                    if (to >= 0) push({at.spent + more, to, -1});
                }
            }
            if (const size_t next = at.way + 1; next < ways.size())
                push({at.spent - (at.way < 0 ? 0 : ways[at.way].least) + ways[next].least, at.state, int32_t(next)});
        }
        return best;
    }
    // Without another token on this node.
    int64_t arrive(const Place& from, int32_t state) {
        int64_t best = tables_.symbols.ends(state) ? 1 : kNever;
        if (!from.below) return best;
        for (const int32_t *n = lr_.completed_begin(state), *end = lr_.completed_end(state); n != end; ++n)
            for (int32_t b = 0; b < from.below->n_below; ++b) {
                const Node* const node = from.below->below[b];
                const auto [to, more] = tables_.symbols.lead(node->state, *n);
                if (to < 0) continue;
                const int64_t then = look(node, to);
                if (then < 0) m_.missing.push_back({node, to});
                else best = std::min(best, then + more);
            }
        return best;
    }
};

// What a constraint knows of budgets where some of the vocabulary's tokens are never text: the same tables, over the rest.

struct ReducedBudgets {
    struct Walked {  // as SharedTokenWalks wants a vocabulary
        const VocabularyTrie& trie;
        int64_t words;
        int64_t n_words() const { return words; }
    };
    std::shared_ptr<const ReducedVocabulary> vocab;
    SharedTokenWalks walks;
    BudgetTables tables;

    ReducedBudgets(std::shared_ptr<const ReducedVocabulary> v, const LrTables& lr, const Terminals& terms, int32_t end_term,
                   int32_t n_symbols, const vector<vector<int32_t>>& by_id)
        : vocab(std::move(v)), walks(Walked{vocab->trie(), vocab->n_words()}),
          tables(lr, terms, vocab->trie(), vocab->n_words(), walks, end_term, n_symbols, by_id, !vocab->unspelled().empty()) {}
};

}  // namespace wfsa
