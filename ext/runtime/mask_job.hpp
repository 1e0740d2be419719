// A mask to be computed: what fill_masks deals out to threads, whichever module's state it comes from.
//
// A state of another module hands its job over in a capsule named kMaskJob. The state, and what `of` points to, stay where
// they are until the masks are there.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace wfsa {

constexpr const char* kMaskJob = "wfsa.MaskJob";

struct MaskJob {
    const void* of = nullptr;
    void (*fill)(const void* of, uint32_t* out, int64_t n_words) = nullptr;  // all of out[n_words]; may throw
    int64_t n_words = 0;                                                     // that the vocabulary needs
};

// The masks of many states, dealt out to threads one by one.
inline void fill_masks(const std::vector<MaskJob>& jobs, const std::vector<uint32_t*>& outs, int64_t n_words,
                       int64_t n_threads) {
    std::atomic<size_t> next{0};
    std::mutex lock;
    std::exception_ptr failed;
    auto work = [&] {
        try {
            for (size_t i; (i = next++) < jobs.size();) jobs[i].fill(jobs[i].of, outs[i], n_words);
        } catch (...) {
            std::lock_guard<std::mutex> guard(lock);
            failed = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    try {
        for (int64_t t = 1; t < n_threads && size_t(t) < jobs.size(); ++t) threads.emplace_back(work);
    } catch (const std::system_error&) {  // no more threads to be had: fewer do the same
    }
    work();
    for (std::thread& t : threads) t.join();
    if (failed) std::rethrow_exception(failed);
}

}  // namespace wfsa
