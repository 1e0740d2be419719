// How many tokens a terminal still needs, and what every token makes of that.
//
//   rest(component, count)   the fewest tokens after which the terminal may end, spelling no more than its bytes; `count`:
//                            units so far, of a counted terminal
//   of(component)            every token from there on: those that stay inside, by where they end, and those that end
//                            the terminal and go on, as the tails that they leave
//
// rest is an upper bound of the true number with the one property that everything here stands on: from a component with
// n tokens left some token leads to one with n - 1.  Tokens are looked for along shortest ways in bytes only, the
// shortest tokens first and no more than `kLooked` nodes of the trie from one component; where single bytes are tokens
// one is always found.  A terminal whose shortest words cannot be spelled so has `kNever`.
//
// Counted terminals.  exact_[c][j]: tokens to an end with just j more units, by dynamic programming over j and, within
// one j, rounds over tokens without a unit.
//
// rest is made for all components at once, of(c) when it is first asked for; both belong to the constraint.
#pragma once
#include <map>
#include <memory>
#include <mutex>

#include "errors.hpp"
#include "lexer/terminals.hpp"
#include "vocabulary/mask_writer.hpp"

namespace wfsa {

class TerminalTokens {
  public:
    static constexpr int64_t kNever = int64_t(1) << 40;

    struct Group {  // tokens that stay inside and end alike
        int32_t component, units;
        vector<int32_t> tokens;
        vector<uint32_t> bitmap;  // in their place, where they are many
    };
    struct Tokens {
        vector<Group> inside;
        Trie tails;  // with the units before them
    };

    TerminalTokens(const Terminals& terms, const VocabularyTrie& trie, int64_t n_words)
        : terms_(terms), trie_(trie), n_words_(n_words) {
        find_bytes();
        find_rests();
        for (int32_t t = 0; t < int32_t(terms_.start.size()); ++t)
            if (terms_.counted[size_t(t)] && terms_.start[size_t(t)] >= 0) find_exact(t);
    }

    int64_t whole(int32_t t) const {
        const int32_t c = terms_.start[size_t(t)];
        return c < 0 ? kNever : rest(c, 0);
    }
    int64_t rest(int32_t c, int32_t count) const {
        const int32_t t = terms_.term[size_t(c)];
        if (!terms_.counted[size_t(t)]) return rest_[size_t(c)];
        const vector<int64_t>& exact = exact_[size_t(c)];
        const int64_t least = std::max(0, terms_.least[size_t(t)] - count);
        const int64_t most = std::min<int64_t>(int64_t(exact.size()) - 1, int64_t(terms_.most[size_t(t)]) - count);
        int64_t out = kNever;
        for (int64_t j = least; j <= most; ++j) out = std::min(out, exact[size_t(j)]);
        return out;
    }
    // By any thread.
    const Tokens& of(int32_t c) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::unique_ptr<const Tokens>& known = known_[c];
        if (!known) known = std::make_unique<const Tokens>(walk(c));
        return *known;
    }

  private:
    static constexpr size_t kLooked = 512;
    static constexpr int64_t kMaxExact = int64_t(1) << 24;
    static constexpr int64_t kMoreUnits = 64;  // than the fewest, where not any number can come
    const Terminals& terms_;
    const VocabularyTrie& trie_;
    const int64_t n_words_;
    vector<int64_t> bytes_;  // by component: to an end, without a unit where the terminal is counted
    vector<int64_t> rest_;   // ... in tokens
    vector<vector<int64_t>> exact_;
    mutable std::mutex mutex_;
    mutable std::map<int32_t, std::unique_ptr<const Tokens>> known_;
    vector<int32_t> in_order_;  // components by ascending bytes_

    // Breadth first from the accepting components, backwards.
    void find_bytes() {
        const size_t n = terms_.term.size();
        vector<int32_t> first(n + 2, 0), before, todo;
        for (const Edge& e : terms_.edges) ++first[size_t(e.target) + 2];
        for (size_t c = 2; c < n + 2; ++c) first[c] += first[c - 1];
        before.resize(terms_.edges.size());
        for (size_t c = 0; c < n; ++c)
            for (int32_t e = terms_.indptr[c]; e < terms_.indptr[c + 1]; ++e)
                before[size_t(first[size_t(terms_.edges[size_t(e)].target) + 1]++)] = int32_t(c);
        bytes_.assign(n, kNever);
        for (size_t c = 0; c < n; ++c)
            if (terms_.accept[c]) { bytes_[c] = 0; todo.push_back(int32_t(c)); }
        for (size_t k = 0; k < todo.size(); ++k)
            for (int32_t i = first[size_t(todo[k])]; i < first[size_t(todo[k]) + 1]; ++i) {
                const int32_t c = before[size_t(i)];
                if (bytes_[size_t(c)] < kNever || !leads_freely(c, todo[k])) continue;
                bytes_[size_t(c)] = bytes_[size_t(todo[k])] + 1;
                todo.push_back(c);
            }
        in_order_ = std::move(todo);
    }

    bool leads_freely(int32_t c, int32_t to) const {  // by an edge without a unit
        for (int32_t e = terms_.indptr[size_t(c)]; e < terms_.indptr[size_t(c) + 1]; ++e)
            if (terms_.edges[size_t(e)].target == to && !terms_.edges[size_t(e)].count) return true;
        return false;
    }
    void find_rests() {
        rest_.assign(bytes_.size(), kNever);
        struct At { int32_t node, component; };
        vector<At> open;
        for (const int32_t c : in_order_) {
            int64_t& best = rest_[size_t(c)];
            if (bytes_[size_t(c)] == 0) { best = 0; continue; }
            open.assign(1, {0, c});
            for (size_t k = 0; k < open.size() && open.size() <= kLooked; ++k) {
                const At at = open[k];
                each_child(at.node, at.component, [&](int32_t child, const Edge& e) {
                    if (e.count || bytes_[size_t(e.target)] + 1 != bytes_[size_t(at.component)]) return;
                    if (trie_[child].own) best = std::min(best, rest_[size_t(e.target)] + 1);
                    if (bytes_[size_t(e.target)]) open.push_back({child, e.target});
                });
            }
        }
    }
    template <class Visit> void each_child(int32_t node, int32_t c, const Visit& visit) const {
        int32_t child = trie_[node].first_child;
        const int32_t end = trie_[node].end_child;
        const uint8_t* bytes = trie_.byte.data();
        for (int32_t e = terms_.indptr[size_t(c)]; e < terms_.indptr[size_t(c) + 1] && child < end; ++e) {
            const Edge& edge = terms_.edges[size_t(e)];
            child = int32_t(std::lower_bound(bytes + child, bytes + end, edge.lo) - bytes);
            for (; child < end && bytes[child] <= edge.hi; ++child) visit(child, edge);
        }
    }

    // Of counted terminal t.
    void find_exact(int32_t t) {
        vector<int32_t> components;
        for (size_t c = size_t(terms_.start[size_t(t)]); c < terms_.term.size() && terms_.term[c] == t; ++c)
            components.push_back(int32_t(c));
        int64_t most = terms_.least[size_t(t)];
        for (int32_t c : components)
            if (terms_.fewest_left[size_t(c)] != Terminals::kNoMost) most = std::max<int64_t>(most, terms_.fewest_left[size_t(c)]);
        if (!terms_.by_bounds[size_t(t)]) most += kMoreUnits;
        most = std::min<int64_t>(most, terms_.most[size_t(t)]);
        if ((most + 1) * int64_t(components.size()) > kMaxExact)
            throw LimitExceeded("how many tokens a counted terminal needs takes more than " + std::to_string(kMaxExact) + " numbers");
        exact_.resize(terms_.term.size());
        struct Step { int32_t target, units; };
        vector<vector<Step>> steps(components.size());
        const int32_t base = components[0];
        for (int32_t c : components) {
            vector<int64_t>& exact = exact_[size_t(c)];
            exact.assign(size_t(most) + 1, kNever);
            exact[0] = rest_[size_t(c)];
            if (most) for (const Group& g : of(c).inside) steps[size_t(c - base)].push_back({g.component, g.units});
        }
        for (int64_t j = 0; j <= most; ++j)
            for (bool changed = true; changed;) {
                changed = false;
                for (int32_t c : components)
                    for (const Step& s : steps[size_t(c - base)]) {
                        if (s.units > j) continue;
                        const int64_t via = exact_[size_t(s.target)][size_t(j - s.units)] + 1;
                        if (via >= exact_[size_t(c)][size_t(j)]) continue;
                        exact_[size_t(c)][size_t(j)] = via;
                        changed = true;
                    }
            }
    }

    // The whole trie from a component on.
    Tokens walk(int32_t from) const {
        struct At { int32_t node, component, units, depth; };
        std::map<std::pair<int32_t, int32_t>, vector<int32_t>> inside;  // (component, units) -> tokens
        vector<Word> tails;
        vector<At> open{{0, from, 0, 0}};
        while (!open.empty()) {
            const At at = open.back();
            open.pop_back();
            if (at.depth && terms_.accept[size_t(at.component)]) leave(trie_[at.node], at.depth, at.units, tails);
            each_child(at.node, at.component, [&](int32_t child, const Edge& e) {
                const TrieNode& node = trie_[child];
                const int32_t units = at.units + e.count;
                if (node.own) {
                    vector<int32_t>& tokens = inside[{e.target, units}];
                    for (int32_t k = trie_.slot_indptr[size_t(node.slot_lo)]; k < trie_.slot_indptr[size_t(node.slot_lo) + 1]; ++k)
                        tokens.push_back(trie_.slot_tokens[size_t(k)]);
                }
                if (node.first_child != node.end_child) open.push_back({child, e.target, units, at.depth + 1});
            });
        }
        Tokens out;
        for (auto& [end, tokens] : inside) {
            Group g{end.first, end.second, std::move(tokens), {}};
            if (int64_t(g.tokens.size()) > n_words_ / 4) {
                g.bitmap.assign(size_t(n_words_), 0u);
                for (int32_t id : g.tokens) g.bitmap[size_t(id) >> 5] |= 1u << (id & 31);
                vector<int32_t>().swap(g.tokens);
            }
            out.inside.push_back(std::move(g));
        }
        out.tails = Trie(tails);
        return out;
    }
    // All tokens strictly below a node leave the rest of their bytes.
    void leave(const TrieNode& node, int32_t depth, int32_t units, vector<Word>& tails) const {
        for (int32_t s = node.slot_lo + node.own; s < node.slot_hi; ++s)
            for (int32_t k = trie_.slot_indptr[size_t(s)]; k < trie_.slot_indptr[size_t(s) + 1]; ++k) {
                const Word& w = trie_.slot_word[size_t(s)];
                tails.push_back({w.text + depth, w.length - depth, trie_.slot_tokens[size_t(k)], units});
            }
    }
};

}  // namespace wfsa
