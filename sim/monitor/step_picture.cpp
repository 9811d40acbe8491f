#include "sim/monitor/step_picture.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace fabricast::monitor {
namespace {

/// Distance in ranks between neighbours of a group on the axis, and its length.
struct Axis {
    std::int64_t stride = 1, size = 1;
};

// "tp-cp-ep-dp-pp", fastest first. Expert-parallel groups lie inside the data-parallel ones and begin with their stride.
Axis axis_of(const Layout& layout, std::string_view name, std::int64_t size) {
    Axis axis{1, size};
    std::istringstream words(layout.order);
    for (std::string word; std::getline(words, word, '-');) {
        if (word == name || (name == "ep" && word == "dp"))
            break;
        axis.stride *= word == "tp" ? layout.tp : word == "cp" ? layout.cp : word == "dp" ? layout.dp : 1;
        if (word == "pp")
            axis.stride *= layout.pp;
    }
    return axis;
}

std::string_view axis_name(Account account) {
    switch (account) {
        case Account::comm_tp: return "tp";
        case Account::comm_cp: return "cp";
        case Account::comm_ep: return "ep";
        case Account::comm_pp: return "pp";
        case Account::comm_gradient:
        case Account::comm_parameter: return "dp";
        default: return {};
    }
}

/// "dp 64" -> 64.
std::int64_t group_size(const std::string& group) {
    const std::size_t at = group.find_last_of(' ');
    std::int64_t size = 0;
    if (at != std::string::npos)
        std::from_chars(group.data() + at + 1, group.data() + group.size(), size);
    return size;
}

}  // namespace

StepPicture picture_of(const Scenario& s, const Result& r) {
    StepPicture p;
    p.step_s = seconds(r.step.ps);
    p.tokens = r.step.tokens;
    const double done = static_cast<double>(r.step.ranks) * r.step.peak_flops * p.step_s;
    if (done > 0) {
        p.mfu = r.step.model_flops / done;
        p.hfu = r.step.hardware_flops / done;
    }
    const auto spent = [&](Account account) {
        const double ranks = std::max(1.0, static_cast<double>(r.step.ranks));
        return static_cast<double>(r.step.accounts[static_cast<std::size_t>(account)]) / ranks / 1e12;
    };
    for (auto a = static_cast<std::size_t>(Account::comm_tp); a <= static_cast<std::size_t>(Account::bubble); ++a)
        p.in_collectives_s += spent(static_cast<Account>(a));
    p.data_s = spent(Account::data_wait);
    p.off_gpu_s = p.data_s + spent(Account::host_bound) + spent(Account::checkpoint) + spent(Account::idle);

    const double gpus = s.node.gpus, nics = s.node.nics, all = gpus * s.nodes;
    double net_longest = 0, node_longest = 0;
    for (const CommRow& row : r.communication) {
        const std::string_view name = axis_name(row.account);
        const std::int64_t size = group_size(row.group);
        if (name.empty() || size < 2)
            continue;
        const Axis axis = axis_of(s.training.layout, name, size);
        const auto per_node = static_cast<std::int64_t>(gpus);
        const bool crosses = s.nodes > 1 && axis.stride * axis.size > per_node;
        const double in_node = static_cast<double>(
            std::clamp<std::int64_t>(per_node / std::max<std::int64_t>(1, axis.stride), 1, axis.size));
        const double total = row.time_s * static_cast<double>(row.calls_per_rank);
        const double sent = row.busbw_bytes_per_s * total;
        if (crosses) {
            p.nic_bytes += nics > 0 ? sent * gpus / (in_node * nics) : 0;
            p.nvlink_bytes += sent * (in_node - 1) / in_node;
        } else {
            p.nvlink_bytes += sent;
        }
        if (row.kind == "send_recv")
            continue;
        double& longest = crosses ? net_longest : node_longest;
        if (total <= longest)
            continue;
        longest = total;
        (crosses ? p.net_busbw : p.node_busbw) = row.busbw_bytes_per_s;
        (crosses ? p.net_rings : p.node_rings) = static_cast<std::uint32_t>(all / static_cast<double>(size));
    }
    for (const StageMemory& stage : r.memory) {
        const double context = static_cast<double>(stage.parts[static_cast<std::size_t>(MemoryCause::context)]);
        if (static_cast<double>(stage.total_bytes) > p.reserved_bytes) {
            p.reserved_bytes = static_cast<double>(stage.total_bytes);
            p.allocated_bytes = p.reserved_bytes - context;
        }
    }
    return p;
}

}  // namespace fabricast::monitor
