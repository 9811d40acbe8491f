#include "sim/plan/bound.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "models/compute/spread.hpp"
#include "models/parallel/compiler.hpp"
#include "models/parallel/memory.hpp"
#include "models/parallel/placement.hpp"
#include "models/parallel/ranks.hpp"
#include "models/program/deciding_links.hpp"
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
    return {fmt::format(
        "the slowest GPU is in a stage with {:.1f} % or more of the most work of a stage ({:.0f} % of the most in "
        "passes, for schedules that split the backward pass)",
        kNearlyTied * 100, kNearBusiest * 100)};
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

namespace {

/// What of an operation's time the bound counts.
struct Timed {
    double compute = 0, traffic = 0;
    double beside = 0;                       ///< compute while a message waits or moves
    bool forward = false, backward = false;  ///< of a pass
};

// The quickest forward and backward pass of a template: operations wait for each other, but not for other passes.
BoundBook::Pass quickest_passes(const program::Template& t, const std::vector<Timed>& timed, double slow, bool beside) {
    BoundBook::Pass out{-1, -1};
    std::vector<double> stream(t.streams, 0), end(t.nodes.size(), 0);
    bool open = false, forward = false;
    const auto close = [&] {
        double& least = forward ? out.forward : out.backward;
        if (open && (least < 0 || stream[0] < least))
            least = stream[0];
        open = false;
    };
    for (std::size_t n = 0; n < t.nodes.size(); ++n) {
        if (t.nodes[n].kind != program::Node::Kind::operation)
            continue;
        const program::Operation& op = t.operations[t.nodes[n].operation];
        const Timed& time = timed[t.nodes[n].operation];
        if (op.kind == program::OpKind::p2p_batch)
            close();
        if (!time.forward && !time.backward)
            continue;
        if (!open || forward != time.forward) {
            close();
            open = true;
            forward = time.forward;
            std::fill(stream.begin(), stream.end(), 0);
            std::fill(end.begin(), end.end(), 0);
        }
        double begin = stream[op.stream];
        for (const std::uint32_t wait : op.waits)
            begin = std::max(begin, end[wait]);
        end[n] = stream[op.stream] = begin + slow * (beside ? time.beside : time.compute) + time.traffic;
    }
    close();
    return {std::max(out.forward, 0.0), std::max(out.backward, 0.0)};
}

}  // namespace

// One stage of a pipeline of single layers, with one micro-batch and with two.
BoundBook::Piece BoundBook::measure(const TrainingPlan& narrow, std::int64_t stage) {
    const Scenario& s = cluster_.scenario();
    struct Sums {
        double forward = 0, backward = 0, recompute = 0, tp = 0;
    } sums[2];
    Piece out;
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
        std::vector<Timed> timed(runs.size());
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const program::Operation& op = t.operations[i];
            const auto times = static_cast<double>(runs[i]);
            const program::Phase phase = program.labels[op.label].phase;
            const bool again = phase == program::Phase::recompute;
            timed[i].forward = phase == program::Phase::forward;
            timed[i].backward = again || phase == program::Phase::backward;
            if (!timed[i].forward && !timed[i].backward)
                continue;
            if (op.kind == program::OpKind::compute) {
                const program::CostClass& cost = costs.at(op.payload);
                const double repeated = seconds(cost.parts[static_cast<std::size_t>(Account::recompute)]);
                const double work = seconds(cost.work);
                timed[i].compute = work;
                const std::uint32_t speed = *std::max_element(cost.speed.begin() + 1, cost.speed.end());
                timed[i].beside = work * program::kFullSpeed / speed;
                sums[n].recompute += times * (again ? work : repeated);
                (timed[i].forward ? sums[n].forward : sums[n].backward) += again ? 0 : times * (work - repeated);
            } else if (op.kind == program::OpKind::collective && calls[op.payload].slot == Slot::tp &&
                       tp_is_first(plan.layout)) {
                const CallInfo& call = calls[op.payload];
                timed[i].traffic = alone_s(call.kind, members, call.bytes) * call.share / 1000;
                sums[n].tp += op.stream == 0 ? times * timed[i].traffic : 0;
            }
        }
        if (n == 1) {
            out.nominal = quickest_passes(t, timed, 1, false);
            out.slow = quickest_passes(t, timed, slowest(), false);
            out.nominal_beside = quickest_passes(t, timed, 1, true);
            out.slow_beside = quickest_passes(t, timed, slowest(), true);
        }
    }
    out.forward = sums[1].forward - sums[0].forward;
    out.backward = sums[1].backward - sums[0].backward;
    out.recompute = sums[1].recompute - sums[0].recompute;
    out.each_tp = sums[1].tp - sums[0].tp;
    const auto whole = [](const Sums& x) { return x.forward + x.backward + x.recompute; };
    out.once = 2 * whole(sums[0]) - whole(sums[1]);
    out.once_tp = 2 * sums[0].tp - sums[1].tp;
    return out;
}

void BoundBook::Piece::add(const Piece& other) {
    once += other.once;
    forward += other.forward;
    backward += other.backward;
    recompute += other.recompute;
    once_tp += other.once_tp;
    each_tp += other.each_tp;
    nominal.add(other.nominal);
    slow.add(other.slow);
    nominal_beside.add(other.nominal_beside);
    slow_beside.add(other.slow_beside);
}

double BoundBook::slowest() const {
    const Scenario& s = cluster_.scenario();
    return s.gpu_draw_each ? 1.0 : expected_slowest(s.gpu_spread, cluster_.gpus()) / 65536.0;
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

const PassLists& BoundBook::lists(const TrainingPlan& plan) {
    const Layout& l = plan.layout;
    std::vector<std::int64_t> key = {static_cast<std::int64_t>(l.schedule), l.pp, l.vpp, plan.micro_batches()};
    if (!lists_ || lists_of_ != key) {
        const SoftwareFeatures& software = cluster_.scenario().software;
        lists_.emplace(l.schedule, l.pp, l.vpp, plan.micro_batches(), overlaps_messages(l, software),
                       software.forwards_first);
        lists_of_ = std::move(key);
    }
    return *lists_;
}

double BoundBook::path_s(const TrainingPlan& plan, const Work& work, std::size_t slow_stage) {
    const Layout& l = plan.layout;
    const auto stages = static_cast<std::size_t>(l.pp);
    const RankMap map(l);
    PassTimes times;
    for (std::size_t s = 0; s < stages; ++s) {
        std::vector<PassTimes::Chunk>& chunks = times.chunks.emplace_back();
        for (const Piece& w : work[s]) {
            const Pass& pass = s == slow_stage ? w.slow : w.nominal;
            const Pass& beside = s == slow_stage ? w.slow_beside : w.nominal_beside;
            chunks.push_back({pass.forward, pass.backward, beside.forward, beside.backward});
        }
        const auto stage = static_cast<std::int64_t>(s);
        const Ends& e = ends(plan, stage);
        times.start.push_back(e.before);
        // Some stacks gather the first chunk beside the update of the others.
        times.whole.push_back(e.gathered + (cluster_.scenario().software.gathers_beside_update ? 0 : e.before));
        if (stages == 1)
            continue;
        const std::uint32_t here = map.rank({0, 0, 0, stage}), below = map.rank({0, 0, 0, (stage + 1) % l.pp}),
                            above = map.rank({0, 0, 0, (stage + l.pp - 1) % l.pp});
        times.message_down.push_back(message_s(here, below, plan.micro_batch * e.message));
        times.message_up.push_back(message_s(here, above, plan.micro_batch * e.message));
    }
    times.message_down.resize(stages);
    times.message_up.resize(stages);
    const PassPath path = longest_path(lists(plan), times);
    double bound = *std::max_element(path.end.begin(), path.end.end());
    const Ends& e = ends(plan, 0);
    bound = std::max(bound, path.end[0] + e.after + e.last_reduced);
    const std::size_t chunks = path.last_backward.size();
    double reduced = 0;
    for (std::size_t c = 0; c < chunks && e.reduced.size() == chunks; ++c) {  // chunk 0 goes last
        reduced += e.reduced[chunks - 1 - c];
        bound = std::max(bound, path.last_backward[c] + reduced + e.after);
    }
    return bound;
}

double BoundBook::step_s(const TrainingPlan& plan) {
    const Scenario& s = cluster_.scenario();
    const Layout& l = plan.layout;
    if (s.model.layers < 3)
        return 0;
    const Pieces& layer = pieces(plan);
    const auto m = static_cast<double>(plan.micro_batches()) / static_cast<double>(copies_in_pipeline(l));
    const auto stages = static_cast<std::size_t>(l.pp);
    Work work(stages);
    std::vector<double> compute(stages, 0), all, traffic(stages, 0);
    const bool meets = meets_every_step(plan);
    const double rounds = l.schedule == Schedule::interleaved ? m / static_cast<double>(l.pp) : m;  // of Ends
    for (std::size_t stage = 0; stage < stages; ++stage) {
        const auto number = static_cast<std::int64_t>(stage);
        for (std::int64_t chunk = 0; chunk < chunks_held(l); ++chunk) {
            const std::int64_t v = virtual_stage(l.schedule, l.pp, number, chunk);
            const std::int64_t from = first_layer_of(s.model, l, v);
            Piece& w = work[stage].emplace_back();
            for (std::int64_t i = from; i < from + layers_of(s.model, l, v); ++i)
                w.add(layer[static_cast<std::size_t>(i)]);
            compute[stage] += w.once + m * (w.forward + w.backward + w.recompute);
            traffic[stage] += w.once_tp + m * w.each_tp;
        }
        all.push_back(compute[stage] + (meets ? ends(plan, number).other : 0));
    }
    // ZeRO-3 without keeping gathers and reduces in every pass; else once a step.
    const bool every = l.zero == 3 && plan.reshard_after_forward;
    double bound = 0;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        bound = std::max(bound, compute[stage] + traffic[stage]);
        if (meets && tp_is_first(l))
            bound = std::max(bound, ends(plan, static_cast<std::int64_t>(stage)).network * (every ? rounds : 1));
    }
    const double busiest = *std::max_element(all.begin(), all.end()), near = meets ? kNearlyTied : kNearBusiest;
    double slowed = 0, before = -1;
    for (std::size_t stage = 0; stage < stages; ++stage) {
        if (all[stage] < near * busiest || all[stage] == before)  // of equal ones the first is slow
            continue;
        before = all[stage];
        const double here = meets ? path_s(plan, work, stage) : slowest() * compute[stage] + traffic[stage];
        slowed = slowed == 0 ? here : std::min(slowed, here);
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
