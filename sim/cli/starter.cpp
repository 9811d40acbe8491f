#include "sim/cli/starter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "models/hardware/catalogue.hpp"
#include "models/parallel/layout.hpp"
#include "models/transformer/layer.hpp"
#include "models/transformer/software.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

constexpr double kFill = 0.75;                             ///< part of the memory a starter may plan with
constexpr std::int64_t kSetAside = std::int64_t{4} << 30;  ///< context and communication buffers
constexpr std::int64_t kMaxNodes = 512, kMaxSequence = 4096;
constexpr std::array<std::string_view, 2> kNodes = {"hgx-h100", "dgx-h100"};
constexpr std::array<std::string_view, 3> kModels = {"llama3.1-8b", "llama-7b", "gpt2"};
constexpr std::string_view kSoftware = "megatron-core-2024";

struct Start {
    const NodeSpec* node = nullptr;
    const Architecture* model = nullptr;
    std::int64_t nodes = 0;
    TrainingPlan plan;
};

/// bf16 weights and fp32 gradients on every replica, 12 bytes a parameter of sharded Adam; 1F1B holds as many
/// micro-batches on stage 0 as there are stages.
double bytes_per_gpu(const Architecture& model, const TrainingPlan& plan, const SoftwareFeatures& software) {
    const Layout& layout = plan.layout;
    const std::int64_t parameters = count_parameters(model, padded_vocab(model, layout.tp)).total();
    const double held = static_cast<double>(parameters) / static_cast<double>(layout.tp * layout.pp);
    const Shard shard{.tp = layout.tp,
                      .sequence_parallel = layout.sequence_parallel,
                      .micro_batch = plan.micro_batch,
                      .sequence = plan.sequence,
                      .precision = plan.precision};
    const ActivationBytes layer = layer_activation(model, shard, software, plan.recompute);
    const double activations = static_cast<double>(layer.kept) * static_cast<double>(model.layers) +
                               static_cast<double>(layer.working) +
                               static_cast<double>(logits_bytes(model, shard, software));
    return held * (6 + 12 / static_cast<double>(layout.dp)) + activations + static_cast<double>(kSetAside);
}

bool power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

std::optional<TrainingPlan> plan_on(const Architecture& model, const NodeSpec& node, std::int64_t nodes,
                                    std::int64_t max_pipeline) {
    const GpuSpec* gpu = Catalogue::builtin().find_gpu(node.gpu);
    SoftwareFeatures software = *find_software(kSoftware);
    software.attention = resolve_attention(software, *gpu);
    const std::int64_t gpus = nodes * node.gpus;
    const double room = kFill * static_cast<double>(gpu->memory_mib) * 1024 * 1024;
    std::optional<TrainingPlan> best;
    for (std::int64_t tp = 1; tp <= node.gpus; tp *= 2) {
        for (std::int64_t pp = 1; pp <= std::min(max_pipeline, model.layers); ++pp) {
            const std::int64_t dp = gpus / (tp * pp);
            // Powers of two where the node is one (a rack of 72 GPUs is not).
            const bool odd = power_of_two(node.gpus) && !power_of_two(dp);
            if (model.layers % pp != 0 || gpus % (tp * pp) != 0 || dp < 2 || odd)
                continue;
            TrainingPlan plan;
            plan.layout.tp = tp;
            plan.layout.sequence_parallel = tp > 1;
            plan.layout.pp = pp;
            plan.layout.dp = dp;
            plan.layout.zero = 1;
            plan.sequence = model.max_positions > 0 ? std::min(kMaxSequence, model.max_positions) : kMaxSequence;
            plan.global_batch = plan.layout.dp * std::max<std::int64_t>(8, 4 * pp);
            plan.recompute = Recompute::selective;
            std::string field;
            if (!check_layout(model, plan, gpus, field).empty() || bytes_per_gpu(model, plan, software) > room)
                continue;
            if (!best || tp * pp <= best->layout.tp * best->layout.pp)
                best = plan;
        }
    }
    return best;
}

/// Short pipelines before long ones, powers of two of nodes before other counts.
std::optional<Start> start_on(const Architecture& model, const NodeSpec& node, std::int64_t max_nodes) {
    for (const std::int64_t max_pipeline : {16, 64}) {
        for (std::int64_t nodes = 1; nodes <= max_nodes; nodes *= 2) {
            if (const auto plan = plan_on(model, node, nodes, max_pipeline))
                return Start{&node, &model, nodes, *plan};
        }
        for (std::int64_t nodes = 1; nodes <= max_nodes; ++nodes) {
            if (const auto plan = plan_on(model, node, nodes, max_pipeline))
                return Start{&node, &model, nodes, *plan};
        }
    }
    return std::nullopt;
}

std::optional<Start> start_for(const std::string& name) {
    const Catalogue& catalogue = Catalogue::builtin();
    if (const NodeSpec* node = catalogue.find_node(name)) {
        for (const std::string_view model : kModels) {
            if (auto start = start_on(*find_architecture(model), *node, 1))
                return start;
        }
    } else if (const Architecture* model = find_architecture(name)) {
        for (const std::string_view preferred : kNodes) {
            const NodeSpec* candidate = catalogue.find_node(preferred);
            if (candidate == nullptr)
                continue;
            if (auto start = start_on(*model, *candidate, kMaxNodes))
                return start;
        }
    } else {
        std::vector<std::string> names;
        for (const NodeSpec& known : catalogue.nodes()) {
            if (known.gpu == name) {
                throw ScenarioError(
                    fmt::format("fabricast presets: `{}` is a GPU; name a node that carries it: {}", name, known.name));
            }
            names.push_back(known.name);
        }
        for (const Architecture& known : architectures())
            names.push_back(known.name);
        throw ScenarioError(fmt::format("fabricast presets: no node or model is called `{}`{}; known are {}", name,
                                        did_you_mean(name, names), listed(names)));
    }
    return std::nullopt;
}

class Yaml {
public:
    void line(const std::string& text, const std::string& comment = "") {
        text_ += comment.empty() ? text + "\n" : fmt::format("{:<{}}# {}\n", text, kCommentColumn, comment);
    }
    const std::string& text() const { return text_; }

private:
    static constexpr int kCommentColumn = 56;
    std::string text_;
};

std::string write(const Start& start) {
    const TrainingPlan& plan = start.plan;
    const Layout& layout = plan.layout;
    const std::int64_t gpus = start.nodes * start.node->gpus;
    const std::int64_t parameters = count_parameters(*start.model, start.model->vocab).total();
    Yaml y;
    y.line("# yaml-language-server: $schema=scenario.schema.json");
    y.line(
        "# The line above lets an editor complete keys; `fabricast schema > scenario.schema.json` writes the schema.");
    y.line("# Forecast it with `fabricast run FILE`; change one thing with `--set training.micro_batch=2`.");
    y.line("# The layout fits in memory: it is a place to start, not the best one.");
    y.line(fmt::format("name: {}-on-{}-{}", start.model->name, gpus, start.node->gpu));
    y.line("");
    y.line("cluster:");
    y.line(fmt::format("  nodes: {}", start.nodes), fmt::format("{} GPUs", gpus));
    y.line(fmt::format("  node: {{preset: {}}}", start.node->name), "any field may be overridden, as in nic: 200 Gb/s");
    y.line(fmt::format("  fabric: {{kind: {}, oversubscription: 1}}", Catalogue::builtin().fabrics().front().name),
           "or network: roce, file: topology.conf");
    y.line("");
    y.line(fmt::format("model: {{preset: {}}}", start.model->name),
           fmt::format("{:.2f} billion parameters", static_cast<double>(parameters) / 1e9));
    y.line("");
    y.line("training:");
    y.line(fmt::format("  sequence: {} tokens", plan.sequence));
    y.line(fmt::format("  global_batch: {} sequences", plan.global_batch),
           fmt::format("{} micro-batches a data-parallel rank", plan.micro_batches()));
    y.line(fmt::format("  micro_batch: {}", plan.micro_batch));
    y.line("  precision: bf16");
    y.line(fmt::format("  layout: {{tp: {}, sp: {}, pp: {}, dp: {}, zero: {}}}", layout.tp, layout.sequence_parallel,
                       layout.pp, layout.dp, layout.zero),
           fmt::format("tp x pp x dp = {} GPUs", gpus));
    y.line("  schedule: 1f1b");
    y.line("  recompute: selective", "none, selective or full");
    y.line("  overlap: {grad_reduce: true, param_gather: true}");
    y.line(fmt::format("  software: {}", kSoftware), "`fabricast presets` lists others");
    y.line("");
    y.line("run:");
    y.line("  tokens: 1 Ttokens", "of the whole run, for its days");
    y.line("  # price: 2.00 USD/GPU-h", "and its cost");
    y.line("");
    y.line("# comm: {library: nccl 2.28, env: {NCCL_ALGO: Ring}}");
    y.line("# expect: {mfu: [0.35, 0.60]}", "exit code 1 when the forecast is outside");
    y.line("seed: 1");
    return y.text();
}

}  // namespace

std::string starter_scenario(const std::string& name) {
    const std::optional<Start> start = start_for(name);
    if (!start)
        throw ScenarioError(fmt::format("fabricast presets: found no layout for `{}` that fits in memory", name));
    return write(*start);
}

}  // namespace fabricast::cli
