// Work on rows in any number of threads. Results belong to their row, so the number of threads never shows.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fabricast {

/// Calls work(i) once for i = 0 .. rows - 1, in this order of starting. jobs: threads, 0 = as many as there are processors.
/// The last exception of a row ends the rest and is thrown.
template <typename Work>
void for_each_row(std::size_t rows, unsigned jobs, const Work& work) {
    std::atomic<std::size_t> next = 0;
    std::exception_ptr failed;
    std::mutex guard;
    const auto run = [&] {
        for (std::size_t i = next++; i < rows; i = next++) {
            try {
                work(i);
            } catch (...) {
                const std::scoped_lock lock(guard);
                failed = std::current_exception();
                next = rows;
            }
        }
    };
    {
        if (jobs == 0)
            jobs = std::max(1U, std::thread::hardware_concurrency());
        std::vector<std::jthread> threads;
        for (unsigned t = 1; t < jobs && t < rows; ++t)
            threads.emplace_back(run);
        run();
    }
    if (failed)
        std::rethrow_exception(failed);
}

}  // namespace fabricast
