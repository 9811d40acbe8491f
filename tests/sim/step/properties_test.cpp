// What must hold for every scenario, on drawn ones of 8 to 64 GPUs.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sim/step/fit_hints.hpp"
#include "support.hpp"
#include "tests/models/parallel/jobs.hpp"

namespace fabricast {
namespace {

using test::Forecast;
using test::Overrides;

#ifdef NDEBUG
constexpr std::uint64_t kScenarios = 60;
#else
constexpr std::uint64_t kScenarios = 10;
#endif

/// Scenario number n: node, fabric, model, layout and switches drawn.
std::string draw_scenario(std::uint64_t n) {
    test::Draw draw(n + 1000);  // every draw is a statement of its own: compilers order arguments as they like
    const std::string node = draw.of({"hgx-a100-80g", "hgx-h100", "hgx-h800", "hgx-h200"});
    const int nodes = draw.of({1, 2, 4, 8});
    const int oversubscription = draw.of({1, 2});
    const int nodes_per_pod = draw.of({2, 64});
    const std::string model = draw.of({"llama3.1-8b", "llama2-13b", "megatron-22b",
                                       "{layers: 16, hidden: 2048, heads: 16, ffn: 5632, vocab: 32000}",
                                       "{family: gpt, layers: 16, hidden: 1536, heads: 16, vocab: 50257}"});
    const int tp = draw.of({1, 2, 4, 8});
    const bool sp = draw.flag();
    const int wanted = draw.of({1, 1, 2, 4});
    const int pp = tp * wanted > nodes * 8 ? 1 : wanted, dp = nodes * 8 / (tp * pp);
    const bool interleaved = draw.flag() && pp > 1;
    const std::string schedule = draw.of({"gpipe", "1f1b"});
    const int micro_batch = draw.of({1, 2});
    const int batch = dp * micro_batch * pp * draw.of({1, 2, 4});
    const int zero = draw.of({0, 1, 2, 3});
    const std::string order = draw.of({"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"});
    const std::string recompute = draw.of({"selective", "full"});
    const bool grad_reduce = draw.flag();
    const bool param_gather = draw.flag();
    const std::string every = draw.of({"step", "micro_batch"});
    const std::string software = draw.of({"megatron-2022", "megatron-core-2024", "torch-fsdp"});
    return fmt::format(
        "name: drawn-{}\n"
        "cluster: {{nodes: {}, node: {}, fabric: {{kind: rail-fat-tree, oversubscription: {}, nodes_per_pod: {}}}}}\n"
        "model: {}\n"
        "training:\n"
        "  sequence: 2048 tokens\n"
        "  global_batch: {} sequences\n"
        "  micro_batch: {}\n"
        "  layout: {{tp: {}, sp: {}, pp: {}, vpp: {}, dp: {}, zero: {}, order: {}}}\n"
        "  schedule: {}\n"
        "  recompute: {}\n"
        "  overlap: {{grad_reduce: {}, param_gather: {}}}\n"
        "  reduce_every: {}\n"
        "  software: {}\n",
        n, nodes, node, oversubscription, nodes_per_pod, model, batch, micro_batch, tp, sp, pp, interleaved ? 2 : 1, dp,
        zero, order, interleaved ? "interleaved" : schedule, recompute, grad_reduce, param_gather, every, software);
}

/// Drawn scenarios that fit in memory.
template <typename Check>
void for_each_scenario(Check check) {
    std::uint64_t fitting = 0;
    for (std::uint64_t n = 0; n < kScenarios; ++n) {
        const std::string yaml = draw_scenario(n);
        SCOPED_TRACE(yaml);
        const Forecast base = test::run_text(yaml);
        if (base.result.verdict == "out of memory")
            continue;
        ASSERT_EQ(base.result.failure, "");
        ++fitting;
        check(yaml, base);
    }
    EXPECT_GE(fitting, kScenarios / 2);
}

TEST(Properties, AccountsAreExactAndMfuStaysBelowItsCeiling) {
    for_each_scenario([](const std::string&, const Forecast& f) {
        test::expect_exact_accounts(f);
        EXPECT_TRUE(f.step().periodic);
        EXPECT_GT(f.mfu(), 0);
        // Products run at the dense peak at best; attention counts in full but computes half of it where causal.
        EXPECT_LE(f.mfu(), f.account(Account::gemm_ideal) + 2 * f.account(Account::attention) + 1e-6);
        EXPECT_LT(f.mfu(), 1);
        // Ideal products of a step take the same time whatever the layout.
        const StepResult& s = f.step();
        const double gemm_flops =
            f.account(Account::gemm_ideal) * f.seconds() * s.peak_flops * static_cast<double>(s.ranks);
        EXPECT_LE(gemm_flops, s.model_flops * 1.05);
        EXPECT_GE(s.hardware_flops, s.model_flops);
    });
}

/// Step time without what concurrent communication costs the kernels.
double undisturbed(const Forecast& f) { return f.seconds() * (1 - f.account(Account::interference)); }

// Interference is priced by the rate a link could have (models/compute/interference.hpp), so a faster NVLink that
// waits for the network disturbs kernels more: time without interference is compared for NVLink.
TEST(Properties, FasterHardwareIsNeverSlower) {
    double worst = -1;
    std::string where;
    for_each_scenario([&](const std::string& yaml, const Forecast& base) {
        const Scenario& s = *base.scenario;
        const auto twice = [&](const char* key, double now, const char* unit) {
            return test::run_text(yaml, {fmt::format("{}={} {}", key, 2 * now, unit)});
        };
        const Forecast nvlink = twice("cluster.node.nvlink", s.gpu.nvlink_nominal_bytes_per_s / 1e9, "GB/s");
        const std::map<std::string, double> slower = {
            {"adapters", twice("cluster.node.nic", s.node.nic_bits_per_s / 1e9, "Gb/s").seconds() / base.seconds() - 1},
            {"NVLink", undisturbed(nvlink) / undisturbed(base) - 1},
            {"memory",
             twice("cluster.node.gpu.hbm", s.gpu.hbm_bytes_per_s / 1e9, "GB/s").seconds() / base.seconds() - 1},
        };
        for (const auto& [what, by] : slower) {
            EXPECT_LE(by, 0.001) << "twice the bandwidth of " << what << " makes the step " << by * 100 << " % slower";
            if (by > worst) {
                worst = by;
                where = s.name + ", " + what;
            }
        }
        EXPECT_LE(nvlink.seconds() / base.seconds(), 1.05);
    });
    fmt::print("least gain of twice the bandwidth: {:+.3f} % ({})\n", -worst * 100, where);
}

TEST(Properties, OverlapNeverExposesMoreCommunication) {
    for_each_scenario([](const std::string& yaml, const Forecast&) {
        const Forecast without = test::run_text(yaml, {"training.overlap={grad_reduce: false, param_gather: false}"});
        const Forecast with = test::run_text(yaml, {"training.overlap={grad_reduce: true, param_gather: true}"});
        EXPECT_LE(test::exposed(with) * with.seconds(), test::exposed(without) * without.seconds() * (1 + 1e-9));
    });
}

/// "zero: 3, recompute: full and micro_batch: 1 together" -> settings.
Overrides overrides_of(const std::string& hint) {
    static const std::map<std::string, std::string> keys = {{"zero", "training.layout.zero"},
                                                            {"recompute", "training.recompute"},
                                                            {"micro_batch", "training.micro_batch"},
                                                            {"layout.sp", "training.layout.sp"},
                                                            {"layout.tp", "training.layout.tp"},
                                                            {"layout.pp", "training.layout.pp"},
                                                            {"offload", "training.offload"},
                                                            {"dp", "training.layout.dp"}};
    std::string text = hint.substr(0, hint.find(" fits:"));
    if (const std::size_t together = text.find(" together"); together != std::string::npos)
        text.resize(together);
    if (const std::size_t both = text.find(" and "); both != std::string::npos)
        text.replace(both, 5, ", ");
    Overrides out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t comma = std::min(text.find(", ", at), text.size());
        const std::string part = text.substr(at, comma - at);
        const std::size_t colon = part.find(": ");
        EXPECT_NE(colon, std::string::npos) << hint;
        const auto key = keys.find(part.substr(0, colon));
        EXPECT_NE(key, keys.end()) << hint;
        out.push_back(key->second + "=" + part.substr(colon + 2));
        at = comma + 2;
    }
    return out;
}

TEST(Properties, WhatIsSaidToFitFits) {
    const struct {
        const char* model;
        int nodes;
        const char* layout;
        const char* rest;
    } jobs[] = {
        {"llama-70b", 8, "{tp: 1, dp: 64, zero: 0}", "recompute: none"},
        {"llama-70b", 8, "{tp: 8, dp: 8, zero: 0}", "recompute: none"},
        {"llama-70b", 8, "{tp: 8, dp: 8, zero: 1}", "micro_batch: 8"},
        {"gpt3-175b", 8, "{tp: 8, pp: 4, dp: 2, zero: 0}", "recompute: none"},
        {"llama3.1-8b", 1, "{tp: 1, dp: 8, zero: 0}", "recompute: selective"},
        {"llama2-13b", 2, "{tp: 2, pp: 2, dp: 4, zero: 0}", "micro_batch: 16"},
        {"megatron-22b", 1, "{tp: 8, dp: 1}", "micro_batch: 32"},
    };
    for (const auto& job : jobs) {
        const std::string yaml = fmt::format(
            "cluster: {{nodes: {}, node: hgx-h100}}\n"
            "model: {}\n"
            "training:\n"
            "  sequence: 2048 tokens\n"
            "  global_batch: 256 sequences\n"
            "  layout: {}\n"
            "  software: megatron-2022\n"
            "  {}\n",
            job.nodes, job.model, job.layout, job.rest);
        SCOPED_TRACE(yaml);
        const Forecast refused = test::run_text(yaml);
        ASSERT_EQ(refused.result.verdict, "out of memory");
        ASSERT_FALSE(refused.result.hints.empty());
        for (const std::string& hint : refused.result.hints) {
            if (hint.find(" fits:") == std::string::npos) {
                EXPECT_EQ(refused.result.hints.size(), 1u) << hint;
                continue;
            }
            // applied, checked and replayed again; running it would tell nothing more about memory
            const Scenario changed = parse_scenario(yaml, "test.yaml", overrides_of(hint));
            std::int64_t most = 0;
            for (const StageSummary& stage :
                 stage_memory(changed.model, changed.training, changed.software, build_compute(changed)))
                most = std::max(most, stage.memory.total);
            EXPECT_LE(most, changed.gpu.memory_mib << 20) << hint;
            const std::string figure = fmt::format(" {:.1f} of ", static_cast<double>(most) / (1 << 30));
            EXPECT_NE(hint.find(figure), std::string::npos) << hint << " but" << figure;
            const double use = static_cast<double>(most) / static_cast<double>(changed.gpu.memory_mib << 20);
            EXPECT_EQ(hint.ends_with(", tight"), use > kTightUse) << hint;
        }
    }
}

TEST(Properties, ForecastsRepeatAndTheCriticalPathFillsTheStep) {
    for (std::uint64_t n = 0; n < kScenarios / 4; ++n) {
        SCOPED_TRACE(draw_scenario(n));
        const Scenario scenario = parse_scenario(draw_scenario(n), "test.yaml");
        const Forecast once = test::run_scenario(scenario), again = test::run_scenario(scenario);
        EXPECT_EQ(once.result.fingerprint, again.result.fingerprint);
        EXPECT_EQ(once.step().ps, again.step().ps);
        EXPECT_EQ(once.result.events, again.result.events);
        EXPECT_TRUE(once.step().accounts == again.step().accounts);
        Picoseconds path = 0;
        for (const CriticalEntry& entry : once.result.critical_path)
            path += entry.ps;
        EXPECT_EQ(path, once.step().ps);
    }
}

}  // namespace
}  // namespace fabricast
