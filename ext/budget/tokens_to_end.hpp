// How many tokens a text needs to its end, the end token among them (parser/cost_to_end.hpp).
//
// The number is the length of a way that exists, one on which every terminal ends where a token ends.  So it is never too
// small, some token lowers it by one, and it is the least number where no token spells the end of one terminal and the
// beginning of the next.
#pragma once
#include <memory>

#include "budget/terminal_tokens.hpp"
#include "parser/cost_to_end.hpp"
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

struct TokensOfRest {
    const TerminalTokens& terminals;
    int64_t operator()(int32_t component, int32_t count) const { return terminals.rest(component, count); }
};
using TokensToEnd = CostToEnd<TokensOfRest>;

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
