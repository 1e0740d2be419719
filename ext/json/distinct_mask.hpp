// Masks and commits where items must differ (distinct.hpp): what the tables cannot know is tried.
//
// The mask as if nothing had to differ allows every token it should, and few that it should not: those that end an item
// that repeats, and those after which only such ends are left ("tr" where true was an item).  Both are near an earlier
// item, and are found by scanning the candidates; each is then committed for good measure.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "json/distinct_items.hpp"
#include "json/quotes.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

class DistinctMask {
  public:
    explicit DistinctMask(Engine& engine) : e_(engine) {}

    // Is every continuation of these configurations bound to repeat an item?
    bool is_stuck(const Snapshot* at, const JsonScan& scan) {
        if (at->finished || !scan.is_close(e_.may_run_out)) return false;
        arena().clear();
        budget_ = kBudget;
        return !is_alive(at, scan);
    }

    void filter(const Snapshot* at, const JsonScan& scan, uint32_t* mask) {
        if (at->finished || at->n == 0) return;
        Vocabulary& v = *e_.vocab;
        arena().clear();
        known_.clear();
        const bool is_new = scan.is_new();
        auto look = [&](int32_t t) {
            if (!(mask[size_t(t) >> 5] >> (t & 31) & 1) || v.special[size_t(t)]) return;
            const uint8_t* p = v.blob.data() + v.offsets[size_t(t)];
            const size_t n = size_t(v.offsets[size_t(t) + 1] - v.offsets[size_t(t)]);
            if (is_suspect(scan, p, n, is_new) && !is_allowed(at, scan, p, n)) mask[size_t(t) >> 5] &= ~(1u << (t & 31));
        };
        const Quotes& q = v.kept<Quotes>();
        if (!scan.in_arrays()) {
            for (int32_t t : q.brackets) look(t);
            return;
        }
        // Tokens that end no item: those without a quote in a string, those that only open one outside.
        // Where values may run out, one that is begun outside a string may be the last there is.
        const vector<uint32_t>* calm = scan.in_string     ? (scan.escaped ? &q.without : &q.inside)
                                       : e_.may_run_out ? nullptr
                                                        : &q.openers;
        for (int64_t w = 0; w < v.n_words(); ++w)
            for (uint32_t bits = mask[w] & (calm ? ~(*calm)[size_t(w)] : ~0u); bits; bits &= bits - 1) look(int32_t(w * 32 + __builtin_ctz(bits)));
        if (!calm) return;
        // ... but they may be the beginning of an earlier one.
        std::unordered_set<int32_t> seen;
        for (const Near* near = scan.near; near; near = near->outer)
            each_along(near->items, scan.text.size() - near->begin, scan.text, [&](int32_t node) {
                if (!v.trie.own[node] || !seen.insert(node).second) return;
                const int32_t slot = v.trie.slot_lo[node];
                for (int32_t i = v.trie.slot_indptr[slot]; i < v.trie.slot_indptr[slot + 1]; ++i)
                    if ((*calm)[size_t(v.trie.slot_tokens[i]) >> 5] >> (v.trie.slot_tokens[i] & 31) & 1) look(v.trie.slot_tokens[i]);
            });
    }

  private:
    static constexpr int32_t kBudget = 4096;  // bytes tried before a state counts as alive
    Engine& e_;
    int32_t budget_ = 0;
    std::unordered_map<std::string, bool> known_;  // what a token writes, without white space between lexemes -> is it allowed

    // Visit the nodes of the vocabulary's trie that lie along the items behind a cursor.
    template <class F>
    void each_along(const PrefixTree* items, int32_t k, const SharedText& text, const F& visit) const {
        struct At { int32_t node, k; const PrefixTree* items; };
        const Trie& trie = e_.vocab->trie;
        vector<At> open{{0, k, items}};
        while (!open.empty()) {
            const At at = open.back();
            open.pop_back();
            for (int32_t c = trie.first_child[at.node]; c < trie.first_child[at.node + 1]; ++c) {
                const PrefixTree* to = at.items->step(at.k, trie.byte[c], text);
                if (!to) continue;
                open.push_back({c, at.k + 1, to});
                visit(c);
            }
        }
    }
    static Arena& arena() {
        Arena::prepare();
        static thread_local Arena a;
        return a;
    }
    bool is_suspect(const JsonScan& scan, const uint8_t* p, size_t n, bool is_new) {
        JsonScan s = scan;
        bool out = false;
        for (size_t i = 0; i < n && !out; ++i) {
            // A number ends before the byte that ends it.
            if (s.in_scalar && std::strchr(",]}", p[i]) && s.repeats()) out = true;
            const bool ended = s.ended;
            const Frame* top = s.top;
            s.push(p[i], arena());
            const bool ends = s.ended && !(ended && s.top == top);  // and is not white space behind an end
            out = out || (ends && !(is_new && s.top == scan.top) && s.repeats());
        }
        return out || s.is_close(e_.may_run_out);
    }
    bool is_allowed(const Snapshot* at, const JsonScan& scan, const uint8_t* p, size_t n) {
        JsonScan s = scan;
        std::string key;  // what it writes, without white space between lexemes
        for (size_t i = 0; i < n; ++i) {
            if (s.in_string || !std::strchr(" \n\t\r", p[i])) key += char(p[i]);
            s.push(p[i], arena());
        }
        auto got = known_.find(key);
        if (got == known_.end()) {
            const Snapshot* to = commit(at, scan, p, n, s);
            budget_ = kBudget;
            got = known_.emplace(key, to && (!s.is_close(e_.may_run_out) || is_alive(to, s))).first;
        }
        return got->second;
    }
    // The snapshot after some bytes, or nullptr; `after`: the scanner there.
    const Snapshot* commit(const Snapshot* at, const JsonScan& scan, const uint8_t* p, size_t n, JsonScan& after) {
        return e_.run([&](auto& operations) {
            DistinctItems beside(e_.distinct, scan, arena());
            const Snapshot* to = operations.commit_bytes(at, p, n, arena(), beside);
            after = beside.scan;
            return to;
        });
    }
    // Can the text go on so that no item repeats?  Almost always the first byte that leaves the earlier items decides.
    bool is_alive(const Snapshot* at, const JsonScan& scan) {
        struct Level {
            const Snapshot* at;
            JsonScan scan;
            vector<uint8_t> close;  // bytes that do not decide, the first to be tried last
        };
        vector<Level> levels;
        bool alive = decides(at, scan, levels.emplace_back(Level{at, scan, {}}).close);
        while (!alive && !levels.empty()) {
            if (levels.back().close.empty()) {
                levels.pop_back();
                continue;
            }
            Level& level = levels.back();
            const uint8_t b = level.close.back();
            level.close.pop_back();
            JsonScan s;
            const Snapshot* to = commit(level.at, level.scan, &b, 1, s);
            if (to) alive = decides(to, s, levels.emplace_back(Level{to, s, {}}).close);
        }
        return alive;
    }
    // Is there a next byte behind which nothing can be bound to repeat an item?  If not, the others go to `close`.
    bool decides(const Snapshot* at, const JsonScan& scan, vector<uint8_t>& close) {
        if (--budget_ <= 0) return true;
        bool tokens = false;
        const ByteBits bytes = e_.run([&](auto& operations) { return operations.next_bytes(at, tokens); });
        if (tokens) return true;
        bool solid = scan.in_string;  // white space is tried where nothing else can follow: a run of it leads nowhere
        for (int b = '!'; b < 256; ++b) solid |= bytes.has(uint8_t(b));
        for (int b = 255; b >= 0; --b) {
            if (!bytes.has(uint8_t(b)) || (solid && b <= ' ' && !scan.in_string)) continue;
            JsonScan s = scan;
            s.push(uint8_t(b), arena());
            if (!s.is_close(e_.may_run_out)) return true;
            close.push_back(uint8_t(b));
        }
        return false;
    }
};

}  // namespace wfsa
