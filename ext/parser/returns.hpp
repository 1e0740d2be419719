// Shifts after which the tops are known without a look below them.
//
// A shift result that completes a rule is reduced, and where that leads depends on the state under the top. Often all
// states that can lie there agree: after a prefix operator, or one more member of a list, the stack is again what it
// was before.
//
//   q on b, then t, completes A   =>   go(b, A) on b, and go(b, A) is the same for every b with an edge to q
//
// For automata whose states have no sets of members beside them (unordered.hpp), as those of "longest" are.
#pragma once
#include "containers/pair_key.hpp"
#include "parser/lr_tables.hpp"

namespace wfsa {

class Returns {
  public:
    struct Tops {
        bool known = true;
        bool same = true;      // known, and they stand on the same nodes as before
        vector<int32_t> tops;  // ascending, those that shift
    };
    explicit Returns(const LrTables& lr) : lr_(lr) {}

    // The tops after `term`, where it is shifted on all of `tops` that take it.
    Tops after(List tops, int32_t term) {
        Tops out;
        for (int32_t q : tops) {
            const int32_t to = lr_.go(q, term);
            bool back = false, away = to >= 0 && lr_.shifts(to);
            if (away) out.tops.push_back(to);
            for (size_t k = 0; to >= 0 && lr_.completed_begin(to) + k != lr_.completed_end(to); ++k) {
                const int32_t r = reduced(q, lr_.completed_begin(to)[k]);
                if (r == kDepends) return {false, false, {}};
                if (r == kNowhere) continue;
                back |= r == q;
                away |= r != q;
                out.known &= !lr_.completes(r);
                out.tops.push_back(r);
            }
            out.same &= back && !away;
        }
        out.known |= out.same;
        sort_unique(out.tops);
        return out;
    }

  private:
    static constexpr int32_t kNowhere = -1, kDepends = -2;
    struct To { int32_t state = kDepends; };
    const LrTables& lr_;
    vector<int32_t> below_indptr_, below_;     // state -> those with an edge to it, made when they are first needed
    OpenTable<uint64_t, To, PairHash> known_;  // (state, nonterminal)

    // Where a nonterminal leads from whatever lies below a state.
    int32_t reduced(int32_t q, int32_t nonterminal) {
        const auto [to, is_new] = known_.insert(pair_key(q, nonterminal));
        if (!is_new) return to.state;
        if (below_indptr_.empty()) find_below();
        const int32_t* b = below_.data() + below_indptr_[size_t(q)];
        const int32_t* const end = below_.data() + below_indptr_[size_t(q) + 1];
        int32_t all = b == end ? kNowhere : lr_.go(*b, nonterminal);
        for (; b != end; ++b) if (lr_.go(*b, nonterminal) != all) all = kDepends;
        return to.state = all;
    }
    void find_below() {
        below_indptr_.assign(size_t(lr_.n_states()) + 1, 0);
        for (int32_t to : lr_.goto_target) ++below_indptr_[size_t(to) + 1];
        for (size_t s = 1; s < below_indptr_.size(); ++s) below_indptr_[s] += below_indptr_[s - 1];
        vector<int32_t> at(below_indptr_.begin(), below_indptr_.end() - 1);
        below_.resize(size_t(below_indptr_.back()));
        for (int32_t s = 0; s < lr_.n_states(); ++s)
            for (int32_t k = lr_.goto_indptr[size_t(s)]; k < lr_.goto_indptr[size_t(s) + 1]; ++k)
                below_[size_t(at[size_t(lr_.goto_target[size_t(k)])]++)] = s;
    }
};

}  // namespace wfsa
