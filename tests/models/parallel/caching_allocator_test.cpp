#include "models/parallel/caching_allocator.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20, kLimit = Bytes{1} << 40;

TEST(CachingAllocator, SegmentsHaveTheLibrarysSizes) {
    CachingAllocator a(kLimit, 0);
    a.take(100);
    EXPECT_EQ(a.reserved(), 2 * kMiB);
    a.take(512 * 1024);  // from the same segment
    EXPECT_EQ(a.reserved(), 2 * kMiB);
    a.take(3 * kMiB);
    EXPECT_EQ(a.reserved(), 22 * kMiB);
    a.take(15 * kMiB);  // the rest of the 20 MiB holds it
    EXPECT_EQ(a.reserved(), 22 * kMiB);
    a.take(33 * kMiB + 1);
    EXPECT_EQ(a.reserved(), 56 * kMiB);
    EXPECT_EQ(a.used(), 512 + 512 * 1024 + 18 * kMiB + 34 * kMiB);  // under 1 MiB is not split off
}

TEST(CachingAllocator, FreedBlocksMergeAndAreUsedAgain) {
    CachingAllocator a(kLimit, 0);
    const auto whole = a.take(100 * kMiB);
    a.give(whole);
    const auto first = a.take(40 * kMiB), second = a.take(30 * kMiB), third = a.take(30 * kMiB);
    EXPECT_EQ(a.reserved(), 100 * kMiB);
    a.give(first);
    a.give(third);
    a.take(60 * kMiB);  // two holes of 40 and 30 do not hold it
    EXPECT_EQ(a.reserved(), 160 * kMiB);
    a.give(second);
    a.take(100 * kMiB);
    EXPECT_EQ(a.reserved(), 160 * kMiB);
    EXPECT_EQ(a.used(), 160 * kMiB);
}

TEST(CachingAllocator, TheLimitGivesFreeSegmentsBackThenFails) {
    CachingAllocator a(100 * kMiB, 0);
    a.give(a.take(60 * kMiB));
    a.take(80 * kMiB);
    EXPECT_EQ(a.retries(), 1);
    EXPECT_EQ(a.reserved(), 80 * kMiB);
    EXPECT_EQ(a.peak_reserved(), 80 * kMiB);
    EXPECT_FALSE(a.failed());
    a.take(30 * kMiB);
    EXPECT_TRUE(a.failed());
}

TEST(CachingAllocator, ABlockACollectiveReadsWaitsForTheGpu) {
    CachingAllocator a(kLimit, 1e-5);
    const auto full = a.take(64 * kMiB);
    a.run(1e-3, 1);
    a.give_after_gpu(full);
    a.give(a.take(64 * kMiB));  // the host is ahead: a second segment
    EXPECT_EQ(a.reserved(), 128 * kMiB);
    a.synchronise();
    a.take(64 * kMiB);
    a.take(64 * kMiB);
    EXPECT_EQ(a.reserved(), 128 * kMiB);
    // the queue between host and GPU is finite
    a.run(0, 1024);
    a.run(1, 1);
    const auto late = a.take(32 * kMiB);
    a.run(0, 1);
    a.give_after_gpu(late);
    a.run(0, 2000);
    a.take(32 * kMiB);
    EXPECT_EQ(a.reserved(), 160 * kMiB);
}

}  // namespace
}  // namespace fabricast
