// NCCL's tables against vectors worked out from its source and against a public socket-network log.
#include "models/collectives/tuner.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "tests/models/collectives/support.hpp"

namespace fabricast {
namespace {

using namespace test;

struct Vector {
    const char* name;
    TunerInput in;
    double entry[6][2];  // Tree LL, LL128, Simple, Ring LL, LL128, Simple: latency us, GB/s; -1 = off
    double nvls[2];      // NVLS or NVLSTree, 0 = none
};

SearchResult found(SearchGraph ring, SearchGraph tree, bool plain_tree, SearchGraph nvls = {}) {
    return {.ring = ring,
            .tree = tree,
            .nvls = nvls,
            .nvlink_intra = true,
            .plain_tree = plain_tree,
            .same_channels = true};
}

TunerInput input(GpuGeneration generation, bool amd, std::uint32_t ranks, std::uint32_t nodes, SearchResult search) {
    TunerInput in;
    in.generation = generation;
    in.amd_cpu = amd;
    in.ranks = ranks;
    in.nodes = nodes;
    in.one_rank_a_node = ranks == nodes;
    in.search = search;
    return in;
}

const SearchResult kH100One = found({12, 30, 30}, {12, 30, 30}, false, {8, 40, 60});
const SearchResult kH100Many = found({8, 48, 48}, {8, 48, 48}, true, {8, 40, 48});
const SearchResult kA100One = found({12, 20, 20}, {12, 20, 20}, false);
const SearchResult kA100Many = found({8, 24, 24}, {8, 24, 24}, false);
const SearchResult kH100Single = found({1, 48, 48}, {1, 48, 48}, true);
const auto kHopper = GpuGeneration::hopper;
const auto kAmpere = GpuGeneration::ampere;

const Vector kVectors[] = {
    {"8x H100",
     input(kHopper, false, 8, 1, kH100One),
     {{15.2, 43.6}, {31.5, 128.8}, {64.4, 165.6}, {15.0, 80.6}, {40.6, 189.3}, {56.0, 205.7}},
     {25.0, 272.0}},
    {"2x8 H100",
     input(kHopper, false, 16, 2, kH100Many),
     {{25.2, 16.6}, {48.5, 124.8}, {92.4, 140.8}, {40.0, 20.8}, {75.2, 156.6}, {131.6, 204.8}},
     {66.8, 246.2}},
    {"4x8 H100",
     input(kHopper, false, 32, 4, kH100Many),
     {{35.2, 8.7}, {65.5, 98.6}, {120.4, 122.4}, {78.8, 10.5}, {144.4, 151.5}, {282.8, 198.2}},
     {108.6, 187.9}},
    {"16x8 H100",
     input(kHopper, false, 128, 16, kH100Many),
     {{55.2, 8.7}, {99.5, 98.6}, {176.4, 122.4}, {311.6, 10.3}, {559.6, 148.0}, {1190.0, 193.5}},
     {192.2, 183.4}},
    {"128x8 H100",
     input(kHopper, false, 1024, 128, kH100Many),
     {{85.2, 8.7}, {150.5, 98.6}, {260.4, 122.4}, {2484.4, 10.2}, {4434.8, 146.9}, {9657.2, 192.2}},
     {317.6, 182.2}},
    {"8x A100",
     input(kAmpere, true, 8, 1, kA100One),
     {{15.2, 29.1}, {31.5, 85.9}, {64.4, 110.4}, {15.0, 50.1}, {40.6, 126.2}, {56.0, 137.1}},
     {0, 0}},
    {"2x8 A100",
     input(kAmpere, true, 16, 2, kA100Many),
     {{25.2, 11.2}, {48.5, 80.0}, {92.4, 88.3}, {68.0, 12.0}, {78.0, 85.3}, {204.4, 102.4}},
     {0, 0}},
    {"16x8 A100",
     input(kAmpere, true, 128, 16, kA100Many),
     {{55.2, 9.5}, {99.5, 66.8}, {176.4, 71.2}, {535.6, 9.6}, {582.0, 80.6}, {1772.4, 96.8}},
     {0, 0}},
    {"128x1 H100",
     input(kHopper, false, 128, 128, kH100Single),
     {{76.8, 4.0}, {133.0, 12.3}, {204.4, 15.3}, {1276.6, 10.3}, {2173.0, 18.5}, {3564.4, 24.2}},
     {0, 0}},
};

constexpr double kDigit = .0501;  // the vectors are printed with one decimal

TEST(Tuner, AllReduceVectors) {
    for (const Vector& v : kVectors) {
        SCOPED_TRACE(v.name);
        const TunerTable table = tune(v.in, Collective::all_reduce);
        for (int i = 0; i < 6; ++i) {
            const TunerEntry& entry = table.entry[i / 3][i % 3];
            EXPECT_NEAR(entry.latency_us, v.entry[i][0], kDigit) << "entry " << i;
            EXPECT_NEAR(entry.bandwidth_gb_per_s, v.entry[i][1], kDigit) << "entry " << i;
        }
        const auto nvls = v.in.nodes == 1 ? Algorithm::nvls : Algorithm::nvls_tree;
        const TunerEntry& entry = table.entry[static_cast<int>(nvls)][static_cast<int>(Protocol::simple)];
        EXPECT_NEAR(entry.bandwidth_gb_per_s, v.nvls[1], kDigit);
        if (v.nvls[1] > 0) {
            EXPECT_NEAR(entry.latency_us, v.nvls[0], kDigit);
        }
    }
}

TEST(Tuner, SocketNetworkLogDigitForDigit) {
    TunerInput in = input(GpuGeneration::volta, false, 2, 2, found({1, 2.4, 2.4}, {1, 4.8, 2.4}, true));
    in.ll128 = false;
    const TunerTable reduce = tune(in, Collective::all_reduce);
    const double want[6][2] = {{16.8, .49}, {31.0, 0}, {36.4, 1.88}, {16.6, 1.2}, {31.0, 0}, {36.4, 2.4}};
    for (int i = 0; i < 6; ++i) {
        EXPECT_NEAR(reduce.entry[i / 3][i % 3].latency_us, want[i][0], kDigit);
        EXPECT_NEAR(reduce.entry[i / 3][i % 3].bandwidth_gb_per_s, want[i][1], .0051);
    }
    const TunerTable gather = tune(in, Collective::all_gather);
    const double latency[3] = {11.6, 22.5, 22.4};
    for (int p = 0; p < 3; ++p) {
        EXPECT_NEAR(gather.entry[static_cast<int>(Algorithm::ring)][p].latency_us, latency[p], kDigit);
        EXPECT_EQ(gather.entry[static_cast<int>(Algorithm::tree)][p].bandwidth_gb_per_s, 0);
    }
}

TEST(Tuner, AllGatherRingAndPat) {
    struct Row {
        std::uint32_t ranks, nodes;
        double latency, bandwidth;
    };
    for (const Row& row :
         {Row{8, 1, 32.2, 411}, Row{16, 2, 70.0, 409.6}, Row{128, 16, 599, 387}, Row{1000, 125, 4719, 384}}) {
        const auto in = input(kHopper, false, row.ranks, row.nodes, row.nodes == 1 ? kH100One : kH100Many);
        const TunerTable table = tune(in, Collective::all_gather);
        const TunerEntry& ring = table.entry[static_cast<int>(Algorithm::ring)][static_cast<int>(Protocol::simple)];
        EXPECT_NEAR(ring.latency_us, row.latency, .51);
        EXPECT_NEAR(ring.bandwidth_gb_per_s, row.bandwidth, .51);
    }
    const TunerTable table = tune(input(kHopper, false, 128, 128, kH100Single), Collective::all_gather);
    EXPECT_NEAR(table.entry[static_cast<int>(Algorithm::pat)][2].latency_us, 394.4, kDigit);
    EXPECT_NEAR(table.entry[static_cast<int>(Algorithm::ring)][2].latency_us, 1786, .51);
    const TunerTable one = tune(input(kHopper, false, 8, 1, kH100One), Collective::all_gather);
    EXPECT_NEAR(one.entry[static_cast<int>(Algorithm::nvls)][2].bandwidth_gb_per_s, 208, .51);
}

struct Choice {
    double time_s = std::numeric_limits<double>::infinity();
    Algorithm algorithm = Algorithm::ring;
    Protocol protocol = Protocol::simple;
};
Choice choose(const TunerInput& in, Bytes size) {
    const TunerTable table = tune(in, Collective::all_reduce);
    Choice best;
    for (int a = 0; a < static_cast<int>(Algorithm::count); ++a) {
        for (int p = 0; p < 3; ++p) {
            const double t = tuner_time_s(in, table, Collective::all_reduce, static_cast<Algorithm>(a),
                                          static_cast<Protocol>(p), size);
            if (t < best.time_s) {
                best = {t, static_cast<Algorithm>(a), static_cast<Protocol>(p)};
            }
        }
    }
    return best;
}

TEST(Tuner, ThousandRanksBestTimes) {
    TunerInput in = input(kHopper, false, 1000, 125, kH100Many);
    in.channels = 16;
    EXPECT_NEAR(choose(in, 1024).time_s * 1e6, 75, 1);
    EXPECT_EQ(choose(in, 1024).protocol, Protocol::ll);
    EXPECT_NEAR(choose(in, kMiB).time_s * 1e6, 151, 1.1);
    EXPECT_EQ(choose(in, kMiB).protocol, Protocol::ll128);
    EXPECT_NEAR(choose(in, 64 * kMiB).time_s * 1e6, 644, 1);
    EXPECT_EQ(choose(in, 64 * kMiB).algorithm, Algorithm::nvls_tree);
    EXPECT_NEAR(choose(in, kGiB).time_s * 1e6, 6170, 5);
    EXPECT_NEAR(choose(in, 64 * kGiB).time_s * 1e6, 370759, 30);
    EXPECT_EQ(choose(in, 64 * kGiB).algorithm, Algorithm::ring);
}

TEST(Tuner, PlateauAndCorrection) {
    TunerInput in = input(kHopper, false, 16, 2, kH100Many);
    in.channels = 16;
    EXPECT_EQ(ring_plateau(in, 16 * 16 * 64 - 1), 1);
    EXPECT_EQ(ring_plateau(in, 16 * 16 * 64), 1.4);
    in.generation = GpuGeneration::volta;
    EXPECT_EQ(ring_plateau(in, kMiB), 1.9);
    EXPECT_EQ(tree_correction(Protocol::ll, 63), 1);
    EXPECT_EQ(tree_correction(Protocol::ll, 256 * 1024), .4);
    EXPECT_EQ(tree_correction(Protocol::simple, kMiB), .5);
    EXPECT_EQ(tree_correction(Protocol::simple, 512 * kMiB), 1);
}

TEST(Tuner, LibraryVersions) {
    EXPECT_EQ(nccl_version("nccl 2.28"), NcclVersion::v2_28);
    EXPECT_EQ(nccl_version("nccl 2.28.9"), NcclVersion::v2_28);
    EXPECT_EQ(nccl_version("nccl 2.30.7"), NcclVersion::v2_30);
    EXPECT_THROW(nccl_version("nccl 2.2"), std::invalid_argument);
    EXPECT_THROW(nccl_version("nccl 2.280"), std::invalid_argument);
    EXPECT_THROW(nccl_version(""), std::invalid_argument);
}

}  // namespace
}  // namespace fabricast
