// What decoding can reach, as far as the policy decides it; work in slices (ahead.hpp).
#pragma once
#include "runtime/access.hpp"

namespace wfsa {

class Reach {
  public:
    virtual ~Reach() = default;
    virtual bool find_roots() = 0;  // lexer states where lexing can start; false: that was the last slice
    virtual bool read_tails() = 0;  // stacks that the machines can read, once there are universes; false likewise
    virtual double fraction() const = 0;  // of the slices of this kind
    virtual bool complete() const = 0;    // is nothing left to be expanded on demand, for all that it knows?

  protected:
    explicit Reach(Tables& tables) : t_(tables), access_(Access::growing(tables)) {}
    Tables& t_;
    const Access access_;

    // The universes made since the last call.
    template <class Visit> void each_new_universe(const Visit& visit) {
        for (; n_universes_ < t_.universes.size(); ++n_universes_)
            visit(t_.universes[n_universes_].term, int32_t(n_universes_));
    }

  private:
    size_t n_universes_ = 0;
};

}  // namespace wfsa
