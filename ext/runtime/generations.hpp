// Tables that grow give back: texts begin on fresh ones when those at hand have grown by more than their budget.
//
// What a constraint learns while texts are decoded (lexer states, profiles, sets of members) is kept for the next text,
// and strangers can make it learn without end. So tables have a budget; who starts a text beyond it gets tables that
// know what the grammar says and no more, as a lazy constraint begins. Texts that are being decoded keep theirs, and
// the last of them takes the old tables along. The same happens after a limit was met: a text may fail, never the
// constraint.
#pragma once
#include <functional>

#include "runtime/engine.hpp"

namespace wfsa {

// New tables for the same grammar, terminals and LR automaton; nothing that was learnt. None where they are complete by
// now: then nothing grows any more.
inline std::shared_ptr<Engine> fresh(const Engine& of) {
    std::shared_ptr<Engine> out = make_engine(of.vocab);
    Engine& e = *out;
    const GrowthLock::Reading reading(of.lock);  // other threads may be decoding
    if (of.frozen) return nullptr;
    e.begin_as(of);
    e.budget = of.budget;
    e.settle();
    return out;
}

class Generations {
  public:
    explicit Generations(std::shared_ptr<Engine> first) : engine_(std::move(first)) {}

    // What is done with tables from now on, with those at hand first.
    void each(std::function<void(const std::shared_ptr<Engine>&)> begin) {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        begin_ = std::move(begin);
        begin_(engine_);
    }

    std::shared_ptr<Engine> latest() const {
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        return engine_;
    }
    // For a text that begins.
    std::shared_ptr<Engine> now() {
        std::shared_ptr<Engine> spent;  // dropped after the locks
        const ForkGate::Change change;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (engine_->spent()) {
            spent = engine_;
            if (std::shared_ptr<Engine> next = fresh(*spent)) {
                engine_ = std::move(next);
                if (begin_) begin_(engine_);
            }
        }
        return engine_;
    }

  private:
    mutable std::mutex mutex_;
    std::shared_ptr<Engine> engine_;
    std::function<void(const std::shared_ptr<Engine>&)> begin_;
};

}  // namespace wfsa
