#include <fmt/format.h>

#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

OptimizerKind kind_from(const std::string& word) {
    for (const OptimizerKind kind : {OptimizerKind::adam_8bit, OptimizerKind::lion, OptimizerKind::sgd,
                                     OptimizerKind::sgd_momentum, OptimizerKind::adafactor, OptimizerKind::muon})
        if (word == optimizer_name(kind))
            return kind;
    return OptimizerKind::adam;  // and adamw: the decay costs nothing
}

StateType type_from(const std::string& word) {
    for (const StateType type : {StateType::none, StateType::bf16, StateType::fp16, StateType::fp8, StateType::int8})
        if (word == state_type_name(type))
            return type;
    return StateType::fp32;
}

/// none, cpu, or an error.
bool on_cpu(const Answer& answer, std::string_view path, Diagnostics& diagnostics) {
    if (answer.text == "nvme")
        diagnostics.error(answer.place, fmt::format("{}: offload to NVMe drives is not modelled; cpu is", path));
    return answer.text == "cpu";
}

void fill_offload(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    if (!answers.given("training.offload"))
        return;
    Offload& o = s.training.offload;
    o.parameters = on_cpu(answers.get("training.offload.parameters"), "training.offload.parameters", diagnostics);
    const Answer* fraction = answers.given("training.offload.fraction");
    if (on_cpu(answers.get("training.offload.optimizer"), "training.offload.optimizer", diagnostics))
        o.optimizer = fraction ? fraction->number : 1;
    else if (fraction)
        diagnostics.error(fraction->place, "training.offload.fraction: no optimizer is offloaded (optimizer: cpu)");
    o.overlap = answers.get("training.offload.overlap").flag;
    o.host_bytes_per_s =
        s.node.host_memory_bytes_per_s * s.software.host_update_share / static_cast<double>(s.node.gpus);
    if (s.node.cpu == "arm" && !answers.given("cluster.node.pcie"))
        s.notes.push_back(
            fmt::format("training.offload: copies of {} are counted over a link of {:.3g} GB/s; the chip-to-chip "
                        "link to Grace reaches 300-350 (450 nominal), which cluster.node.pcie can say",
                        s.node.name, s.gpu.pcie_bytes_per_s / 1e9));
    s.offload_where = answers.place("training.offload").text();
}

}  // namespace

void fill_optimizer(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    Optimizer& o = s.training.optimizer;
    const std::string& word = answers.get("training.optimizer.kind").text;
    o.kind = kind_from(word);
    const bool fp32 = s.training.precision == Precision::fp32;
    if (const Answer* master = answers.given("training.optimizer.master")) {
        o.master = type_from(master->text);
        if (fp32 && o.master != StateType::none)
            diagnostics.error(master->place,
                              "training.optimizer.master: weights are fp32 with training.precision fp32, there is no "
                              "copy of them; leave it out");
    }
    const bool one = o.kind == OptimizerKind::lion || o.kind == OptimizerKind::sgd_momentum;
    const bool two = o.kind == OptimizerKind::adam || o.kind == OptimizerKind::muon;
    const Answer* first = answers.given("training.optimizer.moments");
    const Answer* second = answers.given("training.optimizer.second_moment");
    if (first)
        o.first = o.second = type_from(first->text);
    if (second)
        o.second = type_from(second->text);
    if (first && o.kind == OptimizerKind::adam_8bit && o.first != StateType::int8)
        diagnostics.error(
            first->place,
            fmt::format("training.optimizer.moments: those of adam-8bit are int8; for {} write kind: adam",
                        first->text));
    else if (first && !one && !two && o.kind != OptimizerKind::adam_8bit)
        diagnostics.error(first->place,
                          fmt::format("training.optimizer.moments: {} keeps no moment whose type can be chosen", word));
    if (second && !two)
        diagnostics.error(second->place, fmt::format("training.optimizer.second_moment: {} has none", word));
    if (const Answer* block = answers.given("training.optimizer.block")) {
        o.block = block->integer;
        const bool used = o.kind == OptimizerKind::adam_8bit || ((one || two) && o.first == StateType::int8) ||
                          (two && o.second == StateType::int8);
        if (!used)
            diagnostics.error(block->place, "training.optimizer.block: only int8 moments have blocks");
    } else if (o.kind == OptimizerKind::adam_8bit) {
        o.block = answers.get("training.optimizer.block").integer;
    }
    if (const Answer* iterations = answers.given("training.optimizer.newton_schulz")) {
        o.iterations = iterations->integer;
        if (o.kind != OptimizerKind::muon)
            diagnostics.error(iterations->place,
                              fmt::format("training.optimizer.newton_schulz: {} has no such iterations", word));
    } else if (o.kind == OptimizerKind::muon) {
        o.iterations = answers.get("training.optimizer.newton_schulz").integer;
    }
    fill_offload(answers, s, diagnostics);
    if (o.kind == OptimizerKind::muon && s.training.layout.tp > 1)
        s.notes.push_back(
            fmt::format("training.optimizer: muon orthogonalises each of the tp {} parts of a matrix by "
                        "itself (Megatron-Core's blockwise mode)",
                        s.training.layout.tp));
}

}  // namespace fabricast
