// What a monitor reads of a running job: names, units, and whose value it is.
//
// A metric of the job is one number a sample. A metric of peers has one number for each part of a kind (GPU, adapter,
// ring); all but a few of them are alike, so a sample holds their median and names the parts that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast::monitors {

enum class Metric : std::uint8_t {
    step_time,
    mfu,
    tokens_per_s,
    gpu_util,
    tensor_active,
    power,
    gpu_temp,
    sm_clock,
    nvlink_bw,
    ib_bw,
    port_rate,
    ib_busbw,
    nvlink_busbw,
    collective_time,
    compute_time,
    data_wait,
    io_wait,
    host_memory_free,
    gpu_memory_allocated,
    gpu_memory_reserved,
    loss_is_nan,
    grad_norm_event,
    ecc_uncorrectable,
    xid,
    link_downed,
    since_step,
    job_up,
    count
};
inline constexpr std::size_t kMetricCount = static_cast<std::size_t>(Metric::count);

struct MetricInfo {
    std::string_view name;  ///< "ib_busbw"
    std::string_view unit;  ///< "GB/s"; empty: a share or a count
    std::string_view what;  ///< sentence part
    bool of_peers = false;
    bool low_is_bad = false;  ///< the end of the peers that is told
};
const MetricInfo& info(Metric metric);
std::optional<Metric> find_metric(std::string_view name);
std::vector<std::string> metric_names();

}  // namespace fabricast::monitors
