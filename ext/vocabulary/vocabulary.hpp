// What all constraints over one vocabulary share: its tokens, their trie, and what others keep with it.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <typeindex>

#include "containers/cache_budget.hpp"
#include "containers/fork_gate.hpp"
#include "vocabulary/vocabulary_trie.hpp"

namespace wfsa {

struct Vocabulary {
    vector<uint8_t> blob;
    vector<int64_t> offsets;
    vector<uint8_t> special;   // per token: no text
    vector<int32_t> eos;
    int64_t size = 0;          // width of a mask in tokens
    VocabularyTrie trie;
    const std::shared_ptr<CacheBudget> budget;  // for what is kept for the next constraint, of this or another one

    explicit Vocabulary(std::shared_ptr<CacheBudget> b) : budget(std::move(b)) {}

    int64_t n_tokens() const { return int64_t(offsets.size()) - 1; }
    int64_t n_words() const { return (size + 31) / 32; }
    void build() {
        vector<Word> words;
        for (int64_t i = 0; i < n_tokens(); ++i)
            if (!special[i] && offsets[i + 1] > offsets[i])
                words.push_back({blob.data() + offsets[i], int32_t(offsets[i + 1] - offsets[i]), int32_t(i)});
        trie = VocabularyTrie(words, n_words());
    }

    // What others keep with a vocabulary, one T each, made of it on first use.
    template <class T> T& kept() {
        const ForkGate::Change change;
        std::lock_guard<std::mutex> lock(kept_mutex_);
        std::shared_ptr<void>& slot = kept_[std::type_index(typeid(T))];
        if (!slot) slot = std::make_shared<T>(*this);
        return *static_cast<T*>(slot.get());
    }

  private:
    std::mutex kept_mutex_;
    std::map<std::type_index, std::shared_ptr<void>> kept_;
};

}  // namespace wfsa
