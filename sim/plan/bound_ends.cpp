// What of a step the bound finds outside the passes: optimizer, gathers, reductions, messages.
#include <algorithm>

#include "models/parallel/compiler.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "models/program/deciding_links.hpp"
#include "sim/plan/bound.hpp"

namespace fabricast::plan {
namespace {

// Where the groups of a layout lie.
std::vector<std::int64_t> place_key(const Layout& l) {
    std::vector<std::int64_t> key = {l.tp, l.cp, l.ep, l.etp, l.pp, l.dp, l.zero, l.shard_group};
    for (const char c : l.order)
        key.push_back(c);
    return key;
}

}  // namespace

double BoundBook::message_s(std::uint32_t from, std::uint32_t to, Bytes bytes) {
    const auto [at, fresh] = messages_.try_emplace({from, to, bytes}, 0);
    if (fresh && bytes > 0) {
        const CommModel::Message message = cluster_.comm().message(GpuId{from}, GpuId{to}, bytes);
        Rate rate = program::alone_rate(message.links, cluster_.cluster().links().capacity);
        if (message.cap > 0)
            rate = std::min(rate, message.cap);
        at->second = seconds(message.latency) + static_cast<double>(bytes) / bytes_per_s(rate);
    }
    return at->second;
}

// A call of a group alone: its activities side by side, each as if the others were not there.
double BoundBook::quickest_s(const CommGroup& group, Collective kind, Bytes bytes, std::map<LinkId, double>& load) {
    const CollectivePlan plan = cluster_.comm().plan(group, kind, bytes);
    const std::vector<Rate>& capacity = cluster_.cluster().links().capacity;
    double longest = 0;
    for (const PlannedActivity& activity : plan.activities) {
        const std::vector<LinkUse> uses = cluster_.comm().demand(group, kind, plan, activity.demand);
        Rate rate = program::alone_rate(uses, capacity);
        if (activity.cap > 0)
            rate = std::min(rate, activity.cap);
        const auto work = static_cast<double>(activity.work);
        longest = std::max(longest, work / bytes_per_s(rate));
        for (const LinkUse& use : uses)
            load[use.link] += work * static_cast<double>(use.coefficient) / static_cast<double>(kCoefficientOne) /
                              bytes_per_s(capacity[index(use.link)]);
    }
    return seconds(plan.latency) + longest;
}

// The template of the stage, with as few micro-batches as its schedule takes.
BoundBook::Ends BoundBook::measure_ends(const TrainingPlan& wanted, std::int64_t stage) {
    const Scenario& s = cluster_.scenario();
    TrainingPlan plan = wanted;
    const Layout& l = plan.layout;
    const std::int64_t m = l.schedule == Schedule::interleaved ? l.pp : 1;
    plan.micro_batch = 1;
    plan.global_batch = m * l.dp;
    plan.recompute = Recompute::none;
    plan.recompute_layers = 0;
    program::Program program;
    std::vector<CallInfo> calls;
    CostBook costs(cluster_.compute(), s.software, &cluster_.prices());
    const auto order =
        schedule_steps(l.schedule, stage, l.pp, l.vpp, m, overlaps_messages(l, s.software), s.software.forwards_first);
    build_stage(s.model, plan, s.software, stage, order, 1, {program, calls, costs});
    const program::Template& t = program.templates.back();
    const std::vector<std::int64_t> runs = program::executions(t);
    const auto in_pass = [&](const program::Operation& op) {
        const program::Phase phase = program.labels[op.label].phase;
        return op.kind == program::OpKind::compute &&
               (phase == program::Phase::forward || phase == program::Phase::backward ||
                phase == program::Phase::recompute);
    };
    std::vector<std::size_t> by_node;  // operations in program order
    for (const program::Node& node : t.nodes) {
        if (node.kind == program::Node::Kind::operation)
            by_node.push_back(node.operation);
    }
    std::size_t first = by_node.size(), last = 0;
    for (std::size_t n = 0; n < by_node.size(); ++n) {
        if (!in_pass(t.operations[by_node[n]]))
            continue;
        first = std::min(first, n);
        last = n;
    }
    std::vector<std::uint32_t> data = RankMap(l).data_group({0, 0, 0, stage});
    data.resize(std::min(static_cast<std::size_t>(dense_sharding(l).ranks), data.size()));
    std::vector<GpuId> gpus;
    for (const std::uint32_t rank : data)
        gpus.push_back(GpuId{rank});
    // Times of the data group's calls, and what they put on links, by how long each link needs for it.
    struct Known {
        double time = 0;
        std::map<LinkId, double> load;
        double calls = 0;
    };
    std::map<std::pair<Collective, Bytes>, Known> known;
    std::optional<CommGroup> group;
    const auto alone = [&](const program::Operation& op) {
        const CallInfo& call = calls[op.payload];
        const bool data_parallel = call.slot == Slot::parameter || call.slot == Slot::gradient;
        if (!data_parallel || gpus.size() < 2 || call.bytes == 0 || is_exchange(call.kind))
            return 0.0;
        if (!group)
            group = cluster_.comm().make_group(gpus);
        const auto [at, fresh] = known.try_emplace({call.kind, call.bytes});
        if (fresh)
            at->second.time = quickest_s(*group, call.kind, call.bytes, at->second.load);
        return at->second.time * call.share / 1000;
    };
    Ends out;
    bool together = false;  // reductions of one chunk: nothing but its passes between them
    for (std::size_t n = 0; n < by_node.size(); ++n) {
        const program::Operation& op = t.operations[by_node[n]];
        const auto times = static_cast<double>(runs[by_node[n]]);
        const bool before = n < first;
        const bool after = n > last;
        if (op.kind == program::OpKind::compute && !in_pass(op)) {
            const double work = times * seconds(costs.at(op.payload).work);
            out.other += work;
            out.before += before ? work : 0;
            out.after += after ? work : 0;
        }
        if (op.kind == program::OpKind::p2p_batch) {
            together = false;
            for (const program::MessageHalf& half : program.batches[op.payload].halves)
                out.message = std::max(out.message, half.bytes);
        }
        if (op.kind != program::OpKind::collective)
            continue;
        const program::Phase phase = program.labels[op.label].phase;
        const double time = alone(op);
        if (time == 0)
            continue;
        const CallInfo& call = calls[op.payload];
        known.at({call.kind, call.bytes}).calls += times * call.share / 1000;
        if (op.stream == 0) {
            out.before += before ? times * time : 0;
            out.after += after ? times * time : 0;
        } else if (phase == program::Phase::gather && l.zero < 3) {
            out.gathered += times * time;
        } else if (phase == program::Phase::reduce && !before) {
            if (!together)
                out.reduced.push_back(0);
            together = true;
            out.last_reduced = time;
            out.reduced.back() += times * time;
        }
    }
    std::map<LinkId, double> load;
    for (const auto& [call, one] : known) {
        for (const auto& [link, s_each] : one.load)
            load[link] += one.calls * s_each;
    }
    for (const auto& [link, s_all] : load)
        out.network = std::max(out.network, s_all);
    return out;
}

const BoundBook::Ends& BoundBook::ends(const TrainingPlan& plan, std::int64_t stage) {
    const Layout& l = plan.layout;
    const bool inside =
        stage > 0 && stage + 1 < l.pp && l.stage_layers.empty() && cluster_.scenario().model.moe.experts == 0;
    std::vector<std::int64_t> key = place_key(l);
    for (const std::int64_t layers : l.stage_layers)
        key.push_back(layers);
    key.insert(key.end(), {l.sequence_parallel, static_cast<std::int64_t>(plan.context), l.vpp,
                           static_cast<std::int64_t>(l.schedule), plan.overlap_grad_reduce, plan.overlap_param_gather,
                           inside ? 1 : stage});
    const auto known = ends_.find(key);
    return known != ends_.end() ? known->second
                                : ends_.emplace(std::move(key), measure_ends(plan, inside ? 1 : stage)).first->second;
}

}  // namespace fabricast::plan
