// fabricast presets: what a scenario may name, with the facts that tell them apart.
#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <nlohmann/json.hpp>

#include "models/hardware/catalogue.hpp"
#include "models/transformer/architecture.hpp"
#include "models/transformer/layer.hpp"
#include "sim/cli/command_line.hpp"
#include "sim/cli/starter.hpp"
#include "sim/report/page.hpp"
#include "sim/report/text.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

std::int64_t parameters(const Architecture& model) { return count_parameters(model, model.vocab).total(); }

std::string_view fusion_text(Fusion fusion) {
    switch (fusion) {
        case Fusion::fused: return "fused";
        case Fusion::compiled: return "compiled";
        case Fusion::eager: return "eager";
    }
    return "";
}

std::string tera(double value) { return value > 0 ? fmt::format("{:.1f}", value / 1e12) : "-"; }
std::string giga(double value) { return value > 0 ? fmt::format("{:.0f}", value / 1e9) : "-"; }

std::string board_text(const NodeSpec& node) {
    if (node.board == Board::pcie)
        return fmt::format("pcie {}", pcie_layout_name(node.pcie_layout));
    return node.nvlink_domain > 1 ? fmt::format("nvswitch of {} nodes", node.nvlink_domain)
                                  : std::string(board_name(node.board));
}

void print_nodes(report::Page& page) {
    page.add("Nodes (cluster.node.preset)", report::Paint::bold).end();
    report::Table table("llrllrl");
    table.row({"name", "GPU", "GPUs", "joined by", "network adapters", "achieved", "CPU"});
    for (const NodeSpec& node : Catalogue::builtin().nodes()) {
        table.row({node.name, node.gpu, fmt::format("{}", node.gpus), board_text(node),
                   fmt::format("{} x {:.0f} Gb/s", node.nics, node.nic_bits_per_s / 1e9),
                   report::percent(node.nic_efficiency), node.cpu});
    }
    table.print(page);
}

void print_gpus(report::Page& page) {
    page.heading("GPUs (cluster.node.gpu.preset); peaks are dense TFLOP/s, NVLink is GB/s of one direction");
    report::Table table("lrrrrrrl");
    table.row({"name", "bf16", "fp8", "GiB", "HBM TB/s", "NVLink", "achieved", "NVLS"});
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        table.row({gpu.name, tera(gpu.peak_bf16), tera(gpu.peak_fp8),
                   fmt::format("{:.1f}", static_cast<double>(gpu.memory_mib) / 1024),
                   fmt::format("{:.2f}", gpu.hbm_bytes_per_s / 1e12), giga(gpu.nvlink_nominal_bytes_per_s),
                   giga(gpu.nvlink_achieved_bytes_per_s), gpu.nvls ? "yes" : "no"});
    }
    table.print(page);
}

void print_networks(report::Page& page) {
    page.heading("Networks (cluster.fabric.network); hops are what they cost beyond NCCL's own tables");
    report::Table table("lrrrrl");
    table.row({"name", "achieved", "LL hop us", "LL128 hop us", "Simple hop us", "LL128"});
    for (const NetworkSpec& network : Catalogue::builtin().networks()) {
        table.row({network.name, report::percent(network.efficiency), fmt::format("{:.1f}", network.ll_hop_us),
                   fmt::format("{:.1f}", network.ll128_hop_us), fmt::format("{:.1f}", network.simple_hop_us),
                   network.ll128 ? "yes" : "no"});
    }
    table.print(page);
}

void print_fabrics(report::Page& page) {
    page.heading("Fabrics (cluster.fabric.kind)");
    report::Table table("lrr");
    table.row({"name", "nodes per pod", "switch latency"});
    for (const FabricSpec& fabric : Catalogue::builtin().fabrics()) {
        table.row({fabric.name, fmt::format("{}", fabric.nodes_per_pod),
                   fmt::format("{:.2f} us", fabric.switch_latency_s * 1e6)});
    }
    table.print(page);
}

void print_models(report::Page& page) {
    page.heading("Models (model.preset)");
    report::Table table("llrrrrrr");
    table.row({"name", "family", "parameters", "layers", "hidden", "heads", "MLP", "vocabulary"});
    const auto mlp = [](const Architecture& model) {
        return model.moe.experts > 0 ? fmt::format("{} of {} x {}", model.moe.top_k, model.moe.experts, model.moe.ffn)
                                     : fmt::format("{}", model.ffn);
    };
    for (const Architecture& model : architectures()) {
        const std::string heads = model.kv_heads == model.heads ? fmt::format("{}", model.heads)
                                                                : fmt::format("{} / {}", model.heads, model.kv_heads);
        table.row({model.name, model.family, fmt::format("{:.2f} B", static_cast<double>(parameters(model)) / 1e9),
                   fmt::format("{}", model.layers), fmt::format("{}", model.hidden), heads, mlp(model),
                   fmt::format("{}", model.vocab)});
    }
    table.print(page);
}

void print_software(report::Page& page) {
    page.heading("Software (training.software.preset)");
    report::Table table("lllll");
    table.row({"name", "attention", "pointwise", "gradients", "CUDA graphs"});
    for (const SoftwareFeatures& software : software_stacks()) {
        table.row({software.name, software.attention, std::string(fusion_text(software.fusion)),
                   software.fp32_gradients ? "fp32" : "bf16", software.cuda_graphs ? "yes" : "no"});
    }
    table.print(page);
}

std::string presets_text(const Terminal& terminal) {
    report::Page page(terminal.color, terminal.unicode, 110);
    print_nodes(page);
    print_gpus(page);
    print_fabrics(page);
    print_networks(page);
    print_models(page);
    print_software(page);
    page.blank();
    page.add("fabricast presets --scenario NAME writes a commented scenario for a node or a model.").end();
    return page.text();
}

std::string presets_json() {
    ordered_json nodes = ordered_json::array(), gpus = nodes, fabrics = nodes, networks = nodes, models = nodes,
                 software = nodes;
    for (const NodeSpec& node : Catalogue::builtin().nodes()) {
        nodes.push_back({{"name", node.name},
                         {"gpu", node.gpu},
                         {"gpus", node.gpus},
                         {"nics", node.nics},
                         {"nic_bits_per_s", node.nic_bits_per_s},
                         {"nic_efficiency", node.nic_efficiency},
                         {"cpu", node.cpu},
                         {"board", board_name(node.board)},
                         {"pcie_layout", pcie_layout_name(node.pcie_layout)},
                         {"numa_nodes", node.numa_nodes},
                         {"socket_bytes_per_s", node.socket_bytes_per_s},
                         {"nvlink_domain", node.nvlink_domain},
                         {"network", node.network}});
    }
    for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
        gpus.push_back({{"name", gpu.name},
                        {"peak_bf16", gpu.peak_bf16},
                        {"peak_fp8", gpu.peak_fp8},
                        {"memory_mib", gpu.memory_mib},
                        {"hbm_bytes_per_s", gpu.hbm_bytes_per_s},
                        {"nvlink_nominal_bytes_per_s", gpu.nvlink_nominal_bytes_per_s},
                        {"nvlink_achieved_bytes_per_s", gpu.nvlink_achieved_bytes_per_s},
                        {"nvls", gpu.nvls}});
    }
    for (const FabricSpec& fabric : Catalogue::builtin().fabrics()) {
        fabrics.push_back({{"name", fabric.name},
                           {"nodes_per_pod", fabric.nodes_per_pod},
                           {"switch_latency_s", fabric.switch_latency_s}});
    }
    for (const NetworkSpec& network : Catalogue::builtin().networks()) {
        networks.push_back({{"name", network.name},
                            {"efficiency", network.efficiency},
                            {"ll_hop_us", network.ll_hop_us},
                            {"ll128_hop_us", network.ll128_hop_us},
                            {"simple_hop_us", network.simple_hop_us},
                            {"ll128", network.ll128}});
    }
    for (const Architecture& model : architectures()) {
        models.push_back({{"name", model.name},
                          {"family", model.family},
                          {"parameters", parameters(model)},
                          {"active_parameters", count_parameters(model, model.vocab).active()},
                          {"layers", model.layers},
                          {"hidden", model.hidden},
                          {"heads", model.heads},
                          {"kv_heads", model.kv_heads},
                          {"ffn", model.ffn},
                          {"experts", model.moe.experts},
                          {"vocab", model.vocab},
                          {"source", model.source}});
    }
    for (const SoftwareFeatures& stack : software_stacks()) {
        software.push_back({{"name", stack.name},
                            {"attention", stack.attention},
                            {"fusion", fusion_text(stack.fusion)},
                            {"fp32_gradients", stack.fp32_gradients},
                            {"cuda_graphs", stack.cuda_graphs}});
    }
    const ordered_json json = {{"schema_version", 1},  {"nodes", nodes},   {"gpus", gpus},        {"fabrics", fabrics},
                               {"networks", networks}, {"models", models}, {"software", software}};
    return json.dump(2) + "\n";
}

}  // namespace

Options presets_options() {
    Options options;
    options.usage = "fabricast presets [option]...";
    options.named.add_options()("json", "as JSON")("scenario", po::value<std::string>()->value_name("NAME"),
                                                   "print a commented scenario for a node or a model")(
        "no-color", "no colour, as with NO_COLOR set");
    options.examples =
        "examples\n"
        "  fabricast presets --scenario llama3.1-70b > my.yaml\n"
        "  fabricast presets --json | jq -r '.models[].name'\n";
    return options;
}

int presets(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(presets_options(), arguments, help);
    if (help)
        return kDone;
    if (values.count("scenario") && values.count("json")) {
        throw ScenarioError("fabricast presets: --scenario and --json exclude each other");
    }
    if (values.count("scenario")) {
        print_result(starter_scenario(values["scenario"].as<std::string>()));
    } else {
        print_result(values.count("json") ? presets_json()
                                          : presets_text(stdout_terminal(values.count("no-color") > 0)));
    }
    return kDone;
}

}  // namespace fabricast::cli
