// Folded, in space and in time, and rank by rank, operation by operation: the same to the last picosecond.
#include "models/program/fold.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/compute/spread.hpp"
#include "support.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

#ifdef NDEBUG
constexpr std::uint64_t kScenarios = 200;
#else
constexpr std::uint64_t kScenarios = 12;
#endif

/// Scenario number n: 8 to 512 GPUs, every parallelism, faults and slow GPUs.
std::string draw_scenario(std::uint64_t n) {
    test::Draw draw(n + 77000);  // every draw is a statement of its own: compilers order arguments as they like
    const int nodes = draw.of({1, 1, 2, 4, 8, 16, 64});
    const int gpus = nodes * 8;
    const std::string fabric = draw.of<const char*>({"kind: rail-fat-tree", "kind: rail-fat-tree, oversubscription: 2",
                                                     "kind: rail-fat-tree, routing: adaptive",
                                                     "kind: rail-fat-tree, oversubscription: 2, routing: static",
                                                     "kind: rail-fat-tree, oversubscription: 2, routing: ecmp"});
    const int nodes_per_pod = draw.of({2, 4, 64});
    const bool experts = draw.of({0, 0, 1}) == 1;
    const int tp = std::min(gpus, draw.of({1, 1, 2, 4, 8, 8}));
    const int cp = std::min(gpus / tp, draw.of({1, 1, 1, 2}));
    const int pp = std::min(gpus / (tp * cp), draw.of({1, 1, 2, 4}));
    const int dp = gpus / (tp * cp * pp);
    const int ep = experts ? std::min(dp, draw.of({1, 2, 8})) : 1;
    const std::string schedule =
        pp == 1 ? "1f1b" : std::string(draw.of({"gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}));
    const bool halves = schedule == "interleaved" || schedule == "zb-v";
    const int zero = schedule == "zb-v" || schedule == "zb-h1" ? draw.of({0, 1}) : draw.of({0, 1, 2, 3});
    const int group = zero == 3 && !experts && dp % 2 == 0 && draw.flag() ? dp * cp / 2 : 0;
    const int batch = dp * pp * draw.of({1, 2});
    const std::string order = draw.of({"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"});
    const std::string software = draw.of({"megatron-2022", "megatron-core-2024", "torch-fsdp"});
    const std::string exchange = draw.of({"ring", "all_gather"});
    // Drawn jitter leaves nothing to fold: every rank and step is simulated either way.
    const std::string slow =
        draw.of({"gpu_spread: 0", "gpu_spread: 0.02", "gpu_spread: 0.02, gpu_draw: each, kernel_jitter: 0"});
    const int where = static_cast<int>(draw.bits() % static_cast<std::uint64_t>(nodes));
    const std::string degraded = draw.of({"", "nic 2 at 0.5", "gpu 3 nvlink at 0.8", ""});
    std::string fault = degraded;
    if (const std::size_t space = fault.find(' '); space != std::string::npos)
        fault.insert(space + 1, fmt::format("{}.", where));
    if (nodes == 1 && fault.starts_with("nic"))
        fault.clear();
    return fmt::format(
        "name: drawn-{}\n"
        "cluster: {{nodes: {}, node: hgx-h100, {}{}{}}}\n"
        "model: {{layers: 8, hidden: 1024, heads: 16, ffn: 2816, vocab: 32000{}}}\n"
        "training:\n"
        "  sequence: 2048 tokens\n"
        "  global_batch: {} sequences\n"
        "  micro_batch: 1\n"
        "  layout: {{tp: {}, sp: true, cp: {}, cp_exchange: {}, pp: {}, vpp: {}, dp: {}, ep: {}, zero: {}, "
        "shard_group: {}, order: {}}}\n"
        "  schedule: {}\n"
        "  software: {}\n",
        n, nodes, slow, nodes > 1 ? fmt::format(", fabric: {{{}, nodes_per_pod: {}}}", fabric, nodes_per_pod) : "",
        fault.empty() ? "" : ", degraded: " + fault, experts ? ", moe: {experts: 8, top_k: 2, ffn: 1024}" : "", batch,
        tp, cp, exchange, pp, halves ? 2 : 1, dp, ep, zero, group, order, schedule, software);
}

/// Nothing where the scenario is refused.
std::optional<Scenario> parsed(const std::string& yaml, std::string& refused) {
    try {
        return parse_scenario(yaml, "test.yaml", {});
    } catch (const ScenarioError& error) {
        refused = error.what();
        return std::nullopt;
    }
}

void expect_equal(const Result& folded, const Result& whole) {  // but for the counts of the engine
    EXPECT_EQ(folded.verdict, whole.verdict);
    EXPECT_EQ(folded.failure, whole.failure);
    EXPECT_EQ(folded.step.ps, whole.step.ps);
    EXPECT_EQ(folded.fingerprint, whole.fingerprint);
    EXPECT_TRUE(folded.step.accounts == whole.step.accounts);
    EXPECT_TRUE(folded.step.by_stage == whole.step.by_stage);
    EXPECT_EQ(folded.step.ranks_by_stage, whole.step.ranks_by_stage);
    EXPECT_EQ(folded.step.periodic, whole.step.periodic);
    EXPECT_EQ(folded.step.steps_simulated, whole.step.steps_simulated);
    ASSERT_EQ(folded.critical_path.size(), whole.critical_path.size());
    for (std::size_t i = 0; i < whole.critical_path.size(); ++i) {
        EXPECT_EQ(folded.critical_path[i].what, whole.critical_path[i].what);
        EXPECT_EQ(folded.critical_path[i].ps, whole.critical_path[i].ps);
    }
    EXPECT_LE(folded.ranks_simulated, whole.ranks_simulated);
}

TEST(Fold, EqualToEveryRankOnDrawnScenarios) {
    std::uint64_t ran = 0, smaller = 0, replayed = 0;
    std::string refused;
    for (std::uint64_t n = 0; n < kScenarios; ++n) {
        const std::string yaml = draw_scenario(n);
        SCOPED_TRACE(yaml);
        const std::optional<Scenario> scenario = parsed(yaml, refused);
        if (!scenario)
            continue;
        const Result folded = forecast(*scenario, {.over_memory = true});
        const Result whole = forecast(*scenario, {.over_memory = true, .fold = false});
        const Result plain = forecast(*scenario, {.over_memory = true, .fold = false, .fold_time = false});
        expect_equal(folded, plain);
        expect_equal(whole, plain);
        ++ran;
        smaller += folded.ranks_simulated * 2 <= whole.ranks_simulated;
        replayed += whole.events * 2 <= plain.events;
        if (::testing::Test::HasFailure())
            return;
    }
    EXPECT_GE(ran, kScenarios * 9 / 10) << refused;
    EXPECT_GE(smaller, ran / 3);
    EXPECT_GE(replayed, ran / 10);
    fmt::print("{} scenarios, {} with at most half the ranks, {} with at most half the events by replays\n", ran,
               smaller, replayed);
}

// What a quantum puts off is the same for ranks that are in the same state.
TEST(Fold, EqualToEveryRankWithAQuantum) {
    std::string refused;
    std::uint64_t held = 0;
    for (std::uint64_t n = 0; n < kScenarios / 4; ++n) {
        const std::string yaml = draw_scenario(n);
        SCOPED_TRACE(yaml);
        std::optional<Scenario> scenario = parsed(yaml, refused);
        if (!scenario)
            continue;
        scenario->quantum = 20'000'000;
        const Result folded = forecast(*scenario, {.over_memory = true});
        const Result whole = forecast(*scenario, {.over_memory = true, .fold = false});
        expect_equal(folded, whole);
        ASSERT_EQ(folded.quantum.has_value(), whole.quantum.has_value());
        if (folded.quantum) {
            EXPECT_EQ(folded.quantum->late, whole.quantum->late);
            EXPECT_EQ(folded.quantum->longest, whole.quantum->longest);
            held += whole.quantum->held + whole.quantum->put_off;
        }
    }
    EXPECT_GT(held, 0u);
}

TEST(Fold, EqualRanksAreOne) {
    const std::string yaml =
        "name: even\ncluster: {nodes: 16, node: hgx-h100, gpu_spread: 0}\n"
        "model: {layers: 8, hidden: 1024, heads: 16, ffn: 2816, vocab: 32000}\n"
        "training: {sequence: 2048 tokens, global_batch: 32 sequences, micro_batch: 1,\n"
        "  layout: {tp: 8, pp: 4, dp: 4, zero: 1}, schedule: 1f1b}\n";
    const auto even = test::run_text(yaml);
    EXPECT_EQ(even.result.ranks_simulated, 4u)
        << "one class a stage: the norm's tree over all nodes runs by itself and tells none apart";
    const auto slow = test::run_text(yaml, {"cluster.gpu_spread=0.02"});
    EXPECT_GT(slow.result.ranks_simulated, even.result.ranks_simulated);
    EXPECT_LE(slow.result.ranks_simulated, 32u);
    const auto flat = test::run_text(yaml, {"training.layout.tp=1", "training.layout.pp=1", "training.layout.dp=128",
                                            "training.layout.zero=3", "training.global_batch=128 sequences"});
    EXPECT_EQ(flat.result.ranks_simulated, 1u);
}

// The expected slowest GPU stands for drawn ones: within the sampling error of the mean of five draws and what one slow
// GPU cannot stand for (a slow stage beside the slowest).
TEST(Fold, ExpectedDrawIsTheMeanOfDraws) {
#ifndef NDEBUG
    GTEST_SKIP() << "a fit or many draws: Release only; the same code runs in the tests beside it";
#endif
    for (const char* layout : {"tp: 8, dp: 4", "dp: 32, zero: 3", "tp: 2, pp: 4, dp: 4", "tp: 8, pp: 4, dp: 1"}) {
        const std::string yaml = fmt::format(
            "name: spread\ncluster: {{nodes: 4, node: hgx-h100, gpu_spread: 0.02}}\n"
            "model: {{layers: 16, hidden: 4096, heads: 32, ffn: 11008, vocab: 32000}}\n"
            "training: {{sequence: 4096 tokens, global_batch: 64 sequences, micro_batch: 1, layout: {{{}}}}}\n",
            layout);
        const double expected = test::run_text(yaml).seconds();
        double sum = 0, square = 0;
        constexpr int kDraws = 5;
        for (int seed = 1; seed <= kDraws; ++seed) {
            const double s =
                test::run_text(yaml, {"cluster.gpu_draw=each", fmt::format("seed={}", seed)}).seconds() / expected;
            sum += s;
            square += s * s;
        }
        const double mean = sum / kDraws;
        const double error = std::sqrt(std::max(0.0, square / kDraws - mean * mean) / (kDraws - 1));
        EXPECT_NEAR(mean, 1, 3 * error + 0.003) << layout;
        fmt::print("{}: mean of draws {:.4f} +- {:.4f} of the expected\n", layout, mean, error);
    }
}

TEST(Fold, SlowestOfManyGpus) {
    EXPECT_EQ(expected_slowest(0, 1000), 65536u);
    const auto loss = [](std::int64_t gpus) { return expected_slowest(0.02, gpus) / 65536.0 - 1; };
    EXPECT_NEAR(loss(1024), 0.02 * (3.240 - 1.4236), 2e-4) << "the mean maximum of 1024 normal draws is 3.240";
    EXPECT_GT(loss(100000), loss(1024));
    EXPECT_LT(loss(8), 0.02 * 0.3);
}

}  // namespace
}  // namespace fabricast
