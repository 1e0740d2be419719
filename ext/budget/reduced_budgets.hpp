// What a constraint knows of budgets where some of the vocabulary's tokens are never text: the same tables, over the rest.
#pragma once
#include "budget/tokens_to_end.hpp"
#include "vocabulary/reduced_vocabulary.hpp"

namespace wfsa {

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
