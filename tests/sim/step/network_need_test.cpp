// The network a step needs: bytes against closed forms, a break-even that is one, other adapters on clusters of every kind.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/step/network_need.hpp"
#include "sim/step/scaled_network.hpp"
#include "support.hpp"

namespace fabricast {
namespace {

using Bound = NetworkRow::Bound;

struct Needed {
    Scenario scenario;
    NetworkNeed out;
    explicit Needed(const std::string& yaml, const test::Overrides& overrides = {})
        : scenario(parse_scenario(yaml, "test.yaml", overrides)), out(network_need(scenario)) {}
    const NetworkRow& own() const { return *out.own(); }
};

double bytes(const SentBytes::ByAccount& of, Account account) {
    return static_cast<double>(of[static_cast<std::size_t>(account)]);
}

const std::string kModel = "model: {family: gpt, layers: 16, hidden: 2048, heads: 16, vocab: 32000}\n";
constexpr double kLayer = 12.0 * 2048 * 2048 + 13 * 2048, kTable = 32000.0 * 2048, kPositions = 2048.0 * 2048;
constexpr double kParameters = 16 * kLayer + kTable + kPositions;

std::string zero3(const std::string& rest = "") {
    return "cluster: {nodes: 2, node: hgx-a100-80g}\n" + kModel +
           "training: {sequence: 2048 tokens, global_batch: 64 sequences, micro_batch: 1, layout: {dp: 16, zero: 3}, "
           "recompute: full, overlap: {grad_reduce: true, param_gather: true}, software: deepspeed-2023}\n" +
           rest;
}

// Two gathers and a scatter of 16 bits a parameter every micro-batch; of the 16 GPUs of the ring every eighth sends to the
// other node.
TEST(NetworkNeed, BytesOfZero3AreThreeTimesTheParameters) {
    const Needed n(zero3());
    ASSERT_EQ(n.out.run.failure, "");
    const SentBytes& sent = n.own().sent;
    const double ring = 2 * kParameters * 15 / 16 * 4;  // 4 micro-batches
    EXPECT_NEAR(n.out.per_gpu(sent.from_gpus[static_cast<std::size_t>(Account::comm_parameter)]) / (2 * ring), 1, 0.01);
    EXPECT_NEAR(n.out.per_gpu(sent.from_gpus[static_cast<std::size_t>(Account::comm_gradient)]) / ring, 1, 0.01);
    for (const Account account : {Account::comm_parameter, Account::comm_gradient})
        EXPECT_NEAR(bytes(sent.over_network, account) / bytes(sent.from_gpus, account), 1.0 / 8, 1e-6);
    EXPECT_NEAR(static_cast<double>(SentBytes::sum(sent.busiest)) / n.out.per_node(SentBytes::sum(sent.over_network)),
                1, 1e-6);
    // Twice the micro-batch, half of it.
    ASSERT_EQ(n.out.rows.size(), 3u);
    const auto network = [&](std::size_t row) {
        return n.out.per_gpu(SentBytes::sum(n.out.rows[row].sent.over_network));
    };
    EXPECT_NEAR(network(0) / network(1), 2, 1e-3);
    EXPECT_NEAR(network(1) / network(2), 2, 1e-3);
}

// Stages on nodes: s b h values down and as many up for every micro-batch and boundary, of which each GPU of a tensor-parallel
// group sends its share; all-reduces of tensor parallelism stay inside.
TEST(NetworkNeed, BytesOfAPipeline) {
    const Needed n("cluster: {nodes: 2, node: hgx-a100-80g}\n" + kModel +
                   "training: {sequence: 2048 tokens, global_batch: 16 sequences, micro_batch: 2, "
                   "layout: {tp: 4, pp: 2, dp: 2}, schedule: 1f1b}\n");
    ASSERT_EQ(n.out.run.failure, "");
    const SentBytes& sent = n.own().sent;
    const double message = 2048.0 * 2 * 2048 * 2, micro_batches = 4, replicas = 2;
    EXPECT_NEAR(bytes(sent.over_network, Account::comm_pp) / (2 * message * micro_batches * replicas), 1, 1e-6);
    EXPECT_GT(bytes(sent.from_gpus, Account::comm_tp), 0);
    EXPECT_EQ(bytes(sent.over_network, Account::comm_tp), 0);
    EXPECT_EQ(bytes(sent.over_network, Account::comm_gradient), 0);  // replicas share a node
}

// The rate it names hides and the one below does not, as forecasts of these clusters say; it is above the mean rate of what
// is sent.
TEST(NetworkNeed, TheBreakEvenIsOne) {
    const Needed n(zero3());
    for (const NetworkRow& row : n.out.rows) {
        ASSERT_EQ(row.bound, Bound::between) << row.micro_batch;
        EXPECT_LE(row.needs_bits_per_s, kNeedResolution * row.short_bits_per_s);
        const auto step = [&](double rate) {
            Scenario s = with_scaled_network(n.scenario, rate / n.out.has_bits_per_s);
            s.training.micro_batch = row.micro_batch;
            return static_cast<double>(forecast(s).step.ps);
        };
        const double most = kHiddenWithin * static_cast<double>(row.infinite);
        EXPECT_LE(step(row.needs_bits_per_s), most);
        EXPECT_GT(step(row.short_bits_per_s), most);
        EXPECT_EQ(step(n.out.has_bits_per_s), static_cast<double>(row.step));
        EXPECT_GE(static_cast<double>(row.step), static_cast<double>(row.infinite));
        const double sent = n.out.per_node(SentBytes::sum(row.sent.over_network)) * 8;
        EXPECT_GT(row.needs_bits_per_s * n.out.efficiency * most * 1e-12, sent);
    }
    EXPECT_EQ(n.own().step, n.out.run.step.ps);
    EXPECT_EQ(n.out.has_bits_per_s, 8 * 200e9);
    EXPECT_GT(n.out.rows[0].needs_bits_per_s, n.out.rows[1].needs_bits_per_s);
    EXPECT_GT(n.out.rows[1].needs_bits_per_s, n.out.rows[2].needs_bits_per_s);
}

// Twice the adapters there are change nothing of what is needed.
TEST(NetworkNeed, WhatIsNeededDoesNotHangOnWhatThereIs) {
    const Needed slow(zero3(), {"cluster.fabric.nic=25 Gb/s"}), fast(zero3(), {"cluster.fabric.nic=100 Gb/s"});
    EXPECT_NEAR(slow.own().needs_bits_per_s / fast.own().needs_bits_per_s, 1, 1e-9);
    EXPECT_EQ(slow.own().infinite, fast.own().infinite);
    EXPECT_GT(slow.own().waits(), fast.own().waits());
}

TEST(NetworkNeed, FoldingShowsInNoFigure) {
    const Scenario s = parse_scenario(zero3(), "test.yaml");
    const NetworkNeed folded = network_need(s), whole = network_need(s, {.fold = false, .fold_time = false});
    ASSERT_EQ(folded.rows.size(), whole.rows.size());
    for (std::size_t i = 0; i < folded.rows.size(); ++i) {
        EXPECT_EQ(folded.rows[i].step, whole.rows[i].step);
        EXPECT_EQ(folded.rows[i].infinite, whole.rows[i].infinite);
        EXPECT_EQ(folded.rows[i].needs_bits_per_s, whole.rows[i].needs_bits_per_s);
    }
}

TEST(NetworkNeed, RowsThatDoNotFitAreShownAndMarked) {
    // The scenario's own micro-batch is no power of two, and the curve ends at the second that does not fit.
    const Needed n(zero3(), {"training.global_batch=768 sequences", "training.micro_batch=3", "training.recompute=none",
                             "cluster.node.gpu_memory=20 GiB"});
    std::vector<std::int64_t> sizes;
    int too_large = 0;
    for (const NetworkRow& row : n.out.rows) {
        sizes.push_back(row.micro_batch);
        EXPECT_EQ(row.own, row.micro_batch == 3);
        EXPECT_EQ(row.fits, row.memory <= n.out.capacity);
        EXPECT_EQ(row.tokens, row.micro_batch * 2048);
        EXPECT_EQ(row.micro_batches * row.micro_batch, 48);
        EXPECT_GT(row.step, 0);
        too_large += row.fits ? 0 : 1;
    }
    EXPECT_EQ(too_large, 2);
    EXPECT_FALSE(n.out.rows.back().fits);
    EXPECT_EQ(std::vector<std::int64_t>(sizes.begin(), sizes.begin() + 3), (std::vector<std::int64_t>{1, 2, 3}));
    // A job that does not fit itself has its curve all the same.
    const Needed large(zero3(), {"training.global_batch=768 sequences", "training.micro_batch=16",
                                 "training.recompute=none", "cluster.node.gpu_memory=20 GiB"});
    EXPECT_EQ(large.out.run.verdict, "out of memory");
    EXPECT_FALSE(large.own().fits);
    EXPECT_TRUE(large.out.rows.front().fits);
    EXPECT_GT(large.own().needs_bits_per_s, 0);
}

TEST(NetworkNeed, AScheduleThatRefusesAMicroBatchSaysWhy) {
    const Needed n("cluster: {nodes: 2, node: hgx-a100-80g}\n" + kModel +
                   "training: {sequence: 2048 tokens, global_batch: 64 sequences, micro_batch: 1, "
                   "layout: {tp: 1, pp: 8, vpp: 2, dp: 2}, schedule: interleaved}\n");
    ASSERT_EQ(n.out.run.failure, "");
    EXPECT_EQ(n.out.rows.front().refused, "");
    EXPECT_NE(n.out.rows.back().refused, "");
    EXPECT_EQ(n.out.rows.back().step, 0);
}

TEST(NetworkNeed, WhereNothingCrossesTheNetworkAnyDoes) {
    const Needed n("cluster: {nodes: 2, node: gb200-nvl72-tray}\n" + kModel +
                   "training: {sequence: 2048 tokens, global_batch: 8 sequences, layout: {dp: 8, zero: 3}}\n");
    EXPECT_TRUE(SentBytes::sum(n.own().sent.over_network) == 0);
    EXPECT_TRUE(SentBytes::sum(n.own().sent.from_gpus) > 0);
    EXPECT_EQ(n.own().bound, Bound::smallest_is_enough);
    EXPECT_EQ(n.own().waits(), 0);
}

TEST(NetworkNeed, OneNodeIsRefused) {
    try {
        const Needed n("cluster: {nodes: 1, node: hgx-a100-80g}\n" + kModel +
                       "training: {sequence: 2048 tokens, global_batch: 8 sequences}\n");
        ADD_FAILURE() << "accepted";
    } catch (const ScenarioError& error) {
        EXPECT_NE(std::string(error.what()).find("one node"), std::string::npos) << error.what();
    }
}

// Adapters and links between nodes carry twice as much, everything else what it did. PCIe that is made up beside adapters of
// a grid or graph is at least as wide as they.
void expect_scaled(const std::string& cluster, double has_bits_per_s, bool pcie_made_up = false) {
    const Scenario s = parse_scenario("cluster: " + cluster, "test.yaml", {}, Scope::cluster);
    const Cluster before = build_cluster(s), after = build_cluster(with_scaled_network(s, 2));
    EXPECT_NEAR(adapter_bits_per_s(s, before) / has_bits_per_s, 1, 1e-6) << cluster;
    ASSERT_EQ(before.links().size(), after.links().size());
    std::size_t doubled = 0;
    for (std::size_t link = 0; link < before.links().size(); ++link) {
        const LinkKind kind = before.links().kind[link];
        EXPECT_EQ(before.links().latency[link], after.links().latency[link]) << before.links().name[link];
        if (pcie_made_up && kind == LinkKind::pcie)
            continue;
        const bool network = kind == LinkKind::nic || kind == LinkKind::fabric;
        const double ratio =
            static_cast<double>(after.links().capacity[link]) / static_cast<double>(before.links().capacity[link]);
        EXPECT_NEAR(ratio, network ? 2 : 1, 1e-6) << before.links().name[link];
        doubled += network ? 1 : 0;
    }
    EXPECT_GT(doubled, 0u) << cluster;
    for (std::uint32_t gpu = 0; pcie_made_up && gpu < after.gpu_count(); ++gpu) {
        EXPECT_GE(after.links().capacity[index(after.pcie_up(GpuId{gpu}))],
                  after.links().capacity[index(after.nic_up(after.nic_of(GpuId{gpu})))]);
    }
}

TEST(ScaledNetwork, OnClustersOfEveryKind) {
    expect_scaled("{nodes: 2, node: hgx-h100}", 8 * 400e9);
    expect_scaled("{nodes: 32, node: {preset: hgx-a100-80g, nics: 4}, fabric: {nic: 85 Gb/s, oversubscription: 2}}",
                  340e9);
    expect_scaled("{nodes: 2, node: a100-pcie-8}", 2 * 200e9);
    expect_scaled("{nodes: 36, node: gb200-nvl72-tray}", 4 * 400e9);
    expect_scaled(
        "{node: hgx-h100, fabric: {kind: grid, inner_dimensions: 1, dimensions: [{kind: switch, size: 8, bandwidth: "
        "300 GB/s}, "
        "{kind: ring, size: 4, bandwidth: 25 GB/s}]}}",
        8 * 2 * 200e9, true);
    expect_scaled(
        "\n  node: hgx-h100\n  graph:\n    nodes:\n"
        "      - {name: g0, kind: gpu, server: 0}\n      - {name: g1, kind: gpu, server: 0}\n"
        "      - {name: g2, kind: gpu, server: 1}\n      - {name: g3, kind: gpu, server: 1}\n"
        "      - {name: s0, kind: switch}\n      - {name: s1, kind: switch}\n"
        "    links:\n"
        "      - {from: g0, to: g1, bandwidth: 100 GB/s, latency: 0.6 us}\n"
        "      - {from: g2, to: g3, bandwidth: 100 GB/s, latency: 0.6 us}\n"
        "      - {from: g0, to: s0, bandwidth: 200 Gb/s, latency: 1 us}\n"
        "      - {from: g1, to: s0, bandwidth: 200 Gb/s, latency: 1 us}\n"
        "      - {from: g2, to: s1, bandwidth: 200 Gb/s, latency: 1 us}\n"
        "      - {from: g3, to: s1, bandwidth: 200 Gb/s, latency: 1 us}\n"
        "      - {from: s0, to: s1, bandwidth: 100 Gb/s, latency: 1 us}\n",
        2 * 200e9, true);
}

}  // namespace
}  // namespace fabricast
