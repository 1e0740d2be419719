// One sequence being decoded: a snapshot, the arena it writes to, and the engine it reads.
//
// fork() shares everything so far: the child reads the parent's arena, which it keeps alive, and writes to its own.
// A Session is used by one thread at a time; sessions of one engine run in parallel.
#pragma once
#include "ahead.hpp"
#include "json/distinct_mask.hpp"
#include "runtime/decoder.hpp"
#include "artifact/pack.hpp"

namespace wfsa {

class Session final : public Decoder {
  public:
    explicit Session(std::shared_ptr<Engine> engine) : engine_(std::move(engine)), arena_(std::make_shared<Arena>()) {
        now_ = engine_->run([&](bool grow) { return engine_->start(*arena_, grow); });
    }
    std::unique_ptr<Decoder> fork() const override { return copy(); }
    std::unique_ptr<Decoder> restart() const override { return std::make_unique<Session>(engine_); }
    bool commit_token(int32_t token) override {
        return commit([&](bool grow, JsonScan* scan, std::string* text) { return engine_->commit_token(now_, token, *arena_, grow, scan, text); });
    }
    bool commit_bytes(const uint8_t* p, size_t n) override {
        if (now_->finished || n == 0) return n == 0;
        uint8_t* kept = static_cast<uint8_t*>(arena_->bytes(n));
        std::copy(p, p + n, kept);
        return commit([&](bool grow, JsonScan* scan, std::string* text) { return engine_->commit_bytes(now_, kept, n, *arena_, grow, scan, text); });
    }
    bool rollback(int64_t n) override {
        if (n < 0 || n > now_->n_commits) return false;
        for (; n; --n) {
            now_ = now_->before;
            if (past_) past_ = past_->before;
        }
        if (!engine_->distinct.empty()) text_.resize(size_t(scan().n));
        return true;
    }
    // n_words words; bits past the vocabulary are 0.
    void mask(uint32_t* out, int64_t n_words) const override {
        engine_->run([&](bool grow) {
            engine_->mask(now_, out, n_words, grow);
            return 0;
        });
        if (!engine_->distinct.empty()) DistinctMask(*engine_, text_).filter(now_, scan(), out);
    }
    bool accepting() const override {
        return engine_->run([&](bool grow) { return engine_->takes(now_, engine_->end_term, grow); });
    }
    bool finished() const override { return now_->finished; }
    int64_t n_commits() const override { return now_->n_commits; }
    int32_t n_configs() const override { return now_->n; }

    // The bytes that must come next, at most `limit` of them.
    std::string forced(size_t limit) const override {
        const std::unique_ptr<Session> probe = copy();
        std::string out;
        while (out.size() < limit) {
            bool tokens = false;
            ByteBits b = engine_->run([&](bool grow) { return engine_->next_bytes(probe->now_, tokens, grow); });
            int32_t n = 0;
            for (uint64_t w : b.w) n += __builtin_popcountll(w);
            if (tokens || n != 1) break;
            uint8_t byte = 0;
            while (!b.has(byte)) ++byte;
            if (!probe->commit_bytes(&byte, 1)) break;
            out.push_back(char(byte));
        }
        return out;
    }
    // The bytes of all commits; tokens that were taken as such and not as text have none.
    std::string text() const override {
        std::string out;
        for (const Snapshot* at = now_; at; at = at->before)
            for (int64_t i = at->n_text; i > 0; --i) out.push_back(char(at->text[i - 1]));
        std::reverse(out.begin(), out.end());
        return out;
    }
    std::string next_bytes() const override {
        bool tokens = false;
        ByteBits b = engine_->run([&](bool grow) { return engine_->next_bytes(now_, tokens, grow); });
        std::string out;
        for (int c = 0; c < 256; ++c) {
            const uint8_t byte = uint8_t(c);
            if (b.has(byte) && (engine_->distinct.empty() || copy()->commit_bytes(&byte, 1))) out.push_back(char(c));
        }
        return out;
    }
    vector<int32_t> expected() const override {
        std::unique_lock<std::shared_mutex> lock(engine_->mutex);
        return engine_->expected(now_);
    }

    // Lexer states and stacks; where items must differ the text as well, since any of them may decide.
    void situation(vector<int64_t>& out) const override {
        out.push_back(now_->finished);
        vector<const Node*> nodes;
        for (int32_t i = 0; i < now_->n; ++i) {
            const Config& c = now_->configs[i];
            out.insert(out.end(), {c.lex, c.count, c.n_tops});
            nodes.insert(nodes.end(), c.tops, c.tops + c.n_tops);
        }
        const size_t n_tops = nodes.size();
        for (size_t k = 0; k < nodes.size(); ++k) {
            if (k >= n_tops + kWritten) {  // far down: the nodes themselves, which are shared
                out.push_back(reinterpret_cast<intptr_t>(nodes[k]));
                continue;
            }
            out.push_back(int64_t(nodes[k]->n_below) << 32 | nodes[k]->state);
            for (int32_t b = 0; b < nodes[k]->n_below; ++b) {
                const size_t at = size_t(std::find(nodes.begin(), nodes.end(), nodes[k]->below[b]) - nodes.begin());
                if (at == nodes.size()) nodes.push_back(nodes[k]->below[b]);
                out.push_back(int64_t(at));
            }
        }
        if (!engine_->distinct.empty()) out.insert(out.end(), text_.begin(), text_.end());
    }
    int64_t least_to_end() const override {
        if (now_->finished) return 0;
        return engine_->run([&](bool) { return engine_->least_to_end().of(now_->configs, now_->n); });
    }

  private:
    static constexpr size_t kWritten = 48;  // nodes below the tops

    std::unique_ptr<Session> copy() const {
        std::unique_ptr<Session> out(new Session);
        out->engine_ = engine_;
        out->arena_ = std::make_shared<Arena>(arena_);
        out->now_ = now_;
        out->text_ = text_;
        out->past_ = past_;
        return out;
    }
    Session() = default;

    std::shared_ptr<Engine> engine_;
    std::shared_ptr<Arena> arena_;
    const Snapshot* now_ = nullptr;
    // Only where items must differ: the text, and the scanner after every commit.
    struct Past {
        const Past* before;
        JsonScan scan;
    };
    mutable std::string text_;
    const Past* past_ = nullptr;

    JsonScan scan() const { return past_ ? past_->scan : JsonScan(); }
    template <class Op> bool commit(const Op& op) {
        if (engine_->distinct.empty()) {
            const Snapshot* to = engine_->run([&](bool grow) { return op(grow, nullptr, nullptr); });
            if (to) now_ = to;
            return to != nullptr;
        }
        const size_t size = text_.size();
        JsonScan moved;
        const Snapshot* to = engine_->run([&](bool grow) {
            text_.resize(size);
            moved = scan();
            return op(grow, &moved, &text_);
        });
        if (!to || DistinctMask(*engine_, text_).is_stuck(to, moved)) {
            text_.resize(size);
            return false;
        }
        now_ = to;
        past_ = new (arena_->bytes(sizeof(Past))) Past{past_, moved};
        return true;
    }
};

}  // namespace wfsa
