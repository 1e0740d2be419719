// Masks and commits where items must differ (distinct.hpp): what the tables cannot know is tried.
//
// The mask as if nothing had to differ allows every token it should, and few that it should not: those that end an item
// that repeats, and those after which only such ends are left ("tr" where true was an item).  Both are near an earlier
// item, and are found by scanning the candidates; each is then committed for good measure.
#pragma once
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "runtime/engine.hpp"

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
        find_hashes(scan);
        find_rests(scan);
        // Is the item being written certainly none of the earlier ones, whatever it goes on with?
        const bool fresh = scan.in_string && scan.in_array() && rests_.empty() && text_.find('\\', size_t(scan.top->begin)) == std::string::npos
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
        // Where values may run out, one that is begun outside a string may be the last there is.
        const vector<uint32_t>* calm = scan.in_string ? scan.escaped ? &q.without : &q.inside : e_.may_run_out ? nullptr : &q.openers;
        for (int64_t w = 0; w < v.n_words(); ++w)
            for (uint32_t bits = mask[w] & (calm ? ~(*calm)[size_t(w)] : ~0u); bits; bits &= bits - 1) look(int32_t(w * 32 + __builtin_ctz(bits)));
        if (!calm) return;
        // ... but they may be the beginning of an earlier one.
        std::unordered_set<int32_t> seen;
        for (const Rest& rest : rests_) {  // looking writes behind text_, which may move it
            const Trie& trie = v.trie;
            int32_t node = 0;
            for (size_t k = 0; k < rest.n; ++k) {
                const uint8_t b = uint8_t(text_[rest.at + k]);
                const uint8_t *from = trie.byte.data() + trie.first_child[node], *to = trie.byte.data() + trie.first_child[node + 1];
                const uint8_t* child = std::lower_bound(from, to, b);
                if (child == to || *child != b) break;
                node = int32_t(child - trie.byte.data());
                if (!trie.own[node] || !seen.insert(node).second) continue;
                const int32_t slot = trie.slot_lo[node];
                for (int32_t i = trie.slot_indptr[slot]; i < trie.slot_indptr[slot + 1]; ++i)
                    if ((*calm)[size_t(trie.slot_tokens[i]) >> 5] >> (trie.slot_tokens[i] & 31) & 1) look(trie.slot_tokens[i]);
            }
        }
    }

  private:
    static constexpr int32_t kBudget = 4096;  // bytes tried before a state counts as alive
    Engine& e_;
    std::string& text_;
    const size_t size_;
    int32_t budget_ = 0;
    struct Rest { size_t at, n; };  // in text_
    vector<Rest> rests_;
    vector<uint64_t> hashes_;  // of the items of the innermost array
    std::unordered_map<std::string, bool> known_;  // what a token writes, without white space between lexemes -> is it allowed

    std::string_view bytes(const Rest& r) const { return {text_.data() + r.at, r.n}; }

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
            if (s.in_scalar && std::strchr(",]}", p[i]) && repeats(s, scan)) out = true;
            const bool ended = s.ended;
            const Frame* top = s.top;
            text_.push_back(char(p[i]));
            s.push(text_, arena());
            const bool ends = s.ended && !(ended && s.top == top);  // and is not white space behind an end
            out = out || (ends && !(fresh && s.top == scan.top) && repeats(s, scan));
        }
        if (s.top != scan.top) out = out || s.is_close(text_, e_.may_run_out);
        else out = out || (!fresh && begins_rest(p, n)) || (e_.may_run_out && s.may_end_item());
        text_.resize(size_);
        return out;
    }
    bool repeats(const JsonScan& s, const JsonScan& scan) const {
        if (s.top == scan.top && s.may_end_item() && !std::binary_search(hashes_.begin(), hashes_.end(), s.hash_of_item(text_))) return false;
        return s.repeats(text_);
    }
    void find_hashes(const JsonScan& scan) {
        hashes_.clear();
        if (scan.in_array()) for (const Item* i = scan.top->items; i; i = i->before) hashes_.push_back(i->hash);
        std::sort(hashes_.begin(), hashes_.end());
    }
    // What earlier items have behind what is written of the current ones, in byte order: a token that stays inside the
    // current item is close to another exactly if it begins one of these.
    void find_rests(const JsonScan& scan) {
        rests_.clear();
        scan.each_rest(text_, [&](const char* rest, size_t n) {
            rests_.push_back({size_t(rest - text_.data()), n});
            return true;
        });
        std::sort(rests_.begin(), rests_.end(), [&](const Rest& a, const Rest& b) { return bytes(a) < bytes(b); });
    }
    bool begins_rest(const uint8_t* p, size_t n) const {
        const std::string_view token(reinterpret_cast<const char*>(p), n);
        const auto at = std::lower_bound(rests_.begin(), rests_.end(), token,
                                         [&](const Rest& a, std::string_view b) { return bytes(a) < b; });
        return at != rests_.end() && bytes(*at).substr(0, n) == token;
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
