// One step of a beam search over items, on the CPU: masks, children, advancing, and the fused step with an exact top-M.
//
// The rules are those of wfsa/items/beams.py. Every candidate of a beam is seen once; a request keeps at most 4 M
// candidates and the score that a new one has to reach, cut back by selection when they are full, so the cost is linear
// in the candidates. Only the M chosen become nodes.

#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "items/parts.hpp"
#include "items/trie.hpp"
#include "items/log_sum_exp.hpp"

namespace wfsa {
namespace items {

enum Normalise { kFull = 0, kLevel = 1, kValid = 2, kUnchanged = 3 };

struct StepInput {
    int64_t n_requests = 0, n_beams = 0, width = 0, n_steps = 0;
    const int64_t* nodes = nullptr;
    const float* scores = nullptr;
    const uint8_t* valid = nullptr;
    const int32_t* sequences = nullptr;
    const float* logits = nullptr;
    const FilterView* const* live = nullptr;  // one a request, each may be null; or null
    Normalise normalise = kFull;
};

struct StepOutput {
    int64_t* nodes = nullptr;
    float* scores = nullptr;
    uint8_t* valid = nullptr;
    int32_t *parents = nullptr, *tokens = nullptr, *sequences = nullptr;
};

struct ChildrenOutput {
    int64_t* indptr;  // [n + 1]
    int32_t* tokens;  // room for as many as most_children() says
    int64_t* nodes;
};

class Step {
  public:
    virtual ~Step() = default;
    // The first id that is no node of this index, or -1.
    virtual int64_t bad_node(const int64_t* nodes, int64_t n) const = 0;
    virtual void allowed(const int64_t* nodes, int64_t n, int64_t per_request, const FilterView* const* live,
                         uint32_t* out) const = 0;
    virtual int64_t most_children(const int64_t* nodes, int64_t n) const = 0;
    virtual void children(const int64_t* nodes, int64_t n, int64_t per_request, const FilterView* const* live,
                          const ChildrenOutput& out) const = 0;
    virtual void mask_logits(const float* logits, const int64_t* nodes, int64_t n, int64_t per_request,
                             const FilterView* const* live, float* out) const = 0;
    virtual void advance(const int64_t* nodes, const int64_t* tokens, int64_t n, int64_t per_request,
                         const FilterView* const* live, int64_t* out) const = 0;
    // -1, or request * n_beams + beam of logits with NaN or +inf.
    virtual int64_t beam_step(const StepInput& in, const StepOutput& out, int threads) const = 0;
};

template <class Trie>
class StepOf final : public Step {
    Trie trie_;

    static constexpr int64_t kAhead = 6;  // beams between the hint and the scan
    static constexpr int64_t kEndPlace = -1, kStayPlace = -2;
    static constexpr float kMinus = -std::numeric_limits<float>::infinity();

    struct Candidate {
        float score;
        int32_t beam;
        int64_t token;
        int64_t place;
        bool operator<(const Candidate& o) const {
            if (score != o.score) return score > o.score;
            if (beam != o.beam) return beam < o.beam;
            return token < o.token;
        }
    };

    // The best `width` of all candidates pushed.
    struct Best {
        std::vector<Candidate> kept;
        size_t width = 0;
        float least = kMinus;
        void start(size_t w) {
            width = w;
            kept.clear();
            kept.reserve(4 * w);
            least = kMinus;
        }
        void push(float score, int32_t beam, int64_t token, int64_t place) {
            if (!(score > kMinus) || score < least) return;
            kept.push_back({score, beam, token, place});
            if (kept.size() == 4 * width) cut();
        }
        void cut() {
            std::nth_element(kept.begin(), kept.begin() + (std::ptrdiff_t)width - 1, kept.end());
            kept.resize(width);
            least = kept[width - 1].score;
        }
        void finish() {
            if (kept.size() > width) cut();
            std::sort(kept.begin(), kept.end());
        }
    };

  public:
    StepOf(const Shape& shape, const Arrays& arrays) : trie_(shape, arrays) {}

    int64_t bad_node(const int64_t* nodes, int64_t n) const override {
        for (int64_t i = 0; i < n; ++i)
            if (!trie_.valid(nodes[i])) return nodes[i];
        return -1;
    }

    void allowed(const int64_t* nodes, int64_t n, int64_t per, const FilterView* const* live,
                 uint32_t* out) const override {
        int64_t words = (trie_.shape.logits_size + 31) / 32;
        std::memset(out, 0, (size_t)(n * words) * 4);
        for (int64_t i = 0; i < n; ++i) {
            FilterView part;
            const FilterView* filter = of_node(nodes[i], live ? live[i / per] : nullptr, part);
            uint32_t* row = out + i * words;
            int level = level_of(nodes[i]);
            if (nodes[i] >= 0 && level < trie_.shape.depth && !filter) {
                copy_bits(trie_.mask_row(nodes[i]), trie_.shape.sizes[level], trie_.shape.offsets[level], row);
                if (may_end(nodes[i], filter) >= 0) set_bit(row, trie_.shape.end_token);
            } else {
                each(nodes[i], filter, [&](int64_t token, int64_t) {
                    set_bit(row, token);
                    return true;
                });
            }
        }
    }

    int64_t most_children(const int64_t* nodes, int64_t n) const override {
        int64_t most = 0;
        for (int64_t i = 0; i < n; ++i)
            if (nodes[i] >= 0) most += trie_.most_children(nodes[i]) + (trie_.shape.end_token >= 0);
        return most;
    }

    void children(const int64_t* nodes, int64_t n, int64_t per, const FilterView* const* live,
                  const ChildrenOutput& out) const override {
        int64_t k = 0;
        for (int64_t i = 0; i < n; ++i) {
            out.indptr[i] = k;
            if (nodes[i] < 0) continue;
            if (i + kAhead < n) trie_.prefetch(nodes[i + kAhead]);
            FilterView part;
            const FilterView* filter = of_node(nodes[i], live ? live[i / per] : nullptr, part);
            int64_t leaf = may_end(nodes[i], filter);
            if (leaf >= 0) {
                out.tokens[k] = (int32_t)trie_.shape.end_token;
                out.nodes[k++] = make_node(kEnded, 1, leaf);
            }
            int32_t offset = (int32_t)trie_.shape.offsets[level_of(nodes[i])];
            k += trie_.children(nodes[i], filter, offset, out.tokens + k, out.nodes + k);
        }
        out.indptr[n] = k;
    }

    void mask_logits(const float* logits, const int64_t* nodes, int64_t n, int64_t per, const FilterView* const* live,
                     float* out) const override {
        int64_t size = trie_.shape.logits_size;
        for (int64_t i = 0; i < n; ++i) {
            const float* from = logits + i * size;
            float* to = out + i * size;
            std::fill(to, to + size, kMinus);
            FilterView part;
            each(nodes[i], of_node(nodes[i], live ? live[i / per] : nullptr, part), [&](int64_t token, int64_t) {
                to[token] = from[token];
                return true;
            });
        }
    }

    void advance(const int64_t* nodes, const int64_t* tokens, int64_t n, int64_t per, const FilterView* const* live,
                 int64_t* out) const override {
        for (int64_t i = 0; i < n; ++i) {
            out[i] = kNone;
            if (nodes[i] < 0) continue;
            const FilterView* filter = live ? live[i / per] : nullptr;
            int level = level_of(nodes[i]);
            if (trie_.shape.end_token >= 0 && tokens[i] == trie_.shape.end_token) {
                int64_t leaf = may_end(nodes[i], filter);
                if (leaf >= 0) out[i] = make_node(kEnded, 1, leaf);
            } else if (level < trie_.shape.n_levels) {
                // Out-of-range tokens must not wrap around in the subtraction.
                if (tokens[i] >= 0) out[i] = trie_.find(nodes[i], tokens[i] - trie_.shape.offsets[level], filter);
            }
        }
    }

    int64_t beam_step(const StepInput& in, const StepOutput& out, int threads) const override {
        int parts = (int)std::max<int64_t>(1, std::min<int64_t>(std::min(threads, kMostThreads), in.n_requests));
        std::vector<int64_t> bad((size_t)parts, -1);
        auto work = [&](int p) {
            Best best;
            std::vector<Candidate> row;
            std::vector<float> values;
            for (int64_t b = in.n_requests * p / parts; b < in.n_requests * (p + 1) / parts && bad[(size_t)p] < 0; ++b)
                bad[(size_t)p] = request(in, out, b, best, row, values);
        };
        run_parts(parts, work);
        for (int64_t b : bad)
            if (b >= 0) return b;
        return -1;
    }

  private:
    static void set_bit(uint32_t* row, int64_t i) { row[i >> 5] |= 1u << (i & 31); }

    // Sets bits at .. at + n of a zeroed row.
    static void copy_bits(const uint32_t* from, int64_t n, int64_t at, uint32_t* row) {
        int64_t words = (n + 31) / 32, to = at >> 5;
        int shift = (int)(at & 31);
        for (int64_t w = 0; w < words; ++w) {
            row[to + w] |= from[w] << shift;
            if (shift && from[w] >> (32 - shift)) row[to + w + 1] |= from[w] >> (32 - shift);
        }
    }

    // A request's filter for one node: null where all leaves of the node are live. Most nodes have no excluded leaf, so
    // looking at the list once a node leaves nothing to do for each child.
    const FilterView* of_node(int64_t node, const FilterView* filter, FilterView& part) const {
        if (!filter || node < 0) return filter;
        if (!filter->n_dead) return filter->words ? filter : nullptr;
        auto [low, high] = trie_.interval(node);
        part = filter->within(low, high);
        return part.words || part.n_dead ? &part : nullptr;
    }

    int64_t may_end(int64_t node, const FilterView* live) const {
        if (trie_.shape.end_token < 0 || level_of(node) == kEnded) return -1;
        int64_t leaf = trie_.terminal(node);
        return leaf >= 0 && (!live || live->live(leaf)) ? leaf : -1;
    }

    // f(token, place) for each continuation.
    template <class F>
    void each(int64_t node, const FilterView* live, F&& f) const {
        if (node < 0) return;
        if (may_end(node, live) >= 0 && !f(trie_.shape.end_token, kEndPlace)) return;
        int64_t offset = trie_.shape.offsets[level_of(node)];
        trie_.scan(node, live, [&](int64_t code, int64_t place) { return f(offset + code, place); });
    }

    int64_t target(int64_t node, int64_t place) const {
        if (place == kStayPlace) return node;
        if (place == kEndPlace) return make_node(kEnded, 1, trie_.terminal(node));
        return trie_.child(node, place);
    }

    bool finished(int64_t node) const {
        if (level_of(node) == kEnded) return true;
        if (trie_.shape.end_token >= 0 && trie_.terminal(node) >= 0) return false;
        return !trie_.has_children(node);
    }

    int64_t request(const StepInput& in, const StepOutput& out, int64_t b, Best& best, std::vector<Candidate>& row,
                    std::vector<float>& values) const {
        const FilterView* live = in.live ? in.live[b] : nullptr;
        best.start((size_t)in.width);
        for (int64_t m = 0; m < in.n_beams; ++m) {
            int64_t at = b * in.n_beams + m, node = in.nodes[at];
            if (m + kAhead < in.n_beams) trie_.prefetch(in.nodes[at + kAhead]);
            if (!in.valid[at] || node < 0) continue;
            if (finished(node)) {
                auto [low, high] = trie_.interval(node);
                if (!live || live->any(low, high)) best.push(in.scores[at], (int32_t)m, -1, kStayPlace);
                continue;
            }
            FilterView part;
            if (!beam(in, at, (int32_t)m, node, of_node(node, live, part), best, row, values)) return at;
        }
        best.finish();
        write(in, out, b, best);
        return -1;
    }

    // Pushes the candidates of a beam; false: NaN or +inf.
    bool beam(const StepInput& in, int64_t at, int32_t m, int64_t node, const FilterView* live, Best& best,
              std::vector<Candidate>& row, std::vector<float>& values) const {
        const float* logits = in.logits + at * trie_.shape.logits_size;
        const float infinity = std::numeric_limits<float>::infinity();
        bool good = true;
        if (in.normalise == kValid) {
            row.clear();
            values.clear();
            each(node, live, [&](int64_t token, int64_t place) {
                float v = logits[token];
                good &= v < infinity;
                row.push_back({v, m, token, place});
                values.push_back(v);
                return good;
            });
            if (!good) return false;
            RowSum sum;
            add_values(sum, values.data(), (int64_t)values.size());
            float norm = log_sum(sum);
            if (norm == kMinus) return true;
            float base = in.scores[at] - norm;
            for (const Candidate& c : row) best.push(base + c.score, m, c.token, c.place);
            return true;
        }
        float norm = 0;
        if (in.normalise != kUnchanged) {
            RowSum sum;
            if (in.normalise == kFull) {
                add_values(sum, logits, trie_.shape.logits_size);
            } else {
                int level = level_of(node);
                if (level < trie_.shape.n_levels)
                    add_values(sum, logits + trie_.shape.offsets[level], trie_.shape.sizes[level]);
                if (trie_.shape.end_token >= 0) add_values(sum, logits + trie_.shape.end_token, 1);
            }
            if (sum.bad) return false;
            norm = log_sum(sum);
            if (norm == kMinus) return true;
        }
        float base = in.scores[at] - norm;
        each(node, live, [&](int64_t token, int64_t place) {
            float v = logits[token];
            good &= v < infinity;
            best.push(base + v, m, token, place);
            return good;
        });
        return good;
    }

    void write(const StepInput& in, const StepOutput& out, int64_t b, const Best& best) const {
        int64_t t = in.n_steps;
        for (int64_t k = 0; k < in.width; ++k) {
            int64_t to = b * in.width + k;
            int32_t* sequence = out.sequences + to * (t + 1);
            if (k >= (int64_t)best.kept.size()) {
                out.nodes[to] = kNone;
                out.scores[to] = kMinus;
                out.valid[to] = 0;
                out.parents[to] = 0;
                out.tokens[to] = -1;
                std::fill(sequence, sequence + t + 1, -1);
                continue;
            }
            const Candidate& c = best.kept[(size_t)k];
            int64_t from = b * in.n_beams + c.beam;
            out.nodes[to] = target(in.nodes[from], c.place);
            out.scores[to] = c.score;
            out.valid[to] = 1;
            out.parents[to] = c.beam;
            out.tokens[to] = (int32_t)c.token;
            if (t) std::memcpy(sequence, in.sequences + from * t, (size_t)t * 4);
            sequence[t] = (int32_t)c.token;
        }
    }
};

inline std::unique_ptr<Step> make_step(bool csr, int code_bytes, bool wide, const Shape& s, const Arrays& a) {
    auto with = [&](auto code) -> std::unique_ptr<Step> {
        using Code = decltype(code);
        if (csr) {
            if (wide) return std::make_unique<StepOf<CsrTrie<Code, int64_t>>>(s, a);
            return std::make_unique<StepOf<CsrTrie<Code, int32_t>>>(s, a);
        }
        if (wide) return std::make_unique<StepOf<IntervalTrie<Code, int64_t>>>(s, a);
        return std::make_unique<StepOf<IntervalTrie<Code, int32_t>>>(s, a);
    };
    if (code_bytes == 1) return with(uint8_t{});
    if (code_bytes == 2) return with(uint16_t{});
    return with(int32_t{});
}

}  // namespace items
}  // namespace wfsa
