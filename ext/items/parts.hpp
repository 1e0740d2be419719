// Runs work in parts, each on a thread of its own: work(0) on the calling thread, work(1) .. on others.
//
// If the system provides no further thread (a limit of processes, or of memory), the part runs on the calling thread,
// so too many threads are not an error. An exception ends only its part; one of them is rethrown when all parts have
// ended.
#pragma once
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace wfsa {
namespace items {

constexpr int kMostThreads = 256;

template <class Work>
void run_parts(int parts, const Work& work) {
    std::mutex lock;
    std::exception_ptr failed;
    auto run = [&](int part) {
        try {
            work(part);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(lock);
            failed = std::current_exception();
        }
    };
    std::vector<std::thread> pool;
    pool.reserve((size_t)parts);
    for (int part = 1; part < parts; ++part) {
        try {
            pool.emplace_back(run, part);
        } catch (const std::system_error&) {
            run(part);
        }
    }
    run(0);
    for (auto& t : pool) t.join();
    if (failed) std::rethrow_exception(failed);
}

}  // namespace items
}  // namespace wfsa
