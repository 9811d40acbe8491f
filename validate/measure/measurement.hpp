// What a measurement file holds (JSON, schema fabricast-measurement/1): written by `measure` and `ingest`, read by `fit`.
//
//   points   kernels, copies, launches: a test, its shape, median and spread of the samples in us
//   curves   collectives with nccl-tests' definitions of size: one curve a collective, data type and group of ranks
//   steps    training jobs: a whole scenario and the measured step time
//
// `complete` is false in a file whose measurement was interrupted: what is there was measured, `reason` says what is not.
// All devices of a file are of one kind: a file with two kinds would fit neither, and is refused. Times are device times in
// us, > 0; a sample set has a median between its 10th and 90th percentile. Refused with the file's name and the place in it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace fabricast {

struct MeasuredDevice {
    std::string host, name, driver;
    double clock_mhz = 0, memory_clock_mhz = 0;  ///< while measured, medians; 0 = not known
    double power_w = 0, power_limit_w = 0;
};

/// Of the samples of one point.
struct Samples {
    double median_us = 0, p10_us = 0, p90_us = 0;
    int count = 0;
};
/// Precondition: not empty.
Samples samples_of(std::vector<double> us);

struct MeasuredPoint {
    std::string test;  ///< gemm, attention, memory, launch, transfer, peer_copy, overlap, adapter
    std::string what;  ///< data type of a gemm, "copy" or "softmax", "h2d pinned", ...
    std::string mode;  ///< "burst", "sustained", "graph", ...
    std::map<std::string, std::int64_t>
        shape;  ///< m n k batch | bytes | heads kv_heads seq head_dim batch | line_mbit_per_s ...
    Samples time;
    std::int64_t at(const std::string& key, std::int64_t otherwise = 0) const {
        const auto found = shape.find(key);
        return found == shape.end() ? otherwise : found->second;
    }
};

struct MeasuredCurve {
    std::string file;  ///< log it was read from; empty: measured by `measure`
    int line = 0;
    std::string collective, datatype;  ///< as nccl-tests names them
    std::string link;                  ///< host backend: "threads" or "loopback"; GPUs: empty
    int ranks = 0, nodes = 1;
    std::string library;                    ///< "2.28.9"
    std::string preset, hardware, network;  ///< of the machine, where told
    std::string device;                     ///< name of the GPU
    int gpus_per_thread = 1;
    struct Point {
        std::int64_t bytes = 0;
        double out_of_place_us = 0, in_place_us = 0;  ///< in place 0: not measured
    };
    std::vector<Point> points;
};

struct MeasuredStep {
    std::string what;      ///< name of the job
    std::string group;     ///< jobs of one model: what a cross-check leaves out together
    std::string scenario;  ///< YAML
    double step_s = 0;
    int samples = 1;
};

struct MeasurementFile {
    std::string file;     ///< it was read from
    std::string backend;  ///< host, cuda, logs
    std::string date, method, tool;
    bool complete = true;
    std::string reason;
    std::vector<MeasuredDevice> devices;
    std::vector<std::string> libraries;  ///< "cuda 13.0", "nccl 2.28.9"
    std::vector<std::string> notes;      ///< "no permission to read clocks"
    std::vector<MeasuredPoint> points;
    std::vector<MeasuredCurve> curves;
    std::vector<MeasuredStep> steps;
};

/// Throws IngestError: not JSON (truncated), another schema, a value out of its range, devices of two kinds.
MeasurementFile read_measurement(const std::string& path);
MeasurementFile parse_measurement_json(std::string_view text, const std::string& file);
nlohmann::ordered_json measurement_json(const MeasurementFile& measurement);
/// Whole and at once: written beside, then renamed. Throws IngestError when it cannot be written.
void write_measurement(const MeasurementFile& measurement, const std::string& path);

/// 2026-11-30T12:00:00Z.
std::string utc_now();

}  // namespace fabricast
