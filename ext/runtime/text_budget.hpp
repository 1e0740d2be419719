// The budget of one text: how many tokens it still needs, and what it remembers so that most masks cost one comparison.
//
//   Found    in one lexer state on one stack, without a count: tokens to the end now, and after any token that stays inside
//            its terminal.  Good as long as its nodes live
//   Far      after any token from the commit `from` up to `until` no more than `most` are needed (budget/most_to_end.hpp)
//
// All numbers of tokens count an end token, whether or not the vocabulary has one.  Memos are read and written by any
// thread.
#pragma once
#include <mutex>

#include "containers/kept_pointer.hpp"
#include "runtime/budget_mask.hpp"
#include "runtime/decoder.hpp"
#include "runtime/engine.hpp"

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

class TextBudget {
  public:
    // Tokens to the end; kNever: no end was found.
    int64_t least(Engine& e, const Snapshot* now) const {
        const std::shared_ptr<const BudgetTables> budget = tables(e);
        BudgetMemo::Found found = memo_.at(now);
        if (found.least < 0) {
            found.least = e.run([&](auto& operations) {
                BudgetMask masks(of_cfg(operations), *budget);
                if (!masks.is_without_count(now)) found.top = nullptr;
                return masks.min_tokens(now);
            });
            if (found.top) memo_.keep(found);
        }
        return found.least;
    }
    // Whether it is known, and cheap to tell, that no token makes the text need more than `most`.
    bool is_far(Engine& e, const Snapshot* now, int64_t most) const {
        if (now->finished) return true;
        if (reduced_) {
            e.budget_tables();  // which throws where nothing is known
            return false;
        }
        const int64_t n = now->n_commits;
        BudgetMemo::Far far = memo_.far();
        if (far.from <= n && n < far.until && far.most <= most) return true;
        const MostToEnd& costs = e.most_to_end();
        far = {n, n, 0};
        e.run([&](auto&) {
            for (int32_t i = 0; i < now->n; ++i) far.most = std::max(far.most, costs.of(now->configs[i].tops, now->configs[i].n_tops));
        });
        if (far.most > most) return false;
        // Each token takes one of the budget, and adds what it adds.
        const int64_t more = (most - far.most) / (costs.a_token() + 1);
        far.until = n + 1 + more;
        far.most += more * costs.a_token();
        memo_.keep(far);
        return true;
    }
    // Writes the plain mask by put_mask(), and clears the tokens after which more than `most` are needed.
    template <class PutMask>
    void put_mask(Engine& e, const Snapshot* now, int64_t most, uint32_t* out, const PutMask& put_mask) const {
        const std::shared_ptr<const BudgetTables> budget = tables(e);
        most = std::min(most, TokensToEnd::kNever - 1);
        BudgetMemo::Found found = memo_.at(now);
        put_mask();
        if (found.enough <= most) return;
        found.enough = e.run([&](auto& operations) {
            BudgetMask masks(of_cfg(operations), *budget);
            if (!masks.is_without_count(now)) found.top = nullptr;
            return masks.narrow(now, most, out);
        });
        if (found.top) memo_.keep(found);
    }
    // Some tokens (ascending) are never text.
    Way leave_out(Engine& e, const Snapshot* now, const std::vector<int32_t>& tokens) {
        const auto reduced = e.vocab->kept<ReducedVocabularies>().without(tokens);
        const auto has_end = [&] { return least(e, now) < TokensToEnd::kNever; };
        try {
            const bool is_sure = !reduced || reduced->unspelled().empty() || e.why_no_budgets() || !has_end();
            reduced_ = reduced;
            memo_.clear();
            tables_.clear();
            if (is_sure || tables(e)->terminals.has_all_ends()) return Way::kSure;
            return has_end() ? Way::kNarrow : Way::kNone;
        } catch (const Unsupported&) {  // what texts need is not known
            reduced_ = reduced;
            return Way::kSure;
        }
    }
    void forget() { memo_.clear(); }  // bytes were committed, and the memo counts tokens
    void rolled_back(const Snapshot* to) { memo_.rolled_back(to); }

  private:
    BudgetMemo memo_;
    std::shared_ptr<const ReducedVocabulary> reduced_;  // where some tokens are never text
    KeptPointer<const BudgetTables> tables_;            // without those tokens; the engine keeps few of them

    std::shared_ptr<const BudgetTables> tables(Engine& e) const {
        return tables_.get([&] { return e.budget_tables(reduced_); });
    }
    static Operations<Cfg>& of_cfg(Operations<Cfg>& operations) { return operations; }
    static Operations<Cfg>& of_cfg(Operations<Longest>&) { throw Unsupported("no budgets under \"longest\""); }  // seen before
};

}  // namespace wfsa
