// "Is my nccl-tests result healthy?": ceilings within 5 %, and a fabric that loses bandwidth with nodes is told.
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validate/score/nccl_score.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kSize = std::int64_t{8} << 30;

double busbw(const Platform& platform, Collective kind, CommSettings settings = {}) {
    NetworkConstants constants;
    if (platform.nodes > 1) {
        constants = catalogue_constants(platform.expected, platform.gpu);
    }
    const double time = Predictor(platform, constants, settings).predict(kind, kSize).time_us;
    return static_cast<double>(kSize) / time * 1e-3 * bus_bandwidth_factor(kind, platform.nodes * platform.node.gpus);
}

TEST(HealthQuestion, CeilingOfOneNode) {
    const Platform node = preset_platform("hgx-h100", 1, 8);
    EXPECT_NEAR(busbw(node, Collective::all_reduce), 480, 0.05 * 480);
    CommSettings ring;
    ring.algorithms = {Algorithm::ring};
    EXPECT_NEAR(busbw(node, Collective::all_reduce, ring), 370, 0.05 * 370);
}

TEST(HealthQuestion, CeilingOfOneAdapter) {
    EXPECT_NEAR(busbw(preset_platform("hgx-h100", 2, 1), Collective::all_reduce), 47, 0.05 * 47);
}

// 8 A100 a node, 8 x 100 Gb/s RoCE. One size is enough: the share is taken at the largest ones.
CurveScore judged(int nodes, double measured_busbw) {
    const int ranks = 8 * nodes;
    const double factor = 2.0 * (ranks - 1) / ranks;
    std::string text =
        "# nThread 1 nGpus 1 minBytes 1073741824 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg "
        "iters: 1 "
        "validation: 1 graph: 0\n#\n# Using devices\n";
    for (int rank = 0; rank < ranks; ++rank) {
        text += fmt::format("#  Rank {} Group  0 Pid {} on host-{} device {} [0x0{}] NVIDIA A100-SXM4-80GB\n", rank,
                            1000 + rank, rank / 8, rank % 8, rank % 8);
    }
    text +=
        "#\n#                                                              out-of-place                       in-place "
        "         \n"
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
        "#wrong\n"
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s) "
        "      \n";
    for (std::int64_t size = std::int64_t{1} << 30; size <= kSize; size *= 2) {
        const double algbw = measured_busbw / factor;
        const std::string half =
            fmt::format("{:.1f} {:.2f} {:.2f} 0", static_cast<double>(size) / algbw * 1e-3, algbw, measured_busbw);
        text += fmt::format("{} {} float sum -1 {} {}\n", size, size / 4, half, half);
    }
    text +=
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : " + fmt::format("{:.4f}", measured_busbw) + "\n#\n";
    const std::vector<NcclRun> runs = parse_nccl_log(text, "all_reduce.log");
    EXPECT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs.front().verdict, NcclVerdict::usable) << runs.front().reason;
    RunCases cases;
    RunCase one{.file = "all_reduce.log", .run = runs.front(), .platform = {}, .kind = Collective::all_reduce};
    one.platform =
        find_platform(one.run, {.preset = "", .hardware = "", .network = "RoCE 8x100G", .nodes = {}, .gpus = {}});
    one.settings = settings_for(one.platform, false);
    cases.cases.push_back(std::move(one));
    return score_nccl(cases, false).curves.front();
}

TEST(HealthQuestion, BandwidthThatFallsWithNodes) {
    struct Row {
        int nodes;
        double busbw;
        Health health;
    };
    for (const Row& row :
         {Row{2, 100, Health::healthy}, Row{4, 58, Health::sick}, Row{5, 58, Health::sick}, Row{6, 40, Health::sick}}) {
        const CurveScore one = judged(row.nodes, row.busbw);
        EXPECT_EQ(name_of(one.verdict.health), name_of(row.health)) << row.nodes << " nodes: " << one.verdict.sentence;
        if (row.health == Health::sick) {
            EXPECT_EQ(name_of(one.verdict.cause), "congestion_or_ecmp");
        }
    }
    const CurveScore six = judged(6, 40);
    EXPECT_NEAR(six.verdict.line_share, 0.40, 0.005);  // of 8 x 12.5 = 100 GB/s
    EXPECT_NEAR(six.verdict.share, 0.40, 0.05);        // of what adapters leave of it
    EXPECT_NE(six.verdict.sentence.find("40 % of the 100 GB/s line rate"), std::string::npos) << six.verdict.sentence;
}

TEST(HealthQuestion, PcieAgainstNvlink) {
    // Gradients of a 7B model among 8 A100: the links inside the node decide by a factor, not by per cents.
    const double nvlink = busbw(preset_platform("hgx-a100-80g", 1, 8), Collective::all_reduce);
    Platform pcie = preset_platform("hgx-a100-80g", 1, 8);
    pcie.gpu = *Catalogue::builtin().find_gpu("A100-PCIe-80G");
    EXPECT_GT(nvlink, 5 * busbw(pcie, Collective::all_reduce));
}

}  // namespace
}  // namespace fabricast
