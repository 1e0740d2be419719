// Masks and commits where items must differ (distinct.hpp): what the tables cannot know is tried.
//
// The mask as if nothing had to differ allows every token it should, and few that it should not: those that end an item
// that repeats, and those after which only such ends are left ("tr" where true was an item).  Both are near an earlier
// item, and are found by scanning the candidates; each is then committed for good measure.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "engine.hpp"

namespace wfsa {

class DistinctMask {
  public:
    // `text` is what was committed; it is written behind and cut back.
    DistinctMask(Engine& engine, std::string& text) : e_(engine), text_(text), size_(text.size()) {}

    // Is every continuation of these configurations bound to repeat an item?
    bool is_stuck(const Snapshot* at, const JsonScan& scan) {
        if (at->finished || !scan.is_close(text_, e_.may_run_out)) return false;
        arena().clear();
        budget_ = kBudget;
        return !is_alive(at, scan);
    }

    void filter(const Snapshot* at, const JsonScan& scan, uint32_t* mask) {
        if (at->finished || at->n == 0) return;
        Vocabulary& v = *e_.vocab;
        arena().clear();
        known_.clear();
        // Is the item being written certainly none of the earlier ones, whatever it goes on with?
        const bool fresh = scan.in_string && scan.in_array() && !scan.is_close(text_, e_.may_run_out) && text_.find('\\', size_t(scan.top->begin)) == std::string::npos
                           && !scan.escapes(text_);
        auto look = [&](int32_t t) {
            if (!(mask[size_t(t) >> 5] >> (t & 31) & 1) || v.special[size_t(t)]) return;
            const uint8_t* p = v.blob.data() + v.offsets[size_t(t)];
            const size_t n = size_t(v.offsets[size_t(t) + 1] - v.offsets[size_t(t)]);
            if (is_suspect(scan, p, n, fresh) && !is_allowed(at, scan, p, n)) mask[size_t(t) >> 5] &= ~(1u << (t & 31));
        };
        const Vocabulary::Quotes& q = v.quotes();
        if (!scan.in_arrays()) {
            for (int32_t t : q.brackets) look(t);
            return;
        }
        // Tokens that end no item: those without a quote in a string, those that only open one outside.
        const vector<uint32_t>& calm = !scan.in_string ? q.openers : scan.escaped ? q.without : q.inside;
        for (int64_t w = 0; w < v.n_words(); ++w)
            for (uint32_t bits = mask[w] & ~calm[size_t(w)]; bits; bits &= bits - 1) look(int32_t(w * 32 + __builtin_ctz(bits)));
        // ... but they may be the beginning of an earlier one.
        std::unordered_set<int32_t> seen;
        scan.each_rest(text_, [&](const char* rest, size_t n) {
            const Trie& trie = v.trie;
            for (int32_t node = 0, k = 0; size_t(k) < n; ++k) {
                const uint8_t *from = trie.byte.data() + trie.first_child[node], *to = trie.byte.data() + trie.first_child[node + 1];
                const uint8_t* child = std::lower_bound(from, to, uint8_t(rest[k]));
                if (child == to || *child != uint8_t(rest[k])) break;
                node = int32_t(child - trie.byte.data());
                if (!trie.own[node] || !seen.insert(node).second) continue;
                const int32_t slot = trie.slot_lo[node];
                for (int32_t i = trie.slot_indptr[slot]; i < trie.slot_indptr[slot + 1]; ++i)
                    if (calm[size_t(trie.slot_tokens[i]) >> 5] >> (trie.slot_tokens[i] & 31) & 1) look(trie.slot_tokens[i]);
            }
            return true;
        });
    }

  private:
    static constexpr int32_t kBudget = 4096;  // bytes tried before a state counts as alive
    Engine& e_;
    std::string& text_;
    const size_t size_;
    int32_t budget_ = 0;
    std::unordered_map<std::string, bool> known_;  // what a token writes, without white space between lexemes -> is it allowed

    static Arena& arena() {
        Arena::prepare();
        static thread_local Arena a;
        return a;
    }
    bool is_suspect(const JsonScan& scan, const uint8_t* p, size_t n, bool fresh) {
        JsonScan s = scan;
        bool out = false;
        for (size_t i = 0; i < n && !out; ++i) {
            // A number ends before the byte that ends it.
            if (s.in_scalar && std::strchr(",]}", p[i]) && s.repeats(text_)) out = true;
            text_.push_back(char(p[i]));
            s.push(text_, arena());
            out = out || (s.ended && !(fresh && s.top == scan.top) && s.repeats(text_));
        }
        out = out || (!(fresh && s.top == scan.top) && s.is_close(text_, e_.may_run_out));
        text_.resize(size_);
        return out;
    }
    bool is_allowed(const Snapshot* at, const JsonScan& scan, const uint8_t* p, size_t n) {
        JsonScan s = scan;
        std::string key;  // what it writes, without white space between lexemes
        for (size_t i = 0; i < n; ++i) {
            if (s.in_string || !std::strchr(" \n\t\r", p[i])) key += char(p[i]);
            text_.push_back(char(p[i]));
            s.push(text_, arena());
        }
        auto got = known_.find(key);
        if (got == known_.end()) {
            const Snapshot* to = e_.run([&](bool grow) {
                text_.resize(size_);
                s = scan;
                return e_.commit_bytes(at, p, n, arena(), grow, &s, &text_);
            });
            budget_ = kBudget;
            got = known_.emplace(key, to && (!s.is_close(text_, e_.may_run_out) || is_alive(to, s))).first;
        }
        text_.resize(size_);
        return got->second;
    }
    // Can the text go on so that no item repeats?  Almost always the first byte that leaves the earlier items decides.
    bool is_alive(const Snapshot* at, const JsonScan& scan) {
        if (--budget_ <= 0) return true;
        bool tokens = false;
        const ByteBits bytes = e_.run([&](bool grow) { return e_.next_bytes(at, tokens, grow); });
        if (tokens) return true;
        if (scan.in_string && !scan.escaped) {  // an earlier item goes on with one byte each
            int32_t n = 0;
            for (uint64_t w : bytes.w) n += __builtin_popcountll(w);
            if (n > scan.n_items() + 1) return true;
        }
        const size_t size = text_.size();
        vector<uint8_t> close;
        bool solid = scan.in_string;  // white space is tried where nothing else can follow: a run of it leads nowhere
        for (int b = '!'; b < 256; ++b) solid |= bytes.has(uint8_t(b));
        for (int b = 0; b < 256; ++b) {
            if (!bytes.has(uint8_t(b)) || (solid && b <= ' ' && !scan.in_string)) continue;
            JsonScan s = scan;
            text_.push_back(char(b));
            s.push(text_, arena());
            const bool apart = !s.is_close(text_, e_.may_run_out);
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
