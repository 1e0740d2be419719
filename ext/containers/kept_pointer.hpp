// A shared object that its owner makes at the first use and keeps; read by any thread, copied with its owner.
#pragma once
#include <memory>
#include <mutex>

namespace wfsa {

template <class T> class KeptPointer {
  public:
    KeptPointer() = default;
    KeptPointer(const KeptPointer& other) : kept_(other.get()) {}
    KeptPointer& operator=(const KeptPointer&) = delete;

    // make() runs without a lock: two threads may both make one, and the last one is kept.
    template <class Make> std::shared_ptr<T> get(const Make& make) const {
        if (std::shared_ptr<T> known = get()) return known;
        std::shared_ptr<T> made = make();
        const std::lock_guard<std::mutex> lock(mutex_);
        return kept_ = std::move(made);
    }
    void clear() {
        const std::lock_guard<std::mutex> lock(mutex_);
        kept_.reset();
    }

  private:
    mutable std::mutex mutex_;
    mutable std::shared_ptr<T> kept_;

    std::shared_ptr<T> get() const {
        const std::lock_guard<std::mutex> lock(mutex_);
        return kept_;
    }
};

}  // namespace wfsa
