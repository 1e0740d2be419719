// Masks and commits where items must differ (distinct.hpp): what the tables cannot know is tried.
//
// The mask as if nothing had to differ allows every token it should, and few that it should not: those that end an item
// that repeats, and those after which only such ends are left ("tr" where true was an item).  Both are near an earlier
// item, and are found by scanning the candidates; each is then committed for good measure.
#pragma once
#include <unordered_map>

#include "engine.hpp"

namespace wfsa {

class DistinctMask {
  public:
    // `text` is what was committed; it is written behind and cut back.
    DistinctMask(Engine& engine, std::string& text) : e_(engine), text_(text), size_(text.size()) {}

    // Is every continuation of these configurations bound to repeat an item?
    bool is_stuck(const Snapshot* at, const JsonScan& scan) {
        if (at->finished || !scan.is_close(text_)) return false;
        arena().clear();
        budget_ = kBudget;
        return !is_alive(at, scan);
    }

    void filter(const Snapshot* at, const JsonScan& scan, uint32_t* mask) {
        if (at->finished || at->n == 0) return;
        Vocabulary& v = *e_.vocab;
        arena().clear();
        known_.clear();
        // Can the item being written be an earlier one, if its text is?  Its end is not compared again otherwise.
        const bool fresh = scan.in_string && scan.in_array() && !scan.is_close(text_) && text_.find('\\', size_t(scan.top->begin)) == std::string::npos
                           && !scan.escapes(text_);
        auto look = [&](int32_t t) {
            if (!(mask[size_t(t) >> 5] >> (t & 31) & 1) || v.special[size_t(t)]) return;
            const uint8_t* p = v.blob.data() + v.offsets[size_t(t)];
            const size_t n = size_t(v.offsets[size_t(t) + 1] - v.offsets[size_t(t)]);
            if (is_suspect(scan, p, n, fresh) && !is_allowed(at, scan, p, n)) mask[size_t(t) >> 5] &= ~(1u << (t & 31));
        };
        if (scan.in_string || !scan.in_arrays()) {
            const bool inside = scan.in_string && scan.in_arrays();
            for (int32_t t : inside ? v.with(Vocabulary::kQuote) : v.with(Vocabulary::kBracket)) look(t);
            if (inside && scan.is_close(text_)) for (int32_t t : v.with(Vocabulary::kNoQuote)) {
                const uint8_t* p = v.blob.data() + v.offsets[size_t(t)];
                if (scan.goes_along(text_, p, size_t(v.offsets[size_t(t) + 1] - v.offsets[size_t(t)]))) look(t);
            }
            return;
        }
        for (int64_t w = 0; w < v.n_words(); ++w)
            for (uint32_t bits = mask[w]; bits; bits &= bits - 1) {
                const int64_t t = w * 32 + __builtin_ctz(bits);
                if (t < v.n_tokens()) look(int32_t(t));
            }
    }

  private:
    static constexpr int32_t kBudget = 4096;  // bytes tried before a state counts as alive
    Engine& e_;
    std::string& text_;
    const size_t size_;
    int32_t budget_ = 0;
    std::unordered_map<std::string, bool> known_;  // what follows, without blanks, and the lexer's states -> alive

    static Arena& arena() {
        Arena::prepare();
        static thread_local Arena a;
        return a;
    }
    bool is_suspect(const JsonScan& scan, const uint8_t* p, size_t n, bool fresh) {
        JsonScan s = scan;
        bool out = false;
        for (size_t i = 0; i < n && !out; ++i) {
            text_.push_back(char(p[i]));
            s.push(text_, arena());
            out = !(fresh && s.top == scan.top) && s.repeats(text_);
        }
        out = out || s.is_close(text_);
        text_.resize(size_);
        return out;
    }
    bool is_allowed(const Snapshot* at, const JsonScan& scan, const uint8_t* p, size_t n) {
        JsonScan s;
        const Snapshot* to = e_.run([&](bool grow) {
            text_.resize(size_);
            s = scan;
            return e_.commit_bytes(at, p, n, arena(), grow, &s, &text_);
        });
        bool out = to != nullptr;
        if (out && s.is_close(text_)) {
            std::string key = scan.in_string ? std::string(text_, size_) : std::string();
            if (!scan.in_string) for (size_t i = 0; i < n; ++i) if (!std::strchr(" \n\t\r", p[i]) || s.in_string) key += char(p[i]);
            for (int32_t i = 0; i < to->n; ++i) key.append(reinterpret_cast<const char*>(&to->configs[i].lex), sizeof(int32_t));
            auto got = known_.find(key);
            if (got == known_.end()) {
                budget_ = kBudget;
                got = known_.emplace(key, is_alive(to, s)).first;
            }
            out = got->second;
        }
        text_.resize(size_);
        return out;
    }
    // Can the text go on so that no item repeats?  Almost always the first byte that leaves the earlier items decides.
    bool is_alive(const Snapshot* at, const JsonScan& scan) {
        if (--budget_ <= 0) return true;
        bool tokens = false;
        const ByteBits bytes = e_.run([&](bool grow) { return e_.next_bytes(at, tokens, grow); });
        if (tokens) return true;
        const size_t size = text_.size();
        vector<uint8_t> close;
        for (int b = 0; b < 256; ++b) {
            if (!bytes.has(uint8_t(b))) continue;
            JsonScan s = scan;
            text_.push_back(char(b));
            s.push(text_, arena());
            const bool apart = !s.is_close(text_);
            text_.resize(size);
            if (apart) return true;
            close.push_back(uint8_t(b));
        }
        for (uint8_t b : close) {
            JsonScan s;
            const Snapshot* to = e_.run([&](bool grow) {
                text_.resize(size);
                s = scan;
                return e_.commit_bytes(at, &b, 1, arena(), grow, &s, &text_);
            });
            const bool alive = to && is_alive(to, s);
            text_.resize(size);
            if (alive) return true;
        }
        return false;
    }
};

}  // namespace wfsa
