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
#include "runtime/decoder.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

class Session final : public Decoder {
  public:
    explicit Session(std::shared_ptr<Engine> engine) : engine_(std::move(engine)), arena_(std::make_shared<Arena>()) {
        now_ = engine_->run([&](auto& operations) { return operations.start(*arena_); });
    }
    std::unique_ptr<Decoder> fork() const override { return copy(); }
    std::unique_ptr<Decoder> restart() const override { return std::make_unique<Session>(engine_); }
    bool commit_token(int32_t token) override {
        return commit(
            [&](auto& operations, auto& beside) { return operations.commit_token(now_, token, *arena_, beside); });
    }
    bool commit_bytes(const uint8_t* p, size_t n) override {
        if (now_->finished || n == 0) return n == 0;
        uint8_t* kept = static_cast<uint8_t*>(arena_->bytes(n));
        std::copy(p, p + n, kept);
        return commit(
            [&](auto& operations, auto& beside) { return operations.commit_bytes(now_, kept, n, *arena_, beside); });
    }
    bool rollback(int64_t n) override {
        if (n < 0 || n > now_->n_commits) return false;
        for (int64_t k = 0; k < n; ++k) now_ = now_->before;
        if (differs()) items_.rollback(n);
        return true;
    }
    // n_words words; bits past the vocabulary are 0.
    void mask(uint32_t* out, int64_t n_words) const override {
        engine_->mask(now_, out, n_words);
        if (differs()) items_.filter(*engine_, now_, out);
    }
    bool accepting() const override {
        return engine_->run([&](auto& operations) { return operations.takes(now_, engine_->end_term); });
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
            ByteBits b = engine_->run([&](auto& operations) { return operations.next_bytes(probe->now_, tokens); });
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
        ByteBits b = engine_->run([&](auto& operations) { return operations.next_bytes(now_, tokens); });
        std::string out;
        for (int c = 0; c < 256; ++c) {
            const uint8_t byte = uint8_t(c);
            if (b.has(byte) && (!differs() || copy()->commit_bytes(&byte, 1))) out.push_back(char(c));
        }
        return out;
    }
    vector<int32_t> expected() const override {
        return engine_->run([&](auto& operations) { return operations.expected(now_); });
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
        if (!differs()) return;
        const std::string written = text();
        out.insert(out.end(), written.begin(), written.end());
    }
    int64_t least_to_end() const override {
        if (now_->finished) return 0;
        return engine_->run([&](auto&) { return engine_->least_to_end().of(now_->configs, now_->n); });
    }

  private:
    static constexpr size_t kWritten = 48;  // nodes below the tops

    Session() = default;
    std::unique_ptr<Session> copy() const {
        std::unique_ptr<Session> out(new Session);
        out->engine_ = engine_;
        out->arena_ = std::make_shared<Arena>(arena_);
        out->now_ = now_;
        out->items_ = items_;
        return out;
    }

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
