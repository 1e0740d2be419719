// A decoder whose text is ended by other tokens than the vocabulary's end tokens.
//
//   mask      (text tokens - stop tokens - the vocabulary's end tokens)  ∪  (the stop tokens, if the text may end here)
//   commit    a stop token ends the text where it may end; an end token of the vocabulary that is none is never taken
//
// So a stop token is never text, and the end of the text is exactly as it would be.  What is needed to the end is counted
// without these tokens.  Where the text needs what only they spell, there is no state; where a part of the grammar does
// (Way::kNarrow), tokens after which that part would have to follow are refused.  Bytes are not: whoever commits bytes may
// write what no token spells.  That a grammar takes none of these
// tokens by its id is for the caller to see to: what ends the text could not be told from what goes on.
#pragma once
#include <algorithm>

#include "errors.hpp"
#include "runtime/decoder.hpp"

namespace wfsa {

class Stopping final : public Decoder {
  public:
    // Both lists ascending; `ends` are the vocabulary's.  Takes `inner`, before its first token.
    // Unsupported: the text cannot be completed without these tokens.
    Stopping(Decoder* inner, std::vector<int32_t> ends, std::vector<int32_t> stops)
        : Stopping(std::unique_ptr<Decoder>(inner), std::make_shared<const Tokens>(Tokens{std::move(ends), std::move(stops)})) {
        leave_out();
    }

    std::unique_ptr<Decoder> fork() const override {
        auto out = std::unique_ptr<Stopping>(new Stopping(inner_->fork(), tokens_));
        out->ended_ = ended_;
        out->way_ = way_;
        return out;
    }
    std::unique_ptr<Decoder> restart() const override {
        auto out = std::unique_ptr<Stopping>(new Stopping(inner_->restart(), tokens_));
        out->leave_out();
        return out;
    }
    bool commit_token(int32_t token) override {
        if (ended_) return false;
        if (has(tokens_->stops, token)) return ended_ = inner_->accepting();
        return !has(tokens_->ends, token) && inner_->commit_token(token) && keeps_end();
    }
    bool commit_bytes(const uint8_t* p, size_t n) override { return ended_ ? n == 0 : inner_->commit_bytes(p, n); }
    bool rollback(int64_t n) override {
        if (n < 0 || n > n_commits()) return false;
        if (n == 0) return true;
        if (!inner_->rollback(n - ended_)) return false;
        ended_ = false;
        return true;
    }
    int64_t n_commits() const override { return inner_->n_commits() + ended_; }
    void mask(uint32_t* out, int64_t n_words) const override {
        if (!ended_ && way_ == Way::kNarrow) inner_->mask_with_end(out, n_words);
        else if (!ended_) inner_->mask(out, n_words);
        end_by_stops(out, n_words);
    }
    Way leave_out(const std::vector<int32_t>& tokens) override { return inner_->leave_out(tokens); }
    void mask_with_end(uint32_t* out, int64_t n_words) const override { mask(out, n_words); }
    bool has_end() const override { return ended_ || inner_->has_end(); }
    int64_t min_tokens() const override { return ended_ ? 0 : inner_->min_tokens() + tokens_->ends.empty(); }
    bool has_min_tokens() const override { return inner_->has_min_tokens(); }
    bool is_far(int64_t budget) const override { return ended_ || inner_->is_far(budget - tokens_->ends.empty()); }
    void mask_within(uint32_t* out, int64_t n_words, int64_t most) const override {
        if (!ended_) inner_->mask_within(out, n_words, most - tokens_->ends.empty());
        end_by_stops(out, n_words);
    }
    bool accepting() const override { return !ended_ && inner_->accepting(); }
    bool finished() const override { return ended_; }
    bool is_quick() const override { return way_ != Way::kNarrow && inner_->is_quick(); }
    std::string text() const override { return inner_->text(); }
    std::string forced(size_t limit) const override { return ended_ ? std::string() : inner_->forced(limit); }
    std::string next_bytes() const override { return ended_ ? std::string() : inner_->next_bytes(); }
    std::vector<int32_t> expected() const override { return ended_ ? std::vector<int32_t>() : inner_->expected(); }
    int32_t n_configs() const override { return inner_->n_configs(); }
    void situation(std::vector<int64_t>& out) const override {
        inner_->situation(out);
        out.push_back(ended_);
    }
    int64_t least_to_end() const override { return inner_->least_to_end(); }

  private:
    struct Tokens {
        std::vector<int32_t> ends, stops;
    };
    std::unique_ptr<Decoder> inner_;
    std::shared_ptr<const Tokens> tokens_;
    bool ended_ = false;
    Way way_ = Way::kSure;

    Stopping(std::unique_ptr<Decoder> inner, std::shared_ptr<const Tokens> tokens)
        : inner_(std::move(inner)), tokens_(std::move(tokens)) {}
    void leave_out() {
        std::vector<int32_t> never(tokens_->ends);
        never.insert(never.end(), tokens_->stops.begin(), tokens_->stops.end());
        way_ = inner_->leave_out(never);
        if (way_ != Way::kNone) return;
        std::string stops;
        for (const int32_t t : tokens_->stops) stops += (stops.empty() ? "" : ", ") + std::to_string(t);
        throw Unsupported("stop_ids [" + stops + "]: no text can be completed without these tokens as text, because no others "
                          "spell what they spell; stop at other tokens, or change the grammar");
    }
    // After a commit that was taken: is there an end still?  Else the commit is taken back.
    bool keeps_end() {
        if (way_ != Way::kNarrow || inner_->has_end()) return true;
        inner_->rollback(1);
        return false;
    }
    void end_by_stops(uint32_t* out, int64_t n_words) const {
        if (ended_) {
            std::memset(out, 0, size_t(n_words) * 4);
            return;
        }
        for (int32_t t : tokens_->ends) out[size_t(t) >> 5] &= ~(1u << (t & 31));
        const bool may_end = inner_->accepting();
        for (int32_t t : tokens_->stops) {
            const uint32_t bit = 1u << (t & 31);
            uint32_t& word = out[size_t(t) >> 5];
            word = may_end ? word | bit : word & ~bit;
        }
    }
    static bool has(const std::vector<int32_t>& sorted, int32_t token) {
        return std::binary_search(sorted.begin(), sorted.end(), token);
    }
};

}  // namespace wfsa
