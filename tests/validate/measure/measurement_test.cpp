#include "validate/measure/measurement.hpp"

#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

MeasurementFile sample() {
    MeasurementFile m;
    m.backend = "cuda";
    m.date = "2026-11-30T12:00:00Z";
    m.devices = {{"node17", "NVIDIA H100 80GB HBM3", "550.54", 1980, 2619, 640, 700}};
    m.libraries = {"CUDA 13.0, NCCL 2.28.9"};
    m.points.push_back({"gemm", "bf16", "burst", {{"m", 4096}, {"n", 4096}, {"k", 4096}}, {180.5, 179, 184, 25}});
    MeasuredCurve curve;
    curve.collective = "all_reduce";
    curve.ranks = 8;
    curve.device = "NVIDIA H100 80GB HBM3";
    curve.points = {{1024, 13.5, 13.2}, {4096, 13.9, 0}};
    m.curves.push_back(curve);
    m.steps.push_back({"job", "llama", "cluster: {}\n", 12.25, 40});
    return m;
}

std::string refusal(const std::string& text) {
    try {
        parse_measurement_json(text, "node17.json");
    } catch (const IngestError& error) {
        return error.what();
    }
    return {};
}

TEST(Measurement, ReadsBackWhatItWrites) {
    const std::string text = measurement_json(sample()).dump();
    const MeasurementFile read = parse_measurement_json(text, "node17.json");
    EXPECT_EQ(measurement_json(read).dump(), text);
    EXPECT_EQ(read.points[0].at("k"), 4096);
    EXPECT_DOUBLE_EQ(read.devices[0].power_limit_w, 700);
    EXPECT_TRUE(read.complete);
}

TEST(Measurement, AnInterruptedFileIsValidAndMarked) {
    MeasurementFile m = sample();
    m.complete = false;
    m.reason = "interrupted";
    const MeasurementFile read = parse_measurement_json(measurement_json(m).dump(), "node17.json");
    EXPECT_FALSE(read.complete);
    EXPECT_EQ(read.reason, "interrupted");
    EXPECT_EQ(read.points.size(), 1u);
}

TEST(Measurement, TruncatedJsonIsNamedSo) {
    const std::string text = measurement_json(sample()).dump(1);
    for (const std::size_t left : {text.size() / 3, text.size() - 2})
        EXPECT_NE(refusal(text.substr(0, left)).find("the JSON ends too early"), std::string::npos) << left;
    EXPECT_NE(refusal("{\"schema\": oops}").find("no JSON at byte"), std::string::npos);
    EXPECT_NE(refusal("{}").find("schema ``"), std::string::npos);
}

TEST(Measurement, RefusesMixedDevicesAndValuesThatCannotBe) {
    MeasurementFile m = sample();
    m.devices.push_back(m.devices[0]);
    m.devices[1].name = "NVIDIA A100-SXM4-80GB";
    EXPECT_NE(
        refusal(measurement_json(m).dump()).find("mixed devices, `NVIDIA H100 80GB HBM3` and `NVIDIA A100-SXM4-80GB`"),
        std::string::npos);
    m = sample();
    m.points[0].time.median_us = 0;
    EXPECT_NE(refusal(measurement_json(m).dump()).find("points[0]: `median_us` is missing or not above 0"),
              std::string::npos);
    m = sample();
    m.points[0].time.p10_us = 200;
    EXPECT_NE(refusal(measurement_json(m).dump()).find("does not lie between"), std::string::npos);
    m = sample();
    m.curves[0].ranks = 1;
    EXPECT_NE(refusal(measurement_json(m).dump()).find("of one rank moves nothing"), std::string::npos);
    m = sample();
    std::swap(m.curves[0].points[0], m.curves[0].points[1]);
    EXPECT_NE(refusal(measurement_json(m).dump()).find("sizes do not ascend"), std::string::npos);
}

TEST(Measurement, SamplesHaveMedianAndSpread) {
    const Samples s = samples_of({5, 1, 3, 2, 4});
    EXPECT_DOUBLE_EQ(s.median_us, 3);
    EXPECT_DOUBLE_EQ(s.p10_us, 1.4);
    EXPECT_DOUBLE_EQ(s.p90_us, 4.6);
    EXPECT_EQ(s.count, 5);
}

}  // namespace
}  // namespace fabricast
