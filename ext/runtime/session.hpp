// One sequence being decoded: a snapshot, the arena it writes to, and the engine it reads.
//
// fork() shares everything so far: the child reads the parent's arena, which it keeps alive, and writes to its own.
// What changes a Session is called by one thread at a time; masks and questions change nothing. Sessions of one
// engine run in parallel.
//
// The session chooses what stands beside the parse (companion.hpp): JSON's items that must differ, where the grammar
// has any.
#pragma once
#include "json/distinct_text.hpp"
#include "runtime/mask_job.hpp"

namespace wfsa {

class Session {
  public:
    Session() = default;
    explicit Session(std::shared_ptr<Engine> engine) : engine_(std::move(engine)), arena_(std::make_shared<Arena>()) {
        now_ = engine_->run([&](auto& operations) { return operations.start(*arena_); });
    }
    Session fork() const {
        Session out;
        out.engine_ = engine_;
        out.arena_ = std::make_shared<Arena>(arena_);
        out.now_ = now_;
        out.items_ = items_;
        return out;
    }
    bool commit_token(int32_t token) {
        return commit(
            [&](auto& operations, auto& beside) { return operations.commit_token(now_, token, *arena_, beside); });
    }
    bool commit_bytes(const uint8_t* p, size_t n) {
        if (now_->finished || n == 0) return n == 0;
        uint8_t* kept = static_cast<uint8_t*>(arena_->bytes(n));
        std::copy(p, p + n, kept);
        return commit(
            [&](auto& operations, auto& beside) { return operations.commit_bytes(now_, kept, n, *arena_, beside); });
    }
    bool rollback(int64_t n) {
        if (n < 0 || n > now_->n_commits) return false;
        for (int64_t k = 0; k < n; ++k) now_ = now_->before;
        if (differs()) items_.rollback(n);
        return true;
    }
    // n_words words; bits past the vocabulary are 0.
    void mask(uint32_t* out, int64_t n_words) const {
        engine_->mask(now_, out, n_words);
        if (differs()) items_.filter(*engine_, now_, out);
    }
    bool accepting() const {
        return engine_->run([&](auto& operations) { return operations.takes(now_, engine_->end_term); });
    }
    bool finished() const { return now_->finished; }
    int64_t n_commits() const { return now_->n_commits; }
    int32_t n_configs() const { return now_->n; }

    // Length of the longest prefix of tokens that can be committed; the session stays as it is.
    int64_t validate(const int32_t* tokens, int64_t n) const {
        Session probe = fork();
        for (int64_t i = 0; i < n; ++i) if (!probe.commit_token(tokens[i])) return i;
        return n;
    }
    // The bytes that must come next, at most `limit` of them.
    std::string forced(size_t limit) const {
        Session probe = fork();
        std::string out;
        while (out.size() < limit) {
            bool tokens = false;
            ByteBits b = engine_->run([&](auto& operations) { return operations.next_bytes(probe.now_, tokens); });
            int32_t n = 0;
            for (uint64_t w : b.w) n += __builtin_popcountll(w);
            if (tokens || n != 1) break;
            uint8_t byte = 0;
            while (!b.has(byte)) ++byte;
            if (!probe.commit_bytes(&byte, 1)) break;
            out.push_back(char(byte));
        }
        return out;
    }
    // The bytes of all commits; tokens that were taken as such and not as text have none.
    std::string text() const {
        std::string out;
        for (const Snapshot* at = now_; at; at = at->before)
            for (int64_t i = at->n_text; i > 0; --i) out.push_back(char(at->text[i - 1]));
        std::reverse(out.begin(), out.end());
        return out;
    }
    std::string next_bytes() const {
        bool tokens = false;
        ByteBits b = engine_->run([&](auto& operations) { return operations.next_bytes(now_, tokens); });
        std::string out;
        for (int c = 0; c < 256; ++c) {
            const uint8_t byte = uint8_t(c);
            if (b.has(byte) && (!differs() || fork().commit_bytes(&byte, 1))) out.push_back(char(c));
        }
        return out;
    }
    vector<int32_t> expected() const {
        return engine_->run([&](auto& operations) { return operations.expected(now_); });
    }

    MaskJob job(int64_t n_words) const {
        return {this, [](const void* of, uint32_t* out, int64_t n) { static_cast<const Session*>(of)->mask(out, n); }, n_words};
    }

  private:
    std::shared_ptr<Engine> engine_;
    std::shared_ptr<Arena> arena_;
    const Snapshot* now_ = nullptr;
    DistinctText items_;  // of use only where items must differ

    bool differs() const { return !engine_->distinct.empty(); }
    template <class Op> bool commit(const Op& op) {
        const Snapshot* to = nullptr;
        if (differs()) {
            to = items_.commit(*engine_, *arena_, op);
        } else {
            Alone alone;
            to = engine_->run([&](auto& operations) { return op(operations, alone); });
        }
        if (to) now_ = to;
        return to != nullptr;
    }
};

}  // namespace wfsa
