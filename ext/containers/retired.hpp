// What an object no longer needs, moved out of it, so that it is destroyed later, where nobody waits for it.
#pragma once
#include <memory>
#include <utility>
#include <vector>

namespace wfsa {

class Retired {
  public:
    // The container is empty afterwards.
    template <class T> void take(T& container) {
        auto to = std::make_shared<T>();
        std::swap(*to, container);
        parts_.push_back(std::move(to));
    }

  private:
    std::vector<std::shared_ptr<void>> parts_;
};

}  // namespace wfsa
