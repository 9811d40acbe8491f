#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/scenario/calibration.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

using Sources = std::map<std::string, std::string, std::less<>>;

class List {
public:
    List(const Answers& answers, std::vector<Assumption>& out) : answers_(answers), out_(out) {}

    /// A catalogue figure; `path` is the scenario key that would override it (may be empty).
    void constant(const std::string& what, std::string value, std::string_view path, const Sources& sources,
                  std::string_view key) {
        if (!path.empty() && answers_.given(path)) {
            out_.push_back({what, std::move(value), Origin::stated, "given in the scenario"});
            return;
        }
        const auto source = sources.find(key);
        const std::string text = source == sources.end() ? std::string() : source->second;
        out_.push_back({what, std::move(value), origin_of(text), text});
    }
    bool has(std::string_view what) const {
        return std::any_of(out_.begin(), out_.end(), [&](const Assumption& a) { return a.what == what; });
    }
    void add(std::string what, std::string value, Origin origin, std::string source) {
        out_.push_back({std::move(what), std::move(value), origin, std::move(source)});
    }

private:
    const Answers& answers_;
    std::vector<Assumption>& out_;
};

std::string rate(double bytes_per_s) { return fmt::format("{:.6g} GB/s", bytes_per_s / 1e9); }
std::string microseconds(double s) { return fmt::format("{:.6g} us", s * 1e6); }
std::string figure(double x) { return fmt::format("{:.6g}", x); }

void list_gpu(List& list, const Answers& answers, const Scenario& s) {
    const GpuSpec& g = s.gpu;
    const Precision p = s.training.precision;
    const bool fp8 = p == Precision::fp8, fp32 = p == Precision::fp32;
    const std::string peak_key = fp8 ? "peak_fp8" : fp32 ? "peak_fp32" : "peak_bf16";
    const double peak = fp8 ? g.peak_fp8 : fp32 ? g.peak_fp32 : g.peak_bf16;
    list.constant("cluster.node.gpu." + peak_key, fmt::format("{:.6g} TFLOP/s dense", peak / 1e12),
                  "cluster.node.gpu." + peak_key, g.sources, peak_key);
    list.constant("cluster.node.gpu_memory", fmt::format("{} MiB", g.memory_mib), "cluster.node.gpu_memory", g.sources,
                  "memory");
    list.constant("cluster.node.gpu.hbm", rate(g.hbm_bytes_per_s), "cluster.node.gpu.hbm", g.sources, "hbm");
    list.constant("cluster.node.gpu.sustained", figure(g.gemm.sustained), "cluster.node.gpu.sustained", g.sources,
                  "gemm.sustained");
    list.constant("cluster.node.gpu.gemm.cap", figure(g.gemm.cap), "", g.sources, "gemm.cap");
    list.constant("cluster.node.gpu.gemm.emax", figure(g.gemm.emax), "", g.sources, "gemm.emax");
    const Fusion fusion = s.software.fusion;
    const std::string memory_key = fusion == Fusion::fused      ? "fused"
                                   : fusion == Fusion::compiled ? "compiled"
                                                                : "eager";
    const double fraction = fusion == Fusion::fused      ? g.memory.fused
                            : fusion == Fusion::compiled ? g.memory.compiled
                                                         : g.memory.eager;
    list.constant("cluster.node.gpu.memory_bound." + memory_key, figure(fraction) + " of HBM", "", g.sources,
                  "memory_bound." + memory_key);
    list.constant("cluster.node.gpu.memory_bound.copy", figure(g.memory.copy) + " of HBM", "", g.sources,
                  "memory_bound.copy");
    if (const auto attention = g.attention.find(s.software.attention); attention != g.attention.end()) {
        const bool narrow = s.model.head_dim <= 64;
        const std::string key = fmt::format("attention.{}.{}", attention->first, narrow ? "e64" : "e128");
        list.constant("cluster.node.gpu." + key,
                      figure(narrow ? attention->second.e64 : attention->second.e128) + " of peak, long sequences", "",
                      g.sources, key);
        const std::string back = fmt::format("attention.{}.backward_rate", attention->first);
        list.constant("cluster.node.gpu." + back, figure(attention->second.backward_rate) + " of the forward rate", "",
                      g.sources, back);
    }
    if (g.nvlink_nominal_bytes_per_s > 0 && s.node.gpus > 1) {
        list.constant("cluster.node.nvlink", rate(g.nvlink_nominal_bytes_per_s) + " each way", "cluster.node.nvlink",
                      g.sources, "nvlink_nominal");
        const std::string achieved = rate(g.nvlink_achieved_bytes_per_s) + " each way";
        if (answers.given("cluster.node.nvlink") && !answers.given("cluster.node.nvlink_achieved"))
            list.add("cluster.node.nvlink_achieved", achieved, Origin::guess,
                     "the catalogue's achieved / nominal, scaled to the stated rate");
        else
            list.constant("cluster.node.nvlink_achieved", achieved, "cluster.node.nvlink_achieved", g.sources,
                          "nvlink_achieved");
    }
    list.constant("cluster.node.pcie", rate(g.pcie_bytes_per_s), "cluster.node.pcie", g.sources, "pcie");
}

/// What servers without an NVSwitch and named networks rest on.
void list_board(List& list, const Scenario& s) {
    const NodeSpec& n = s.node;
    const bool board = !s.machine && !s.fabric_is_listed() && n.board != Board::nvswitch;
    if (board && n.board != Board::cube_mesh && n.sources.contains("pcie_layout"))
        list.constant("cluster.node.pcie_layout",
                      fmt::format("{}, {} NUMA nodes", pcie_layout_name(n.pcie_layout), n.numa_nodes),
                      "cluster.node.pcie_layout", n.sources, "pcie_layout");
    if ((board || s.machine) && n.socket_bytes_per_s > 0)
        list.constant("cluster.node.socket", rate(n.socket_bytes_per_s) + " each way", "cluster.node.socket", n.sources,
                      "socket");
    if (n.nvlink_domain > 1)
        list.constant("cluster.node.nvlink_domain", fmt::format("{} nodes", n.nvlink_domain),
                      "cluster.node.nvlink_domain", n.sources, "nvlink_domain");
    if (s.network && s.nodes > 1) {
        for (const auto& [key, us] : {std::pair{"ll_hop", s.network->ll_hop_us},
                                      {"ll128_hop", s.network->ll128_hop_us},
                                      {"simple_hop", s.network->simple_hop_us},
                                      {"slot", s.network->slot_us}})
            list.constant(fmt::format("cluster.fabric.network.{}", key), microseconds(us * 1e-6), "",
                          s.network->sources, key);
    }
}

/// Calibrated figures that have no line of their own, and what collectives lack.
void list_calibrated(List& list, const Answers& answers, const Scenario& s) {
    const Calibration& c = *s.calibration;
    const std::string from = "fitted from " + c.file;
    if (const Calibration::Values* values = c.find(c.gpus, s.gpu.name)) {
        for (const auto& [key, value] : *values) {
            if (!list.has("cluster.node.gpu." + key) && !list.has("cluster.node." + key))
                list.add("cluster.node.gpu." + key, figure(value), Origin::fitted, from);
        }
    }
    for (const Calibration::CollectiveRow& row : c.collectives) {
        if (row.link == (s.nodes > 1 ? std::string_view(s.node.network) : std::string_view("node")))
            list.add(fmt::format("calibration.collectives.{}.{}", row.link, collective_name(row.kind)),
                     fmt::format("{} more, {} of the links' rate", microseconds(row.correction.latency_s),
                                 figure(row.correction.rate)),
                     Origin::fitted, from);
    }
    if (answers.given("cluster.node.nic_efficiency") && c.find(c.networks, s.node.network) != nullptr)
        list.add("calibration.networks", s.node.network, Origin::stated, "nic_efficiency of the scenario wins");
}

void list_cluster(List& list, const Answers& answers, const Scenario& s) {
    const NodeSpec& n = s.node;
    list.constant("cluster.node.gpus", fmt::format("{}", n.gpus), "cluster.node.gpus", n.sources, "gpus");
    list_gpu(list, answers, s);
    if (s.calibration)
        list_calibrated(list, answers, s);
    if (!answers.given("cluster.gpu_spread"))
        list.add("cluster.gpu_spread", figure(s.gpu_spread), Origin::published,
                 "GPUs of one node differ by 5 % and more between fastest and slowest (MAMF benchmark)");
    if (!answers.given("cluster.kernel_jitter"))
        list.add(
            "cluster.kernel_jitter", figure(s.kernel_jitter), Origin::fitted,
            "growth of the step with the number of GPUs on published ladders in fp8, where replicas meet every pass");
    if (!answers.given("cluster.gpu_draw"))
        list.add("cluster.gpu_draw", "expected", Origin::guess,
                 "one GPU, in the busiest stage, is as slow as the slowest of all is in the mean over draws");
    list.constant("cluster.node.nvlink_latency", microseconds(n.nvlink_latency_s), "cluster.node.nvlink_latency",
                  n.sources, "nvlink_latency");
    list_board(list, s);
    if (s.nodes == 1)
        return;
    const std::string_view nic_path = answers.given("cluster.fabric.nic") ? "cluster.fabric.nic" : "cluster.node.nic";
    list.constant("cluster.node.nics", fmt::format("{}", n.nics), "cluster.node.nics", n.sources, "nics");
    list.constant(std::string(nic_path), fmt::format("{:.6g} Gb/s", n.nic_bits_per_s / 1e9), nic_path, n.sources,
                  "nic_rate");
    list.constant("cluster.node.nic_efficiency", figure(n.nic_efficiency), "cluster.node.nic_efficiency", n.sources,
                  "nic_efficiency");
    list.constant("cluster.node.nic_latency", microseconds(n.nic_latency_s), "cluster.node.nic_latency", n.sources,
                  "nic_latency");
    list.constant("cluster.node.pcie_latency", microseconds(n.pcie_latency_s), "cluster.node.pcie_latency", n.sources,
                  "pcie_latency");
    list.constant("cluster.node.cpu", n.cpu, "cluster.node.cpu", n.sources, "cpu");
    list.constant("cluster.fabric.nodes_per_pod", fmt::format("{}", s.fabric.nodes_per_pod),
                  "cluster.fabric.nodes_per_pod", s.fabric.sources, "nodes_per_pod");
    list.constant("cluster.fabric.switch_latency", microseconds(s.fabric.switch_latency_s),
                  "cluster.fabric.switch_latency", s.fabric.sources, "switch_latency");
}

void list_offload(List& list, const Answers& answers, const Scenario& s) {
    if (!s.training.offload.active())
        return;
    const NodeSpec& n = s.node;
    list.constant("cluster.node.host_memory", fmt::format("{:.6g} GB", n.host_memory_bytes / 1e9),
                  "cluster.node.host_memory", n.sources, "host_memory");
    list.constant("cluster.node.host_bandwidth", rate(n.host_memory_bytes_per_s), "cluster.node.host_bandwidth",
                  n.sources, "host_bandwidth");
    if (answers.given("training.offload.optimizer"))
        list.add(
            "training.software.host_update_share", figure(s.software.host_update_share) + " of host memory bandwidth",
            Origin::published,
            s.software.host_update_share > 0.3
                ? "DeepSpeedCPUAdam, 10 G parameters in 2.57 s on two Xeon 8168 (arXiv:2101.06840, table 4)"
                : "PyTorch's Adam in Megatron-Core's hybrid optimizer, Qwen3-30B-A3B on 16 H100 (Megatron-Bridge)");
}

/// `word` picks the sentence of the stack that speaks of the feature.
void list_software(List& list, const Answers& answers, const Scenario& s) {
    const SoftwareFeatures& f = s.software;
    const auto feature = [&](std::string_view key, std::string_view word, std::string value) {
        const std::string path = fmt::format("training.software.{}", key);
        if (answers.given(path))
            return list.add(path, std::move(value), Origin::stated, "given in the scenario");
        std::string source = fmt::format("software stack {}", f.name);
        Origin origin = Origin::published;
        for (const std::string& sentence : f.sources)
            if (!word.empty() && sentence.find(word) != std::string::npos) {
                source += ": " + sentence;
                origin = origin_of(sentence);
                break;
            }
        list.add(path, std::move(value), origin, source);
    };
    const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
    const Fusion fusion = f.fusion;
    feature("attention", "ttention", f.attention);
    feature("fusion", "pointwise",
            fusion == Fusion::fused      ? "fused"
            : fusion == Fusion::compiled ? "compiled"
                                         : "eager");
    feature("dropout", "dropout", flag(f.dropout));
    feature("fp32_gradients", "fp32 accumulation", flag(f.fp32_gradients));
    feature("fp32_reduce", "fp32 reduction", flag(f.fp32_reduce));
    feature("cuda_graphs", "CUDA graphs", flag(f.cuda_graphs));
    if (!f.cuda_graphs) {
        feature("host_per_kernel", "per kernel", microseconds(f.host_per_kernel_s));
        if (f.host_per_layer_s > 0)
            feature("host_per_layer", f.host_backward_share < 1 ? "a forward pass" : "layer pass",
                    microseconds(f.host_per_layer_s));
        if (f.host_per_shard_s > 0 && s.training.layout.zero == 1)
            feature("host_per_shard", "shard of a tensor", microseconds(f.host_per_shard_s));
        if (f.host_per_step_s > 0)
            feature("host_per_step", "a step", microseconds(f.host_per_step_s));
    }
    feature("loss_bytes_per_logit", "per logit", figure(f.loss_bytes_per_logit));
    if (s.training.layout.pp > 1)
        feature("p2p_overlap", "sends", flag(f.p2p_overlap));
    if (s.training.layout.tp > 1) {
        feature("tp_backward_overlap", "", flag(f.tp_backward_overlap));
        feature("tp_hidden_fraction", "of TP traffic", figure(f.tp_hidden_fraction));
    }
    if (s.training.layout.zero == 3)
        feature("fsdp_copy_bytes", "flat buffers", figure(f.fsdp_copy_bytes));
}

}  // namespace

Origin origin_of(std::string_view source) {
    struct Word {
        std::string_view part;
        Origin origin;
    };
    static constexpr std::array kWords = {
        Word{"estimate", Origin::guess},
        Word{"assumed", Origin::guess},
        Word{"order of magnitude", Origin::guess},
        Word{"most servers", Origin::guess},
        Word{"measured here", Origin::measured},
        Word{"fitted", Origin::fitted},
        Word{"-fit", Origin::fitted},
        Word{"flat optimum", Origin::fitted},
        Word{"data sheet", Origin::datasheet},
        Word{"datasheet", Origin::datasheet},
        Word{"vendor reference", Origin::datasheet},
        Word{"driver reports", Origin::published},
    };
    for (const Word& word : kWords)
        if (source.find(word.part) != std::string_view::npos)
            return word.origin;
    return source.empty() ? Origin::guess : Origin::published;
}

void list_assumptions(const Answers& answers, Scenario& s) {
    List list(answers, s.assumptions);
    if (s.calibration)
        list.add("calibration", s.calibration->name, Origin::fitted, provenance_sentence(*s.calibration));
    list_cluster(list, answers, s);
    if (!answers.given("training.layout.dp") || answers.given("training.layout.dp")->text == "auto")
        list.add("training.layout.dp", fmt::format("{}", s.training.layout.dp), Origin::stated,
                 "the GPUs that tp, cp and pp leave");
    if (!s.model.source.empty())
        list.add("model", s.model.name, answers.given("model.preset") ? Origin::published : Origin::stated,
                 s.model.source);
    list_software(list, answers, s);
    list_offload(list, answers, s);
    list_run(answers, s);
    for (const std::string& path : answers.defaults_taken) {
        const bool of_campaign = path.starts_with("run.") || path.starts_with("faults.");
        if (path == "training.layout.dp" || path == "seed" || (of_campaign && !s.run.given))
            continue;
        list.add(path, std::string(find_field(path)->fallback), Origin::guess, "not stated, the default");
    }
}

}  // namespace fabricast
