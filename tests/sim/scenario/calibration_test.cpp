#include "sim/scenario/calibration.hpp"

#include <memory>

#include <gtest/gtest.h>

#include "sim/scenario/scenario.hpp"
#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

const std::string kSite =
    "calibration: 1\n"
    "name: \"north hall\"\n"
    "provenance:\n"
    "  date: \"2026-11-30T12:00:00Z\"\n"
    "  devices: [\"8 x NVIDIA H100 80GB HBM3\"]\n"
    "  driver: \"550.54.15\"\n"
    "gpus:\n"
    "  H100-SXM-80G:\n"
    "    gemm.sustained: 0.84\n"
    "    attention.fa2.e128: 0.36\n"
    "    nvlink_achieved: 380 GB/s\n"
    "networks:\n"
    "  ib:\n"
    "    efficiency: 0.97\n"
    "    ll128_hop: 11.5 us\n"
    "collectives:\n"
    "  ib:\n"
    "    all_gather: {latency: 4 us, rate: 0.9}\n"
    "fits:\n"
    "  - {what: \"steps dense H100-SXM-80G\", points: 20, median: 0.02, default_median: 0.05, p10: 0.97, p90: 1.02, "
    "gpus: [16, "
    "64]}\n"
    "outliers:\n"
    "  - \"fabric.json: all_gather, 80 ranks\"\n";

std::shared_ptr<const Calibration> site(const std::string& text = kSite) {
    return std::make_shared<const Calibration>(parse_calibration(text, "mysite.yaml"));
}

std::string refusal(const std::string& text) {
    try {
        parse_calibration(text, "mysite.yaml");
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return {};
}

const Assumption* assumption(const Scenario& s, const std::string& what) {
    for (const Assumption& a : s.assumptions) {
        if (a.what == what)
            return &a;
    }
    return nullptr;
}

TEST(Calibration, ReadsBackWhatItWrites) {
    const Calibration once = *site();
    const Calibration twice = parse_calibration(calibration_yaml(once), "mysite.yaml");
    EXPECT_EQ(calibration_yaml(once), calibration_yaml(twice));
    EXPECT_EQ(twice.name, "north hall");
    ASSERT_EQ(twice.networks.size(), 1u);
    EXPECT_NEAR(twice.networks[0].second[1].second, 11.5e-6, 1e-12);
    ASSERT_EQ(twice.collectives.size(), 1u);
    EXPECT_EQ(twice.collectives[0].kind, Collective::all_gather);
    EXPECT_DOUBLE_EQ(twice.collectives[0].correction.rate, 0.9);
    EXPECT_EQ(twice.fits[0].gpus, (std::vector<std::int64_t>{16, 64}));
}

TEST(Calibration, LiesBetweenCatalogueAndScenario) {
    const Scenario plain = parse_scenario(kGood, "t.yaml");
    const Scenario s = parse_scenario(kGood, "t.yaml", {}, Scope::step, site());
    EXPECT_NEAR(plain.gpu.gemm.sustained, 0.87, 1e-9);
    EXPECT_DOUBLE_EQ(s.gpu.gemm.sustained, 0.84);
    EXPECT_DOUBLE_EQ(s.gpu.attention.at("fa2").e128, 0.36);
    EXPECT_DOUBLE_EQ(s.gpu.nvlink_achieved_bytes_per_s, 380e9);
    EXPECT_DOUBLE_EQ(s.gpu.attention.at("fa3").e128, plain.gpu.attention.at("fa3").e128);  // not in the file
    ASSERT_TRUE(s.network.has_value());
    EXPECT_NEAR(s.network->ll128_hop_us, 11.5, 1e-9);
    EXPECT_DOUBLE_EQ(s.node.nic_efficiency, 0.97);
    const Scenario stated = parse_scenario(
        kGood, "t.yaml", {"cluster.node.gpu.sustained=0.8", "cluster.node.nic_efficiency=0.5"}, Scope::step, site());
    EXPECT_DOUBLE_EQ(stated.gpu.gemm.sustained, 0.8);
    EXPECT_DOUBLE_EQ(stated.node.nic_efficiency, 0.5);
}

// The latency of an adapter alone says nothing on what the network's large messages reach.
TEST(Calibration, AdapterLatencyOfANetworkIsItsNodes) {
    const auto latency = site("calibration: 1\nname: x\nnetworks: {ib: {nic_latency: 0.85 us}}\n");
    const Scenario plain = parse_scenario(kGood, "t.yaml");
    const Scenario s = parse_scenario(kGood, "t.yaml", {}, Scope::step, latency);
    EXPECT_NEAR(plain.node.nic_latency_s, 0.6e-6, 1e-12);
    EXPECT_NEAR(s.node.nic_latency_s, 0.85e-6, 1e-12);
    EXPECT_EQ(s.node.nic_efficiency, plain.node.nic_efficiency);
    EXPECT_EQ(s.network.has_value(), plain.network.has_value());
    const Assumption* listed = assumption(s, "cluster.node.nic_latency");
    ASSERT_NE(listed, nullptr);
    EXPECT_EQ(listed->origin, Origin::fitted);
    const Scenario stated = parse_scenario(kGood, "t.yaml", {"cluster.node.nic_latency=1us"}, Scope::step, latency);
    EXPECT_NEAR(stated.node.nic_latency_s, 1e-6, 1e-12);
    EXPECT_EQ(calibration_yaml(parse_calibration(calibration_yaml(*latency), "x")), calibration_yaml(*latency));
}

TEST(Calibration, AssumptionsNameTheFile) {
    const Scenario s = parse_scenario(kGood, "t.yaml", {}, Scope::step, site());
    const Assumption* sustained = assumption(s, "cluster.node.gpu.sustained");
    ASSERT_NE(sustained, nullptr);
    EXPECT_EQ(sustained->origin, Origin::fitted);
    EXPECT_EQ(sustained->source, "fitted from mysite.yaml");
    const Assumption* whole = assumption(s, "calibration");
    ASSERT_NE(whole, nullptr);
    EXPECT_NE(whole->source.find("550.54.15"), std::string::npos) << whole->source;
    EXPECT_NE(assumption(s, "calibration.collectives.ib.all_gather"), nullptr);
}

TEST(Calibration, OfOtherHardwareIsTold) {
    const std::string other = replaced(kGood, "hgx-h100", "hgx-h200");
    const Scenario s = parse_scenario(other, "t.yaml", {}, Scope::step, site());
    EXPECT_TRUE(any_contains(s.notes, "measured on H100-SXM-80G, not on H200-SXM-141G"));
    const Scenario none = parse_scenario(kGood, "t.yaml", {}, Scope::step, site("calibration: 1\nname: x\n"));
    EXPECT_TRUE(any_contains(none.notes, "nothing in it for H100-SXM-80G"));
}

TEST(Calibration, RefusesWithPlaceAndNearestWord) {
    const struct {
        std::string from, to, sentence;
    } kCases[] = {
        {"gemm.sustained: 0.84", "gemm.sustaned: 0.84",
         "mysite.yaml:9:5: gpus.H100-SXM-80G: unknown key `gemm.sustaned`; did you mean `gemm.sustained`?"},
        {"H100-SXM-80G:", "H100-SMX-80G:", "unknown key `H100-SMX-80G`; did you mean `H100-SXM-80G`?"},
        {"gemm.sustained: 0.84", "gemm.sustained: 1.31", "`1.31` is not between 0.2 and 1"},
        {"380 GB/s", "380", "`380` needs the unit GB/s"},
        {"380 GB/s", "fast GB/s", "`fast GB/s`"},
        {"attention.fa2.e128", "attention.fa9.e128", "unknown key `attention.fa9.e128`"},
        {"rate: 0.9", "rate: 1.2", "collectives.ib.all_gather.rate: `1.2` is not between 0.02 and 1"},
        {"    all_gather:", "    all_gahter:", "did you mean `all_gather`?"},
        {"driver:", "diver:", "did you mean `driver`?"},
        {"calibration: 1", "calibration: 7", "version `7`; this program reads version 1"},
        {"networks:", "network:", "did you mean `networks`?"},
        {"p10: 0.97", "p10: 1.97", "p10 not above p90"},
    };
    for (const auto& one : kCases) {
        const std::string said = refusal(replaced(kSite, one.from, one.to));
        EXPECT_NE(said.find(one.sentence), std::string::npos) << said;
    }
    EXPECT_NE(refusal("name: x\n").find("no line `calibration: 1`"), std::string::npos);
    EXPECT_NE(refusal("calibration: 1\ngpus: [a\n").find("mysite.yaml:"), std::string::npos);
    EXPECT_THROW(read_calibration("no/such/file.yaml"), ScenarioError);
}

}  // namespace
}  // namespace fabricast::test
