// Ahead of time: expand everything that decoding can reach, so that the runtime never has to.
//
//   1 contexts   every set of terminals that a parse can lex from, with every watch set that can hold there
//   2 lexer      all lexer states reachable from those roots, and their profiles
//   3 tails      one universe of tails a terminal
//   4 parser     the machines that read tails, from every top over any state that can lie below
//
// The first and the last are the policy's: ahead/reach.hpp for "cfg", ahead/reach.hpp for "longest".
//
// The same functions run on demand in lazy mode; here they are only called in order.  Where the count of situations
// or the work passes a cap (a string of at most 500 characters has 500 times the states), the rest stays on demand and
// `complete()` is false; so it is, always, under "longest", and where a list has any order: its sets stay on demand.
// Caps count steps, not time: same input, same tables.
// Work comes in small slices, so that the caller can report progress and stop.  An exception may end one anywhere (a
// limit; GrowthLock::Preempted in the background): what it was doing is begun again by the next one.
#pragma once
#include <chrono>

#include "ahead/reach.hpp"
#include "runtime/engine.hpp"

namespace wfsa {

class Ahead {
  public:
    explicit Ahead(Engine& engine) : e_(engine), order_(engine.lexer) {
        if (e_.longest()) reach_ = std::make_unique<Situations>(e_);
        else reach_ = std::make_unique<LrStates>(e_);
    }

    // One slice of work; false when all is done.
    bool advance() {
        switch (stage_) {
            case kContexts:
                if (!reach_->find_roots()) stage_ = kLexerStates;
                return true;
            case kLexerStates:
                if (!expand_lexer()) stage_ = kTails;
                return true;
            case kTails:
                e_.share_universes();
                stage_ = kParser;
                return true;
            case kParser:
                if (reach_->read_tails()) return true;
                // Tails may have been lexed in states not met before, which need profiles, too.
                stage_ = complete() && n_lexed_ < e_.lexer.states.size() ? kLexerStates : kDone;
                return true;
            default:
                if (complete()) retired_ = e_.freeze();
                return false;
        }
    }
    // Slices of one stage, for about so many microseconds.
    bool advance_for(int64_t time) {
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(time);
        const int stage = stage_;
        while (advance())
            if (stage_ != stage || std::chrono::steady_clock::now() >= until) return true;
        return false;
    }
    const char* stage() const {
        static const char* names[] = {"contexts", "lexer states", "tails", "parser DWA", "done"};
        return names[stage_];
    }
    double fraction() const {
        const double n = double(std::max<size_t>(e_.lexer.states.size(), 1));
        const double part = stage_ == kLexerStates ? double(n_lexed_) / n : stage_ == kTails ? 0.0 : reach_->fraction();
        return stage_ == kDone ? 1.0 : (stage_ + std::min(1.0, part)) / 4;
    }
    bool complete() const { return !is_cut_ && reach_->complete(); }

  private:
    static constexpr int64_t kWalkCap = 1 << 20;  // trie nodes walked for profiles; the rest is left on demand
    static constexpr size_t kStateCap = 1 << 16;  // lexer states, likewise
    static constexpr size_t kSlice = 16;          // lexer states
    enum Stage { kContexts, kLexerStates, kTails, kParser, kDone };
    Engine& e_;
    std::unique_ptr<Reach> reach_;
    Stage stage_ = kContexts;
    StateOrder order_;     // of the lexer states
    size_t n_lexed_ = 0;   // of these, have profiles
    bool is_cut_ = false;  // a cap was met
    Retired retired_;      // destroyed with this

    bool expand_lexer() {
        if (e_.profiler.work() > kWalkCap || order_.size() > kStateCap) {
            is_cut_ = true;
            return false;
        }
        for (const size_t stop = n_lexed_ + kSlice; n_lexed_ < stop; ++n_lexed_) {
            GrowthLock::let_read();
            const int32_t y = order_[n_lexed_];
            if (y < 0) return false;
            e_.lexer.expand(y);
            e_.profiler.profile(y);
            order_.follow(y);
        }
        return true;
    }
};

}  // namespace wfsa
