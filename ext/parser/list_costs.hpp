// What a list whose members have a set beside the LR states (parser/unordered.hpp) still costs at least.
//
//   rest(set)   behind a member: the close, or separators and more pairs before it
//   body(set)   behind a separator, or at the beginning: a pair and the rest behind it
//
// A rest needs each required member that is missing, by its cheapest pair; pairs that meet the conditions that are open;
// and as many others as bring the list to its least length, the cheapest ones.  Exact: conditions, of which there are few,
// are met by trying, and without them the cheapest choice is the least.  Where trying takes too long it throws Unsupported,
// or, as a lower bound, leaves the conditions out.
#pragma once
#include "errors.hpp"
#include "parser/unordered_list.hpp"

namespace wfsa {

class ListCosts {
  public:
    static constexpr int64_t kNever = int64_t(1) << 40;

    // pairs: the cost of each.
    ListCosts(const UnorderedList& list, vector<int64_t> pairs, int64_t separator, int64_t close, bool is_lower_bound)
        : list_(list), pairs_(std::move(pairs)), separator_(separator), close_(close), is_lower_bound_(is_lower_bound) {
        cheapest_.assign(size_t(list_.n_members), kNever);
        for (size_t p = 0; p < pairs_.size(); ++p) {
            const int32_t m = list_.pairs[p].member;
            int64_t& best = m < 0 ? other_ : cheapest_[m];
            best = std::min(best, pairs_[p]);
        }
    }
    int64_t rest(List set) const {
        Search search(*this, set);
        search.meet(search.open.conditions, 0, 0);
        if (search.steps > kMaxSteps) {
            search.best = kNever;
            std::fill(search.chosen.begin(), search.chosen.end(), uint8_t(0));
            search.finish(0, 0);
        }
        return search.best >= kNever ? kNever : search.best + close_;
    }
    int64_t body(List set) const {
        int64_t best = kNever;
        for (int32_t p = 0; p < int32_t(pairs_.size()); ++p) {
            if (pairs_[p] >= best) continue;
            const vector<int32_t> then = list_.after(set, p);
            if (!then.empty()) best = std::min(best, pairs_[p] + rest(then));
        }
        return best;
    }

  private:
    static constexpr int64_t kMaxSteps = 1 << 16;
    const UnorderedList& list_;
    const vector<int64_t> pairs_;
    const int64_t separator_, close_;
    const bool is_lower_bound_;
    vector<int64_t> cheapest_;  // by member
    int64_t other_ = kNever;

    struct Search {
        const ListCosts& of;
        List set;
        const UnorderedList::Open open;
        int64_t best = kNever, steps = 0;
        vector<uint8_t> chosen;  // by member

        Search(const ListCosts& of_, List set_) : of(of_), set(set_), open(of_.list_.open(set_)), chosen(size_t(of_.list_.n_members), 0) {}

        // conditions: still to be met; spent: on pairs that were chosen for conditions, of which `others` are of no member.
        void meet(uint64_t conditions, int64_t spent, int64_t others) {
            if (spent >= best) return;
            if (!conditions) return finish(spent, others);
            if (++steps > kMaxSteps) {
                if (of.is_lower_bound_) return;
                throw Unsupported("the tokens that a text still needs are not known where so many conditions are open");
            }
            const uint64_t one = conditions & (~conditions + 1);
            for (size_t p = 0; p < of.pairs_.size(); ++p) {
                const UnorderedList::Pair& pair = of.list_.pairs[p];
                if (!(pair.meets & one) || of.pairs_[p] >= kNever) continue;
                if (pair.member < 0) {
                    meet(conditions & ~pair.meets, spent + of.separator_ + of.pairs_[p], others + 1);
                } else if (of.list_.is_free(set, pair.member) && !chosen[pair.member]) {
                    chosen[pair.member] = 1;
                    meet(conditions & ~pair.meets, spent + of.separator_ + of.pairs_[p], others);
                    chosen[pair.member] = 0;
                }
            }
        }
        void finish(int64_t spent, int64_t others) {
            int64_t written = open.written + others;
            vector<int64_t> more;  // members that may be written
            for (int32_t m = 0; m < of.list_.n_members; ++m) {
                if (chosen[m]) { ++written; continue; }
                if (!of.list_.is_free(set, m)) continue;
                if (of.list_.is_required(m)) {
                    spent += of.separator_ + of.cheapest_[m];
                    ++written;
                } else {
                    more.push_back(of.cheapest_[m]);
                }
            }
            if (written > of.list_.most) return;
            std::sort(more.begin(), more.end());
            for (size_t k = 0; written < of.list_.least; ++written) {
                const int64_t member = k < more.size() ? more[k] : kNever;
                if (of.other_ <= member) spent += of.separator_ + of.other_;
                else { spent += of.separator_ + member; ++k; }
                if (spent >= best) return;
            }
            best = std::min(best, spent);
        }
    };
};

}  // namespace wfsa
