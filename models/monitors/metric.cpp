#include "models/monitors/metric.hpp"

namespace fabricast::monitors {
namespace {

constexpr MetricInfo kInfos[kMetricCount] = {
    {"step_time", "s", "time from step to step, stalls between them included"},
    {"mfu", "", "model FLOPs of the steps / dense peak", false, true},
    {"tokens_per_s", "tokens/s", "tokens of the finished steps", false, true},
    {"gpu_util", "%", "time in which a kernel is on the GPU; one that waits counts", false, true},
    {"tensor_active", "", "share of the dense peak the tensor cores do, recomputation included", false, true},
    {"power", "W", "of one GPU", false, true},
    {"gpu_temp", "C", "of a GPU", true, false},
    {"sm_clock", "MHz", "of a GPU", true, true},
    {"nvlink_bw", "GB/s", "sent over the NVLink of one GPU, mean over the interval", false, true},
    {"ib_bw", "Gb/s", "sent by one adapter, mean over the interval", false, true},
    {"port_rate", "Gb/s", "negotiated rate of an adapter", true, true},
    {"ib_busbw", "GB/s", "bus bandwidth inside collectives between nodes, of a ring", true, true},
    {"nvlink_busbw", "GB/s", "bus bandwidth inside collectives of a node", true, true},
    {"collective_time", "", "share of the step that a rank is inside collectives, waiting included", true, true},
    {"compute_time", "", "share of the step that a rank is outside collectives, where its peers wait for it", true,
     false},
    {"data_wait", "", "share of the step that waits for data"},
    {"io_wait", "", "share of the time that waits for storage: data, blocking saves, loads"},
    {"host_memory_free", "", "share of a node's host memory", false, true},
    {"gpu_memory_allocated", "GiB", "of the fullest GPU"},
    {"gpu_memory_reserved", "GiB", "of the fullest GPU, with what its context takes"},
    {"loss_is_nan", "", "1: a loss that is not a number since the last sample"},
    {"grad_norm_event", "", "1: a gradient norm that is not finite since the last sample"},
    {"ecc_uncorrectable", "", "uncorrectable memory errors since the last sample"},
    {"xid", "", "last Xid since the last sample; 0: none"},
    {"link_downed", "", "links that went down and came back since the last sample"},
    {"since_step", "s", "since the last step ended"},
    {"job_up", "", "1: the processes of the job are there", false, true},
};

}  // namespace

const MetricInfo& info(Metric metric) { return kInfos[static_cast<std::size_t>(metric)]; }

std::optional<Metric> find_metric(std::string_view name) {
    for (std::size_t i = 0; i < kMetricCount; ++i)
        if (kInfos[i].name == name)
            return static_cast<Metric>(i);
    return std::nullopt;
}

std::vector<std::string> metric_names() {
    std::vector<std::string> names;
    for (const MetricInfo& one : kInfos)
        names.emplace_back(one.name);
    return names;
}

}  // namespace fabricast::monitors
