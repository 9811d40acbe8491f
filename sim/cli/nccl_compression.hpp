// `fabricast nccl --compression`: the all-reduce of a gradient when it travels compressed.
#pragma once

#include <optional>
#include <string>

#include "models/collectives/compression.hpp"
#include "sim/step/collective_time.hpp"

namespace fabricast::cli {

struct CompressionOptions {
    Compression method = Compression::none;
    TensorClass tensor = TensorClass::matrix;
    bool warming_up = false;
};

/// Throws ScenarioError for a name that does not exist.
CompressionOptions compression_options(const std::string& method, const std::string& tensor, bool warming_up);

struct CompressedTime {
    Bytes wire = 0;
    double encode_s = 0, time_s = 0;  ///< encoding and decoding; in all, with the traffic
};

/// A gradient of `bytes` in FP32. request: an all-reduce. What cannot be summed as it travels is exchanged in shards,
/// summed, and gathered (models/collectives/compression.hpp).
CompressedTime time_compressed(const Cluster& cluster, const CommModel& comm, const GpuSpec& gpu,
                               const CollectiveRequest& request, const CompressionOptions& options, Bytes bytes);

}  // namespace fabricast::cli
