// What one text remembers of its budget, so that most masks cost one comparison.
//
//   Found    in one lexer state on one stack, without a count: tokens to the end now, and after any token that stays inside
//            its terminal.  Good as long as its nodes live
//   Far      after any token from the commit `from` up to `until` no more than `most` are needed (budget/most_to_end.hpp)
//
// Read and written by any thread.
#pragma once
#include <mutex>

#include "budget/tokens_to_end.hpp"

namespace wfsa {

class BudgetMemo {
  public:
    struct Found {
        const Node* top = nullptr;
        int32_t lex = -1;
        int64_t least = -1, enough = TokensToEnd::kNever;  // tokens to the end now, and after any token
    };
    struct Far { int64_t from = 0, until = 0, most = 0; };

    BudgetMemo() = default;
    BudgetMemo(const BudgetMemo& other) { *this = other; }
    BudgetMemo& operator=(const BudgetMemo& other) {
        const Far far = other.far();
        const Found found = other.get();
        const std::lock_guard<std::mutex> lock(mutex_);
        far_ = far;
        found_ = found;
        return *this;
    }

    // What is known there, if anything is.
    Found at(const Snapshot* now) const {
        if (now->finished || now->n != 1 || now->configs[0].n_tops != 1) return {};
        const Config& c = now->configs[0];
        const Found found = get();
        return found.top == c.tops[0] && found.lex == c.lex ? found : Found{c.tops[0], c.lex};
    }
    void keep(const Found& found) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        found_ = found;
    }
    Far far() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return far_;
    }
    void keep(const Far& far) const {
        const std::lock_guard<std::mutex> lock(mutex_);
        far_ = far;
    }
    void rolled_back(const Snapshot* to) {
        found_ = {};
        if (to->n_commits < far_.from) far_ = {};
    }
    void clear() { *this = BudgetMemo(); }

  private:
    mutable std::mutex mutex_;
    mutable Found found_;
    mutable Far far_;

    Found get() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return found_;
    }
};

}  // namespace wfsa
