#include <fmt/format.h>

#include <charconv>

#include "models/compute/spread.hpp"
#include "sim/scenario/calibration.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

template <typename T>
void set_number(const Answers& answers, std::string_view path, T& target, double factor = 1) {
    if (const Answer* a = answers.given(path))
        target = static_cast<T>(a->number * factor);
}
template <typename T>
void set_integer(const Answers& answers, std::string_view path, T& target) {
    if (const Answer* a = answers.given(path))
        target = static_cast<T>(a->integer);
}
void set_flag(const Answers& answers, std::string_view path, bool& target) {
    if (const Answer* a = answers.given(path))
        target = a->flag;
}

void fill_gpu(const Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    set_integer(answers, "cluster.node.gpu.sms", s.gpu.sms);
    set_number(answers, "cluster.node.gpu.peak_bf16", s.gpu.peak_bf16);
    set_number(answers, "cluster.node.gpu.peak_fp8", s.gpu.peak_fp8);
    set_number(answers, "cluster.node.gpu.peak_tf32", s.gpu.peak_tf32);
    set_number(answers, "cluster.node.gpu.peak_fp32", s.gpu.peak_fp32);
    set_number(answers, "cluster.node.gpu.hbm", s.gpu.hbm_bytes_per_s);
    set_number(answers, "cluster.node.gpu.l2", s.gpu.l2_bytes);
    set_number(answers, "cluster.node.gpu.sustained", s.gpu.gemm.sustained);
    set_flag(answers, "cluster.node.gpu.nvls", s.gpu.nvls);
    set_number(answers, "cluster.node.gpu.power", s.gpu.power_w);
    set_number(answers, "cluster.node.pcie", s.gpu.pcie_bytes_per_s);

    set_number(answers, "cluster.node.host_memory", s.node.host_memory_bytes);
    set_number(answers, "cluster.node.host_bandwidth", s.node.host_memory_bytes_per_s);
    if (const Answer* memory = answers.given("cluster.node.gpu_memory")) {
        const std::int64_t catalogue_mib = s.gpu.memory_mib;
        s.gpu.memory_mib = static_cast<std::int64_t>(memory->number / 1048576.0);
        if (s.gpu.memory_mib == 0)
            diagnostics.error(memory->place,
                              fmt::format("cluster.node.gpu_memory: `{}` is less than 1 MiB", memory->text));
        if (memory->unit.find('i') == std::string::npos)
            s.notes.push_back(
                fmt::format("cluster.node.gpu_memory: {} is decimal and makes {} MiB; the driver of {} reports {} MiB, "
                            "and GPU memory is sold in GiB",
                            memory->text, s.gpu.memory_mib, s.gpu.name, catalogue_mib));
    }

    const double nominal = s.gpu.nvlink_nominal_bytes_per_s;
    const Answer* achieved = answers.given("cluster.node.nvlink_achieved");
    if (const Answer* link = answers.given("cluster.node.nvlink")) {
        s.gpu.nvlink_nominal_bytes_per_s = link->number;
        if (nominal > 0) {
            s.gpu.nvlink_achieved_bytes_per_s *= link->number / nominal;
            s.gpu.nvlink_nccl_bytes_per_s *= link->number / nominal;
            if (link->number >= 1.9 * nominal)
                s.notes.push_back(
                    fmt::format("cluster.node.nvlink: {} is read as one direction; {} has {} GB/s a direction, and "
                                "sheets print both directions together",
                                link->text, s.gpu.name, nominal / 1e9));
        } else if (!achieved) {
            diagnostics.error(
                link->place,
                fmt::format(
                    "cluster.node.nvlink: the catalogue has no NVLink figures for {}; give nvlink_achieved as well",
                    s.gpu.name));
        } else {
            s.gpu.nvlink_nccl_bytes_per_s = link->number;
        }
    }
    if (achieved) {
        s.gpu.nvlink_achieved_bytes_per_s = achieved->number;
        if (achieved->number > s.gpu.nvlink_nominal_bytes_per_s)
            diagnostics.error(
                achieved->place,
                fmt::format("cluster.node.nvlink_achieved: `{}` is above the nominal {} GB/s of one direction",
                            achieved->text, s.gpu.nvlink_nominal_bytes_per_s / 1e9));
    }
    const Answer* spread = answers.given("cluster.gpu_spread");
    s.gpu_spread = spread ? spread->number : kGpuSpread;
    const Answer* jitter = answers.given("cluster.kernel_jitter");
    s.kernel_jitter = jitter ? jitter->number : kKernelJitter;
    const Answer* draw = answers.given("cluster.gpu_draw");
    s.gpu_draw_each = draw != nullptr && draw->text == "each";
    if (const Answer* limit = answers.given("cluster.node.power_limit")) {
        s.power_limit_w = limit->number;
        if (limit->number > s.gpu.power_w)
            diagnostics.error(limit->place,
                              fmt::format("cluster.node.power_limit: `{}` is above the nominal {} W of {}", limit->text,
                                          s.gpu.power_w, s.gpu.name));
    }
}

void fill_nics(const Answers& answers, Scenario& s) {
    const Answer* on_node = answers.given("cluster.node.nic");
    const Answer* on_fabric = answers.given("cluster.fabric.nic");
    if (on_node && on_fabric && on_node->number != on_fabric->number)
        s.notes.push_back(
            fmt::format("cluster.fabric.nic: {} wins over cluster.node.nic: {}", on_fabric->text, on_node->text));
    if (const Answer* nic = on_fabric ? on_fabric : on_node) {
        s.node.nic_bits_per_s = nic->number * 8;
        if (s.node.nic_bits_per_s > 1.6e12)
            s.notes.push_back(fmt::format(
                "{}: {} is {} Gb/s for one adapter; adapters are rated in bits (b), not bytes (B)",
                on_fabric ? "cluster.fabric.nic" : "cluster.node.nic", nic->text, s.node.nic_bits_per_s / 1e9));
    }
}

void check_nics(const Answers& answers, const Scenario& s, Diagnostics& diagnostics) {
    const Place place = answers.place("cluster.node.nics");
    const bool joined = s.node.nvlink_domain >= s.nodes || s.fabric_is_listed();
    if (s.nodes > 1 && s.node.nics == 0 && !joined)
        diagnostics.error(place, fmt::format("cluster.node.nics: 0 adapters cannot connect {} nodes", s.nodes));
    const bool listed = s.machine || s.fabric_is_listed();
    const bool several = s.node.board != Board::nvswitch && s.node.nics % s.node.gpus == 0;
    if (s.node.nics > 0 && s.node.gpus % s.node.nics != 0 && !listed && !several)
        diagnostics.error(place, fmt::format("cluster.node.nics: {} GPUs cannot be shared evenly among {} adapters",
                                             s.node.gpus, s.node.nics));
}

void fill_fabric(Answers& answers, Scenario& s) {
    if (const Answer* a = answers.given("cluster.fabric.rails"))
        s.rails = a->flag;
    set_integer(answers, "cluster.fabric.levels", s.levels);
    set_integer(answers, "cluster.fabric.pods_per_block", s.pods_per_block);
    set_integer(answers, "cluster.fabric.planes", s.planes);
    set_integer(answers, "cluster.fabric.spines", s.spines);
    set_number(answers, "cluster.fabric.block_oversubscription", s.block_oversubscription);
    set_number(answers, "cluster.fabric.adaptive_efficiency", s.routing.adaptive_efficiency);
    if (const Answer* a = answers.given("cluster.fabric.routing")) {
        s.routing.spreading = a->text == "static"     ? Spreading::static_table
                              : a->text == "ecmp"     ? Spreading::ecmp
                              : a->text == "adaptive" ? Spreading::adaptive
                                                      : Spreading::ideal;
    }
}

/// Lanes of a whole link where the graph does not say: PCIe x16, InfiniBand 4x, all NVLinks of a GPU on an NVSwitch.
std::uint32_t usual_lanes(std::string_view what, const Scenario& s) {
    if (what.ends_with(" pcie"))
        return 16;
    if (what.starts_with("nic "))
        return 4;
    return what.ends_with(" nvlink") && s.node.board == Board::nvswitch ? nvlink_lanes(s.gpu) : 0;
}

/// "gpu 0.0 nvlink gpu 3 loses 1 lane"; false when it is not of this form.
bool read_lost_lanes(std::string_view part, const Scenario& s, Scenario::DegradedPart& out) {
    const std::size_t at = part.rfind(" loses ");
    if (at == std::string_view::npos)
        return false;
    const std::string_view figure = part.substr(at + 7);
    const auto [stop, error] = std::from_chars(figure.data(), figure.data() + figure.size(), out.lanes_lost);
    const std::string_view word = figure.substr(static_cast<std::size_t>(stop - figure.data()));
    if (error != std::errc() || out.lanes_lost == 0 || (word != " lane" && word != " lanes"))
        return false;
    out.what = part.substr(0, at);
    out.lanes = usual_lanes(out.what, s);
    return true;
}

// "nic 3.2 at 0.5; gpu 1.0 nvlink at 0.9; gpu 0.0 nvlink gpu 3 loses 1 lane"
void fill_degraded(const Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer* a = answers.given("cluster.degraded");
    if (!a)
        return;
    s.degraded_where = answers.place("cluster.degraded").text();
    std::string_view rest = a->text;
    while (!rest.empty()) {
        const std::size_t end = rest.find(';');
        std::string_view part = rest.substr(0, end);
        rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
        while (!part.empty() && part.front() == ' ')
            part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ')
            part.remove_suffix(1);
        if (Scenario::DegradedPart lost; read_lost_lanes(part, s, lost)) {
            s.degraded.push_back(lost);
            continue;
        }
        const std::size_t at = part.rfind(" at ");
        double factor = 0;
        if (at != std::string_view::npos) {
            const std::string_view figure = part.substr(at + 4);
            const auto [stop, error] = std::from_chars(figure.data(), figure.data() + figure.size(), factor);
            if (error != std::errc() || stop != figure.data() + figure.size())
                factor = 0;
        }
        if (!(factor > 0 && factor <= 1)) {
            diagnostics.error(answers.place("cluster.degraded"),
                              fmt::format("cluster.degraded: `{}` is no part and factor; write \"nic 3.2 at 0.5\", a "
                                          "factor above 0 and at most 1, or \"gpu 0.0 pcie loses 8 lanes\", parts "
                                          "separated by ;",
                                          part));
            return;
        }
        s.degraded.push_back({std::string(part.substr(0, at)), factor, 0, 0});
    }
}

}  // namespace

void missing(const Answers& answers, std::string_view path, std::string_view why, Diagnostics& diagnostics) {
    diagnostics.error(answers.place(path), fmt::format("{} is missing{}", path, why));
}

bool fill_cluster(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const bool counted = answers.given("cluster.graph") || answers.given("cluster.fabric.file") ||
                         answers.given("cluster.fabric.dimensions");
    if (!counted || answers.given("cluster.nodes"))
        s.nodes = static_cast<std::uint32_t>(answers.get("cluster.nodes").integer);
    const Answer* preset = answers.given("cluster.node.preset");
    if (!preset) {
        missing(answers, "cluster.node.preset",
                "; name a server, such as node: hgx-h100 (any field of it may be overridden)", diagnostics);
        return false;
    }
    s.node = *Catalogue::builtin().find_node(preset->text);
    if (const Answer* gpu = answers.given("cluster.node.gpu.preset"))
        s.node.gpu = gpu->text;
    s.gpu = *Catalogue::builtin().find_gpu(s.node.gpu);
    if (s.calibration)
        apply(*s.calibration, s.gpu);
    set_integer(answers, "cluster.node.gpus", s.node.gpus);
    set_integer(answers, "cluster.node.nics", s.node.nics);
    set_number(answers, "cluster.node.nic_efficiency", s.node.nic_efficiency);
    set_number(answers, "cluster.node.nvlink_latency", s.node.nvlink_latency_s);
    set_number(answers, "cluster.node.pcie_latency", s.node.pcie_latency_s);
    set_number(answers, "cluster.node.nic_latency", s.node.nic_latency_s);
    if (const Answer* cpu = answers.given("cluster.node.cpu"))
        s.node.cpu = cpu->text;
    fill_gpu(answers, s, diagnostics);
    fill_board(answers, s, diagnostics);
    fill_nics(answers, s);
    s.fabric = *Catalogue::builtin().find_fabric("rail-fat-tree");
    if (s.nodes > 1)
        answers.get("cluster.fabric.kind");  // a default that decides
    set_integer(answers, "cluster.fabric.nodes_per_pod", s.fabric.nodes_per_pod);
    set_number(answers, "cluster.fabric.switch_latency", s.fabric.switch_latency_s);
    if (s.nodes > 1)
        s.oversubscription = answers.get("cluster.fabric.oversubscription").number;
    else if (const Answer* ratio = answers.given("cluster.fabric.oversubscription"))
        s.oversubscription = ratio->number;
    fill_fabric(answers, s);
    fill_shape(answers, s, diagnostics);
    check_nics(answers, s, diagnostics);
    fill_degraded(answers, s, diagnostics);
    return diagnostics.ok();
}

}  // namespace fabricast
