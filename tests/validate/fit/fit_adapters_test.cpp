// Adapters from the public perftest logs: what their rate and latency say, what cannot be, what is left out.
#include "validate/fit/fit_adapters.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/fit_site.hpp"
#include "validate/fit/score_site.hpp"

namespace fabricast {
namespace {

const std::string kIb = std::string(FABRICAST_SOURCE_DIR) + "/tests/validate/ingest/data/ib/";
const std::string kSweep = kIb + "cx6-roce200_ib_write_bw_all-sizes.txt",
                  kRead = kIb + "cx6-roce200_ib_read_lat_pod.txt",
                  kWarm = kIb + "cx5-roce100_ib_write_bw_rdmacm_cpufreq-warning.txt",
                  kFourPairs = kIb + "cx7-roce_ib_write_bw_4qp_rdmacm.txt",
                  kWrite = kIb + "cx3-fdr_ib_write_lat_server.txt",
                  kLoopback = kIb + "hdr200_ib_write_bw_loopback_8M_both-sides.txt";

PlatformHint words(const std::string& network) {
    PlatformHint hint;
    hint.network = network;
    return hint;
}

AdapterFit fit_of(const std::vector<std::string>& files, const std::string& network,
                  const std::vector<std::string>& with_curves = {}) {
    std::vector<std::string> notes;
    return fit_adapters(adapter_points(measurement_of_perftest(files, words(network)), {}, notes), with_curves);
}

double constant(const AdapterFit& fit, const std::string& network, const std::string& key) {
    for (const auto& [owner, values] : fit.networks) {
        for (const auto& [name, value] : values) {
            if (owner == network && name == key)
                return value;
        }
    }
    return 0;
}

// The formula against logs that no constant saw: packets of 4096 bytes leave 98.04 % of a RoCE line.
TEST(FitAdapters, PacketsExplainHealthyAdapters) {
    std::vector<std::string> notes;
    const auto sweep = adapter_points(measurement_of_perftest({kSweep}, words("RoCE 200G")), {}, notes);
    ASSERT_EQ(sweep.size(), 8u);  // 64 KiB and more
    for (const AdapterPoint& p : sweep)
        EXPECT_NEAR(std::log(predicted_adapter_s(p, {}) / p.measured_s), 0, 1e-3) << p.where;
    const auto four = adapter_points(measurement_of_perftest({kFourPairs}, words("100G")), {}, notes);
    ASSERT_EQ(four.size(), 1u);
    EXPECT_NEAR(std::log(predicted_adapter_s(four[0], {}) / four[0].measured_s), 0, 1e-3);
    EXPECT_NEAR(packet_share("roce", 1024), 0.926, 1e-3);
    EXPECT_NEAR(packet_share("ib", 4096), 0.994, 1e-3);
}

// 92.4 of 100 Gb/s where a healthy adapter shows 98.0: collectives lose as much.
TEST(FitAdapters, ASlowAdapterScalesWhatCollectivesReach) {
    const AdapterFit fit = fit_of({kWarm}, "RoCE 100G");
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_EQ(fit.parts[0].what, "adapters roce bandwidth");
    EXPECT_TRUE(fit.parts[0].kept);
    EXPECT_NEAR(fit.parts[0].default_median, 0.057, 2e-3);
    EXPECT_LT(fit.parts[0].fitted_median, 0.005);
    const double usual = Catalogue::builtin().find_network("roce")->efficiency;
    EXPECT_NEAR(constant(fit, "roce", "efficiency") / usual, 92.40 / 98.04, 0.005);
    EXPECT_TRUE(fit_of({kWarm}, "RoCE 100G", {"roce"}).parts.empty());  // curves of the class decide
}

TEST(FitAdapters, LatencyOfOneAdapter) {
    // there and back in 4.83 us over one switch each way: (4.83 / 2 - 0.25) / 2; the prior pulls little
    const AdapterFit read = fit_of({kRead}, "");
    EXPECT_NEAR(constant(read, "roce", "nic_latency") * 1e6, 1.08, 0.03);
    const AdapterFit write = fit_of({kWrite}, "");  // one way in 0.98 us
    EXPECT_NEAR(constant(write, "ib", "nic_latency") * 1e6, 0.365, 0.02);
    EXPECT_EQ(constant(write, "ib", "efficiency"), 0);
}

// Two adapters of different rates: each is predicted worse by the other than by the defaults.
TEST(FitAdapters, AFitThatExplainsLessIsRefused) {
    std::vector<std::string> notes;
    std::vector<AdapterPoint> points =
        adapter_points(measurement_of_perftest({kWarm, kFourPairs}, words("RoCE 100G")), {}, notes);
    ASSERT_EQ(points.size(), 2u);
    const AdapterFit fit = fit_adapters(points, {});
    ASSERT_EQ(fit.parts.size(), 1u);
    EXPECT_TRUE(fit.parts[0].crossed);
    EXPECT_FALSE(fit.parts[0].kept);
    EXPECT_NE(fit.parts[0].reason.find("explains less than the defaults"), std::string::npos) << fit.parts[0].reason;
    EXPECT_TRUE(fit.networks.empty());
}

std::string refusal(const std::vector<std::string>& files, const std::string& network, double faster = 1) {
    try {
        MeasurementFile m = measurement_of_perftest(files, words(network));
        for (MeasuredPoint& p : m.points)
            p.time.median_us /= faster;
        std::vector<std::string> notes;
        adapter_points(m, {}, notes);
        return notes.empty() ? "" : notes.front();
    } catch (const IngestError& error) {
        return error.what();
    }
}

TEST(FitAdapters, WhatCannotBeIsRefused) {
    EXPECT_EQ(refusal({kSweep}, "RoCE 200G"), "");
    const std::string above = refusal({kSweep}, "RoCE 100G");
    EXPECT_NE(above.find("195.9 Gb/s is above what a line of 100 Gb/s carries (98.0 Gb/s in packets of 4096 bytes)"),
              std::string::npos)
        << above;
    EXPECT_NE(refusal({kSweep}, "RoCE 200G", 1.02).find("no adapter can be above its line rate"), std::string::npos);
    EXPECT_NE(refusal({kWrite}, "", 4).find("less than one switch takes"), std::string::npos);
    EXPECT_NE(refusal({kLoopback}, "HDR 200G").find("nothing crossed a wire"), std::string::npos);
    EXPECT_NE(refusal({kSweep}, "").find("perftest does not tell the line rate; give --network"), std::string::npos);
}

std::string site_refusal(const std::string& file) {
    try {
        SiteOptions options;
        options.name = "site";
        fit_site({file}, options);
    } catch (const IngestError& error) {
        return error.what();
    }
    return {};
}

TEST(FitAdapters, ALogOfAFailedRunAndOneWithoutALineRateSayWhy) {
    const std::string failed = std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + "-failed.txt");
    std::ofstream(failed) << "                    RDMA_Write BW Test\n Link type       : IB\n"
                             " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
                             " Completion with error at client\n Failed status 12: wr_id 0\n";
    EXPECT_NE(site_refusal(failed).find("no usable run: "), std::string::npos) << site_refusal(failed);
    EXPECT_NE(site_refusal(failed).find("Completion with error"), std::string::npos) << site_refusal(failed);
    std::filesystem::remove(failed);
    EXPECT_NE(site_refusal(kSweep).find("perftest does not tell the line rate"), std::string::npos)
        << site_refusal(kSweep);
}

// Where collectives over the same class were measured, they say what it reaches, and perftest is told to be left aside.
TEST(FitAdapters, CollectivesDecideWherePerftestIsBesideThem) {
    const std::string log = std::string(FABRICAST_SOURCE_DIR) +
                            "/tests/validate/ingest/data/nccl_tests/16xb200-sxm_gcp-a4-roce_allreduce_no-hash.txt";
    SiteOptions options;
    options.name = "site";
    std::vector<std::string> warnings;
    const SiteInputs in = read_site_inputs({log, kSweep}, options, warnings);
    ASSERT_EQ(in.curves.size(), 1u);
    options.hint.network = "RoCE 8x400G";
    const SiteFit fit = fit_site({log, kSweep}, options);
    for (const PartFit& part : fit.parts)
        EXPECT_NE(part.what, "adapters roce bandwidth");
    ASSERT_FALSE(fit.warnings.empty());
    EXPECT_NE(fit.warnings.back().find("not used for the efficiency of roce"), std::string::npos)
        << fit.warnings.back();
}

TEST(FitAdapters, AnIndexTellsLineRatesAndASiteFitWritesThem) {
    SiteOptions options;
    options.hint = words("RoCE 100G");
    options.jobs = 1;
    options.name = "site";
    const SiteFit fit = fit_site({kWarm, kRead}, options);
    const Calibration read = parse_calibration(calibration_yaml(fit.calibration), "site.yaml");
    ASSERT_EQ(read.networks.size(), 1u);
    EXPECT_EQ(read.networks[0].second.size(), 2u);
    const SiteScore score = score_site({kWarm, kRead}, read, options);
    ASSERT_EQ(score.parts.size(), 2u);
    for (const ScoredPart& part : score.parts)
        EXPECT_LT(part.part.fitted_median, 0.3 * part.part.default_median) << part.part.what;
    const MeasurementFile all = measurement_of_perftest({kIb + "index.csv"}, {});
    std::vector<std::string> notes;
    const auto points = adapter_points(all, {}, notes);
    EXPECT_EQ(points.size(), 17u);  // 8 of the sweep, 5 of one repeated, 2 single rates, 2 latencies
    EXPECT_TRUE(notes.empty()) << notes.front();
    ASSERT_EQ(all.notes.size(), 1u);
    EXPECT_NE(all.notes[0].find("both ends are one port"), std::string::npos) << all.notes[0];
}

// A log whose own index says 100 Gb/s is not held against the 400 Gb/s that servers of that kind usually have.
TEST(FitAdapters, TheLogsOwnLineRateComesBeforeThePreset) {
    MeasurementFile log = measurement_of_perftest({kWarm}, words("RoCE 100G"));
    PlatformHint preset;
    preset.preset = "hgx-h100";
    std::vector<std::string> notes;
    bool seen = false;
    for (const AdapterPoint& point : adapter_points(log, preset, notes)) {
        if (point.kind == AdapterPoint::Kind::latency)
            continue;
        seen = true;
        EXPECT_EQ(point.line_bits_per_s, 100e9) << point.where;
    }
    EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace fabricast
