// How many bytes a text needs at least to become a sentence, read off its stacks: the estimate of closing.hpp.
//
// least(symbol)     the fewest bytes of a word: of a terminal by its DFA, of a nonterminal over the ways N -> X Y in which
//                   the LR automaton completes it (Knuth's generalisation of Dijkstra's algorithm, here by rounds)
// of(configs)       from a stack with state q on node b, to the end of the text, cheapest first:
//                     q completes N          two states go, and N leads on from below; no bytes
//                     q shifts all of Y,     which completes N: least(Y) bytes, and N leads on from b
//                     q takes the end        done
//                   and before that, from where the lexer stands, the rest of a terminal.
//
//                     q has a set of members its list is gone through to its end (symbol_costs.hpp)
//
// Exact for a plain grammar under "cfg", and for members in any order.  Too small, never too large, where the tables do not
// tell all: counted terminals count their missing units as a byte each, very many open conditions, items that must differ and longest
// matches are not looked at.
// Cost: least() once for a grammar, of() some steps for each state on the stack, and for a set its list's members.
#pragma once
#include <deque>
#include <map>
#include <queue>
#include <utility>

#include "lexer/lexer.hpp"
#include "parser/gss.hpp"
#include "parser/symbol_costs.hpp"

namespace wfsa {

class LeastToEnd {
  public:
    static constexpr int64_t kNever = SymbolCosts::kNever;

    LeastToEnd(const LrTables& lr, const Lexer& lexer, int32_t end_term, int32_t n_symbols)
        : lr_(lr), lexer_(lexer), costs_(lr, end_term, of_terminals(), n_symbols, true) {}

    // Of all configurations the least.  Lexer states and LR tables as they are now.
    int64_t of(const Config* configs, int32_t n) const {
        Search search(*this);
        for (int32_t i = 0; i < n; ++i) {
            const Config& c = configs[i];
            const LexState& y = lexer_.states[c.lex];
            for (int32_t k = 0; k < c.n_tops; ++k) {
                if (y.boundary || y.root) search.stand_on(c.tops[k], 0);
                for (const Hypothesis& h : y.hyps)
                    for (int32_t component : h.main) {
                        const int32_t t = lexer_.terms.term[component];
                        const int64_t rest = rest_of(t, component, c.count);
                        if (lexer_.terms[t].ignore) search.stand_on(c.tops[k], rest);
                        else search.add(c.tops[k], lr_.go(c.tops[k]->state, t), rest);
                    }
            }
        }
        return search.run();
    }

  private:
    const LrTables& lr_;
    const Lexer& lexer_;
    vector<int64_t> rest_;     // by component: the fewest bytes to an end
    vector<int64_t> between_;  // ... the fewest that begin no unit, as the quote after a string's characters
    const SymbolCosts costs_;

    // The fewest bytes to an end of terminal t, of which `count` units are read.  A unit has at least a byte.
    int64_t rest_of(int32_t t, int32_t component, int32_t count) const {
        const Terminals& terms = lexer_.terms;
        const int64_t rest = rest_[component];
        if (rest == kNever || !terms[t].counted || !terms.most_left[component]) return rest;
        return std::max(rest, std::max<int64_t>(terms[t].least - count, 0) + between_[component]);
    }
    // Breadth first from the accepting components, backwards, where an edge that begins a unit takes no step.
    void find_between(const vector<vector<int32_t>>& before) {
        const Terminals& terms = lexer_.terms;
        between_.assign(terms.term.size(), kNever);
        std::deque<std::pair<int32_t, int64_t>> todo;
        for (size_t c = 0; c < terms.term.size(); ++c)
            if (terms.accept[c]) todo.push_back({int32_t(c), 0});
        while (!todo.empty()) {
            const auto [to, steps] = todo.front();
            todo.pop_front();
            if (between_[to] <= steps) continue;
            between_[to] = steps;
            int32_t last = -1;
            for (int32_t from : before[to]) {  // once for each edge, those of one state as neighbours
                if (std::exchange(last, from) == from) continue;
                for (int32_t e = terms.indptr[from]; e < terms.indptr[from + 1]; ++e) {
                    if (terms.edges[e].target != to) continue;
                    if (terms.edges[e].count) todo.push_front({from, steps});
                    else todo.push_back({from, steps + 1});
                }
            }
        }
    }
    // Breadth first from the accepting components, backwards.
    vector<int64_t> of_terminals() {
        const Terminals& terms = lexer_.terms;
        const size_t n = terms.term.size();
        vector<vector<int32_t>> before(n);
        rest_.assign(n, kNever);
        vector<int32_t> todo;
        for (size_t c = 0; c < n; ++c) {
            for (int32_t e = terms.indptr[c]; e < terms.indptr[c + 1]; ++e) before[terms.edges[e].target].push_back(int32_t(c));
            if (terms.accept[c]) { rest_[c] = 0; todo.push_back(int32_t(c)); }
        }
        for (size_t k = 0; k < todo.size(); ++k)
            for (int32_t c : before[todo[k]])
                if (rest_[c] == kNever) { rest_[c] = rest_[todo[k]] + 1; todo.push_back(c); }
        find_between(before);
        vector<int64_t> least(terms.size(), kNever);
        for (size_t t = 0; t < terms.size(); ++t) {  // no terminal is empty here
            const int32_t c = terms[t].start;
            if (c < 0) continue;
            for (int32_t e = terms.indptr[c]; e < terms.indptr[c + 1]; ++e)
                least[t] = std::min(least[t], rest_[terms.edges[e].target] + 1);
            if (least[t] < kNever) least[t] = std::max(least[t], rest_of(int32_t(t), c, 0));
        }
        return least;
    }
    // Dijkstra over (node, state on it).
    class Search {
      public:
        explicit Search(const LeastToEnd& of) : of_(of) {}
        void add(const Node* below, int32_t state, int64_t bytes) {
            if (state < 0 || bytes >= kNever) return;
            const auto got = known_.emplace(std::make_pair(below, state), bytes);
            if (!got.second && got.first->second <= bytes) return;
            got.first->second = bytes;
            open_.push({bytes, below, state});
        }
        // A nonterminal behind what a node stands for.
        void lead(const Node* node, int32_t nonterminal, int64_t bytes) {
            const auto [to, more] = of_.costs_.lead(node->state, nonterminal);
            add(node, to, bytes + more);
        }
        void stand_on(const Node* top, int64_t bytes) {
            if (!top->n_below) add(nullptr, top->state, bytes);
            for (int32_t b = 0; b < top->n_below; ++b) add(top->below[b], top->state, bytes);
        }
        int64_t run() {
            while (!open_.empty()) {
                const Open at = open_.top();
                open_.pop();
                if (at.state < 0) return at.bytes;
                if (known_.at({at.below, at.state}) < at.bytes) continue;
                const LrTables& lr = of_.lr_;
                if (of_.costs_.ends(at.state)) return at.bytes;
                if (at.below)
                    for (const int32_t *d = lr.completed_begin(at.state), *end = lr.completed_end(at.state); d != end; ++d)
                        for (int32_t b = 0; b < at.below->n_below; ++b) lead(at.below->below[b], *d, at.bytes);
                if (at.state >= lr.unordered.first) {
                    const auto [cost, completed] = of_.costs_.of_set(at.state);
                    if (at.below) lead(at.below, completed, at.bytes + cost);
                    continue;
                }
                for (const SymbolCosts::Way& w : of_.costs_.ways(at.state)) {
                    if (w.completed < 0) open_.push({at.bytes + w.least, nullptr, -1});
                    else if (at.below) lead(at.below, w.completed, at.bytes + w.least);
                }
            }
            return kNever;
        }

      private:
        struct Open {
            int64_t bytes;
            const Node* below;
            int32_t state;  // -1: the end of the text
            bool operator<(const Open& o) const { return bytes > o.bytes; }
        };
        const LeastToEnd& of_;
        std::map<std::pair<const Node*, int32_t>, int64_t> known_;
        std::priority_queue<Open> open_;
    };
};

}  // namespace wfsa
