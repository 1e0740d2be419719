// A vocabulary without some of its text tokens: those that end one sequence, and so are never text there.
//
//   unspelled   the tokens among them whose bytes no other tokens spell, one after another
//
// Where there are none, whatever the vocabulary spells is spelled without them, too, only by more tokens.  Else there may
// be texts that cannot be written any more, and beginnings of texts that cannot be completed.
//
// Cost: the tokens' own bytes to know that; a trie of the whole vocabulary, made when it is asked for, for all else.
#pragma once
#include <mutex>
#include <string>

#include "vocabulary/vocabulary.hpp"

namespace wfsa {

class ReducedVocabulary {
  public:
    // tokens: ascending, text tokens of the vocabulary.  The vocabulary outlives this.
    ReducedVocabulary(const Vocabulary& from, vector<int32_t> tokens) : from_(from), left_out_(std::move(tokens)) {
        for (const int32_t token : left_out_)
            if (!is_spelled(token)) unspelled_.push_back(token);
    }
    const vector<int32_t>& unspelled() const { return unspelled_; }
    int64_t n_words() const { return from_.n_words(); }
    const VocabularyTrie& trie() const {
        std::call_once(once_, [&] {
            vector<Word> words;
            for (const Word& w : from_.trie.words())
                if (!has(w.token)) words.push_back(w);
            trie_ = VocabularyTrie(words, from_.n_words());
        });
        return trie_;
    }

  private:
    const Vocabulary& from_;
    const vector<int32_t> left_out_;
    vector<int32_t> unspelled_;
    mutable std::once_flag once_;
    mutable VocabularyTrie trie_;

    bool has(int32_t token) const { return std::binary_search(left_out_.begin(), left_out_.end(), token); }
    bool is_spelled(int32_t token) const {
        const size_t begin = size_t(from_.offsets[token]), n = size_t(from_.offsets[token + 1]) - begin;
        const uint8_t* const text = from_.blob.data() + begin;
        vector<bool> reached(n + 1, false);
        reached[0] = true;
        for (size_t at = 0; at < n; ++at) {
            if (!reached[at]) continue;
            int32_t node = 0;
            for (size_t end = at; end < n; ++end) {
                node = child(node, text[end]);
                if (node < 0) break;
                if (from_.trie[node].own && remains(from_.trie[node].slot_lo)) reached[end + 1] = true;
            }
        }
        return reached[n];
    }
    int32_t child(int32_t node, uint8_t byte) const {
        const vector<uint8_t>& bytes = from_.trie.byte;
        const auto begin = bytes.begin() + from_.trie[node].first_child, end = bytes.begin() + from_.trie[node].end_child;
        const auto at = std::lower_bound(begin, end, byte);
        return at == end || *at != byte ? -1 : int32_t(at - bytes.begin());
    }
    bool remains(int32_t slot) const {  // a token with these bytes
        const VocabularyTrie& trie = from_.trie;
        for (int32_t k = trie.slot_indptr[slot]; k < trie.slot_indptr[slot + 1]; ++k)
            if (!has(trie.slot_tokens[k])) return true;
        return false;
    }
};

// Of a vocabulary (Vocabulary::kept): those that were asked for last.  By any thread.
class ReducedVocabularies {
  public:
    explicit ReducedVocabularies(const Vocabulary& from) : from_(from) {}
    // nullptr: none of the tokens is text.
    std::shared_ptr<const ReducedVocabulary> without(const vector<int32_t>& tokens) {
        vector<int32_t> texts;
        for (const int32_t t : tokens)
            if (t >= 0 && t < from_.n_tokens() && !from_.special[t] && from_.offsets[t] < from_.offsets[t + 1])
                texts.push_back(t);
        std::sort(texts.begin(), texts.end());
        texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
        if (texts.empty()) return nullptr;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (known_.size() >= kMost && !known_.count(texts)) known_.clear();
        std::shared_ptr<const ReducedVocabulary>& known = known_[texts];
        if (!known) known = std::make_shared<const ReducedVocabulary>(from_, texts);
        return known;
    }

  private:
    static constexpr size_t kMost = 16;
    const Vocabulary& from_;
    std::mutex mutex_;
    std::map<vector<int32_t>, std::shared_ptr<const ReducedVocabulary>> known_;
};

}  // namespace wfsa
