// What all constraints over one vocabulary share: its tokens, their trie, and caches of what depends on nothing else.
#pragma once
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <typeindex>

#include "profiles/cache.hpp"

namespace wfsa {

struct Vocabulary {
    vector<uint8_t> blob;
    vector<int64_t> offsets;
    vector<uint8_t> special;   // per token: no text
    vector<int32_t> eos;
    int64_t size = 0;          // width of a mask in tokens
    VocabularyTrie trie;
    ProfileCache profiles;

    // `budget`: for what is kept for the next constraint, of this vocabulary and others.
    explicit Vocabulary(const std::shared_ptr<CacheBudget>& budget) : profiles(budget) {}

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
    template <class T> const T& kept() {
        const ForkGate::Change change;
        std::lock_guard<std::mutex> lock(kept_mutex_);
        std::shared_ptr<const void>& slot = kept_[std::type_index(typeid(T))];
        if (!slot) slot = std::make_shared<const T>(*this);
        return *static_cast<const T*>(slot.get());
    }

  private:
    std::mutex kept_mutex_;
    std::map<std::type_index, std::shared_ptr<const void>> kept_;
};

}  // namespace wfsa
