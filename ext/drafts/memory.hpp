// What drafting remembers of one text: its tokens, its layout, and which drafts were refused.
//
// The memory is brought up to date when a draft is made, so texts without drafts pay nothing. A rollback of tokens that
// it has read makes it read the text again.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "drafts/layout.hpp"
#include "runtime/decoder.hpp"
#include "vocabulary/vocabulary.hpp"

namespace wfsa {

class DraftMemory {
  public:
    Layout layout;
    vector<int32_t> tokens;  // of the text, one per commit; -1 where a commit is not a token

    // Reads the commits since the last call.
    void read(const Decoder& decoder, const Vocabulary& v) {
        if (size_t(lowest_) < tokens.size()) {
            tokens.clear();
            layout = Layout();
        }
        lowest_ = decoder.n_commits();
        decoder.commits_since(int64_t(tokens.size()), commits_);
        for (const Commit& commit : commits_) {
            tokens.push_back(v.token_of(commit.text, commit.n));
            for (int64_t i = 0; i < commit.n; ++i) layout.read(commit.text[i]);
        }
    }
    void rolled_back(int64_t n_commits) { lowest_ = std::min(lowest_, n_commits); }

  private:
    int64_t lowest_ = 0;  // the smallest number of commits since the last call
    vector<Commit> commits_;
};

}  // namespace wfsa
