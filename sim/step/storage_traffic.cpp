#include "sim/step/storage_traffic.hpp"

#include <algorithm>
#include <stdexcept>

#include "sim/step/forecast.hpp"
#include "topologies/builders/storage.hpp"

namespace fabricast {
namespace {

using program::Node;
using program::Operation;
using program::Program;
using program::Template;

constexpr double kPartOfStep = 0.98;
constexpr int kSteps = 8;  // the first writes meet a network that has not settled

/// An operation at the beginning of the step, on a stream of its own: it waits for the end of the step before.
void write_in_each_step(Template& t, Operation op) {
    op.stream = t.streams++;
    Node node;
    node.operation = static_cast<std::uint32_t>(t.operations.size());
    node.end = 2;
    for (Operation& other : t.operations)
        for (std::uint32_t& wait : other.waits)
            ++wait;  // the root is no operation: all are behind the new one
    t.operations.push_back(std::move(op));
    for (Node& other : t.nodes)
        ++other.end;
    for (std::uint32_t n = 1; n < t.nodes.size(); ++n) {
        const Node& other = t.nodes[n];
        if (other.kind == Node::Kind::operation && t.operations[other.operation].kind == program::OpKind::step_end)
            t.operations.back().waits = {n + 1};
    }
    t.nodes.insert(t.nodes.begin() + 1, node);
}

void add_writes(const Cluster& cluster, const Storage& storage, Bytes of_rank, Program& p) {
    p.names.emplace_back("save");
    program::Label label;
    label.name = static_cast<std::uint32_t>(p.names.size() - 1);
    label.account = Account::checkpoint;
    label.phase = program::Phase::save;
    p.labels.push_back(label);
    const auto slot = static_cast<std::uint16_t>(p.ranks.front().transfer_routes.size());
    p.transfers.push_back({slot, of_rank});
    for (std::uint32_t rank = 0; rank < p.ranks.size(); ++rank) {
        std::vector<LinkId> links;
        append_write(cluster, storage, GpuId{rank}, links);
        std::vector<LinkUse> uses;
        for (const LinkId link : links)
            uses.push_back({link, kCoefficientOne});
        p.ranks[rank].transfer_routes.push_back(static_cast<std::uint32_t>(p.routes.size()));
        p.routes.push_back({0, static_cast<std::uint32_t>(p.demands.size()), 0, false, false});
        p.demands.push_back(std::move(uses));
    }
    Operation op;
    op.kind = program::OpKind::transfer;
    op.payload = static_cast<std::uint32_t>(p.transfers.size() - 1);
    op.label = static_cast<std::uint32_t>(p.labels.size() - 1);
    for (Template& t : p.templates)
        write_in_each_step(t, op);
    if (const std::string broken = program::validate(p); !broken.empty())
        throw std::logic_error("program with a save: " + broken);
}

}  // namespace

SavingStep step_while_saving(const Scenario& s, double bytes, Picoseconds healthy, bool fold) {
    const RunPlan::Checkpoint& c = s.run.checkpoint;
    BuiltStep built = build_step(s, build_compute(s), kSteps);
    if (built.cluster.nics_per_node() == 0 || bytes <= 0)
        return {};
    SavingStep saving;
    saving.bytes = std::min(bytes, kPartOfStep * c.write_bytes_per_s * seconds(healthy));
    const auto of_rank = static_cast<Bytes>(saving.bytes / static_cast<double>(built.compiled.program.ranks.size()));
    const Storage storage = attach_storage(built.cluster, c.write_bytes_per_s, c.read_bytes_per_s);
    add_writes(built.cluster, storage, of_rank, built.compiled.program);
    engine::EngineOptions options;
    options.quantum = s.quantum;
    const StepRun run = run_program(built.compiled.program, storage.capacity, fold, options);
    if (run.engine.outcome != engine::Outcome::done)
        throw std::logic_error("step with a save: " + run.engine.message);
    saving.step = std::max(run.engine.period, healthy);
    return saving;
}

}  // namespace fabricast
