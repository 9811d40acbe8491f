#include "sim/plan/bound.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/compute/spread.hpp"
#include "models/parallel/compiler.hpp"
#include "models/parallel/memory.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "sim/step/collective_time.hpp"

namespace fabricast::plan {
namespace {

constexpr double kSlack = 1e-6;  // picoseconds are rounded a segment at a time

// The tp group of rank 0 is ranks 0 .. tp - 1, whatever else the layout is.
bool tp_is_first(const Layout& l) { return l.order.starts_with("tp"); }

bool meets_every_step(const TrainingPlan& plan) {
    const Schedule s = plan.layout.schedule;
    return plan.clip_gradients && (s == Schedule::gpipe || s == Schedule::one_f_one_b || s == Schedule::interleaved);
}

}  // namespace

std::vector<std::string> bound_assumptions() {
    return {fmt::format("gathers of ZeRO-3 take {:.0f} % or more of the time of one gather of all their bytes",
                        kGatherSlack * 100),
            fmt::format("the slowest GPU is in a stage with {:.0f} % or more of the most compute of a stage",
                        kNearBusiest * 100)};
}

double BoundBook::alone_s(Collective kind, const std::vector<std::uint32_t>& members, Bytes bytes) {
    if (members.size() < 2 || bytes == 0)
        return 0;
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(kind), bytes};
    key.insert(key.end(), members.begin(), members.end());
    const auto [at, fresh] = alone_.try_emplace(std::move(key), 0);
    if (fresh)
        at->second = seconds(
            time_collective(cluster_.cluster(), cluster_.comm(), {.kind = kind, .members = members}, bytes).time);
    return at->second;
}

// One stage of a pipeline of single layers, with one micro-batch and with two.
BoundBook::Piece BoundBook::measure(const TrainingPlan& narrow, std::int64_t stage) {
    const Scenario& s = cluster_.scenario();
    struct Sums {
        double forward = 0, backward = 0, recompute = 0, forward_tp = 0, tp = 0;
    } sums[2];
    std::vector<std::uint32_t> members(static_cast<std::size_t>(narrow.layout.tp));
    for (std::size_t i = 0; i < members.size(); ++i)
        members[i] = static_cast<std::uint32_t>(i);
    for (int n = 0; n < 2; ++n) {
        TrainingPlan plan = narrow;
        plan.global_batch = (n + 1) * plan.micro_batch * plan.layout.dp;
        program::Program program;
        std::vector<CallInfo> calls;
        CostBook costs(cluster_.compute(), s.software, &cluster_.prices());
        const auto order = schedule_steps(plan.layout.schedule, stage, plan.layout.pp, 1, n + 1,
                                          overlaps_messages(plan.layout, s.software), s.software.forwards_first);
        build_stage(s.model, plan, s.software, stage, order, 1, {program, calls, costs});
        const program::Template& t = program.templates.back();
        const std::vector<std::int64_t> runs = program::executions(t);
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const program::Operation& op = t.operations[i];
            const auto times = static_cast<double>(runs[i]);
            const program::Phase phase = program.labels[op.label].phase;
            const bool forward = phase == program::Phase::forward, backward = phase == program::Phase::backward,
                       again = phase == program::Phase::recompute;
            if (!forward && !backward && !again)
                continue;
            if (op.kind == program::OpKind::compute) {
                const program::CostClass& cost = costs.at(op.payload);
                const double repeated = seconds(cost.parts[static_cast<std::size_t>(Account::recompute)]);
                const double work = seconds(cost.work);
                sums[n].recompute += times * (again ? work : repeated);
                (forward ? sums[n].forward : sums[n].backward) += again ? 0 : times * (work - repeated);
            } else if (op.kind == program::OpKind::collective && op.stream == 0 && calls[op.payload].slot == Slot::tp &&
                       tp_is_first(plan.layout)) {
                const CallInfo& call = calls[op.payload];
                const double time = times * alone_s(call.kind, members, call.bytes) * call.share / 1000;
                sums[n].tp += time;
                sums[n].forward_tp += forward ? time : 0;
            }
        }
    }
    Piece out;
    out.forward = sums[1].forward - sums[0].forward;
    out.backward = sums[1].backward - sums[0].backward;
    out.recompute = sums[1].recompute - sums[0].recompute;
    out.each_tp = sums[1].tp - sums[0].tp;
    out.forward_tp = sums[1].forward_tp - sums[0].forward_tp;
    const auto whole = [](const Sums& x) { return x.forward + x.backward + x.recompute; };
    out.once = 2 * whole(sums[0]) - whole(sums[1]);
    out.once_tp = 2 * sums[0].tp - sums[1].tp;
    return out;
}

BoundBook::Pieces BoundBook::make_pieces(const TrainingPlan& plan) {
    const Architecture& a = cluster_.scenario().model;
    TrainingPlan narrow = plan;
    Layout& l = narrow.layout;
    l.schedule = splits_backward(l.schedule) ? Schedule::zb_h1 : Schedule::one_f_one_b;
    l.pp = a.layers;
    l.vpp = 1;
    l.stage_layers.clear();
    l.dp = l.zero == 3 ? 2 * l.ep : l.ep;
    l.shard_group = 0;
    l.zero = l.zero == 3 ? 3 : 0;
    narrow.overlap_grad_reduce = narrow.overlap_param_gather = false;
    if (narrow.recompute_layers > 0)  // not every layer of a chunk
        narrow.recompute = Recompute::none;
    narrow.recompute_layers = 0;
    Pieces out(static_cast<std::size_t>(a.layers));
    std::vector<std::pair<LayerShape, std::size_t>> known;
    for (std::int64_t layer = 0; layer < a.layers; ++layer) {
        const auto at = static_cast<std::size_t>(layer);
        const LayerShape shape = layer_shape(a, layer);
        const bool inside = layer > 0 && layer + 1 < a.layers;
        const auto same = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == shape; });
        if (inside && same != known.end()) {
            out[at] = out[same->second];
            continue;
        }
        out[at] = measure(narrow, layer);
        if (inside)
            known.emplace_back(shape, at);
    }
    return out;
}

const BoundBook::Pieces& BoundBook::pieces(const TrainingPlan& plan) {
    const Layout& l = plan.layout;
    const Key key = {l.tp,
                     l.sequence_parallel,
                     l.cp,
                     static_cast<std::int64_t>(plan.context),
                     l.ep,
                     plan.micro_batch,
                     static_cast<std::int64_t>(plan.recompute),
                     splits_backward(l.schedule),
                     l.zero == 3,
                     tp_is_first(l)};
    const auto [at, fresh] = pieces_.try_emplace(key);
    if (fresh)
        at->second = make_pieces(plan);
    return at->second;
}

double BoundBook::gather_s(const TrainingPlan& plan, std::int64_t stage) {
    const Layout& l = plan.layout;
    const Architecture& a = cluster_.scenario().model;
    if (l.zero != 3 || !l.order.starts_with("tp"))
        return 0;
    std::vector<std::uint32_t> members = RankMap(l).data_group({0, 0, 0, stage});
    members.resize(std::min(members.size(), static_cast<std::size_t>(dense_sharding(l).ranks)));
    std::int64_t parameters = 0;
    for (const Held& layer : stage_parameters(a, l, stage).layers)
        parameters += layer.dense;
    const bool narrow = plan.precision == Precision::fp8 || plan.compression.parameters != Compression::none;
    const double one = kGatherSlack * alone_s(Collective::all_gather, members, (narrow ? 1 : 2) * parameters);
    return plan.reshard_after_forward ? 2 * static_cast<double>(plan.micro_batches()) * one : one;
}

double BoundBook::step_s(const TrainingPlan& plan) {
    const Scenario& s = cluster_.scenario();
    const Layout& l = plan.layout;
    if (s.model.layers < 3)
        return 0;
    const Pieces& layer = pieces(plan);
    const auto m = static_cast<double>(plan.micro_batches()) / static_cast<double>(copies_in_pipeline(l));
    const auto stages = static_cast<std::size_t>(l.pp);
    std::vector<double> compute(stages, 0), traffic(stages, 0), through(stages, 0);
    for (std::size_t stage = 0; stage < stages; ++stage) {
        for (std::int64_t chunk = 0; chunk < chunks_held(l); ++chunk) {
            const std::int64_t v = virtual_stage(l.schedule, l.pp, static_cast<std::int64_t>(stage), chunk);
            const std::int64_t from = first_layer_of(s.model, l, v);
            for (std::int64_t i = from; i < from + layers_of(s.model, l, v); ++i) {
                const Piece& p = layer[static_cast<std::size_t>(i)];
                compute[stage] += p.once + m * (p.forward + p.backward + p.recompute);
                traffic[stage] += p.once_tp + m * p.each_tp;
                if (chunk == 0)
                    through[stage] += p.forward + p.backward + p.forward_tp;
            }
        }
    }
    const double busiest = *std::max_element(compute.begin(), compute.end());
    const double slow = s.gpu_draw_each ? 1.0 : expected_slowest(s.gpu_spread, l.world()) / 65536.0;
    double bound = 0, slowed = 0, fill = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        const double rest = traffic[stage] + fill, gather = gather_s(plan, static_cast<std::int64_t>(stage));
        bound = std::max({bound, compute[stage] + rest, gather});
        if (compute[stage] >= kNearBusiest * busiest) {
            const double here = slow * compute[stage] + rest;
            slowed = slowed == 0 ? here : std::min(slowed, here);
        }
        fill += meets_every_step(plan) ? through[stage] : 0;
    }
    return std::max(bound, slowed) * (1 - kSlack);
}

Bytes BoundBook::memory(const TrainingPlan& plan) const {
    const Scenario& s = cluster_.scenario();
    Bytes most = 0;
    for (std::int64_t stage = 0; stage < plan.layout.pp; ++stage) {
        if (stage > 1 && stage + 1 < plan.layout.pp && s.model.moe.experts == 0)
            continue;
        program::Template t;
        set_base_memory(t, s.model, plan, s.software, s.gpu, stage, stage_parameters(s.model, plan.layout, stage));
        Bytes held = 0;
        for (const MemoryCause cause : {MemoryCause::weights, MemoryCause::gradients, MemoryCause::optimizer})
            held += t.base_memory[static_cast<std::size_t>(cause)];
        most = std::max(most, held);
    }
    return most;
}

}  // namespace fabricast::plan
