#include "sim/plan/space.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "models/parallel/placement.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::plan {
namespace {

constexpr std::int64_t kMostStages = 64, kLongSequence = 16384, kMostContext = 16;

std::size_t at(Dimension d) { return static_cast<std::size_t>(d); }

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
    std::vector<std::int64_t> out;
    for (std::int64_t n = 1; n <= most; n *= 2)
        out.push_back(n);
    return out;
}

template <typename T>
std::vector<T> or_default(const std::vector<T>& given, std::vector<T> usual) {
    return given.empty() ? std::move(usual) : given;
}

// Without repetitions, in the given order.
template <typename T>
void distinct(std::vector<T>& values) {
    std::vector<T> out;
    for (const T& value : values) {
        if (std::find(out.begin(), out.end(), value) == out.end())
            out.push_back(value);
    }
    values = std::move(out);
}

bool overlaps_gradients(const std::string& word) { return word == "gradients" || word == "both"; }
bool overlaps_parameters(const std::string& word) { return word == "parameters" || word == "both"; }

std::string overlap_word(const TrainingPlan& p) {
    return p.overlap_grad_reduce ? (p.overlap_param_gather ? "both" : "gradients")
                                 : (p.overlap_param_gather ? "parameters" : "none");
}

}  // namespace

std::string_view dimension_name(Dimension dimension) {
    constexpr std::string_view kNames[kDimensions] = {
        "cluster",  "tp",    "sp",          "cp",   "cp exchange", "ep",        "pp",      "vpp",
        "schedule", "batch", "micro-batch", "zero", "shard group", "recompute", "overlap", "order"};
    return kNames[at(dimension)];
}

std::vector<std::int64_t> light_ends(std::int64_t layers, std::int64_t chunks) {
    if (layers % chunks == 0 || chunks < 3 || (layers + 2) % chunks != 0 || (layers + 2) / chunks < 2)
        return {};
    std::vector<std::int64_t> out(static_cast<std::size_t>(chunks), (layers + 2) / chunks);
    --out.front();
    --out.back();
    return out;
}

PlanSpace::PlanSpace(const PlanSpec& spec, const std::vector<std::unique_ptr<PlanCluster>>& clusters)
    : clusters_(clusters) {
    const Scenario& s = clusters.front()->scenario();
    std::int64_t domain = 1, most = 1;
    for (const auto& cluster : clusters) {
        domain = std::max(domain, cluster->nvlink_domain());
        most = std::max(most, cluster->gpus());
    }
    const std::int64_t layers = s.model.layers;
    tp_ = or_default(spec.tp, powers_of_two(std::min(domain, s.model.heads)));
    cp_ = or_default(spec.cp,
                     s.training.sequence < kLongSequence ? std::vector<std::int64_t>{1} : powers_of_two(kMostContext));
    std::vector<std::int64_t> stages;
    for (std::int64_t pp = 1; pp <= std::min({kMostStages, layers, most}); ++pp) {
        if (layers % pp == 0 || !light_ends(layers, pp).empty())
            stages.push_back(pp);
    }
    pp_ = or_default(spec.pp, stages);
    vpp_ = or_default(spec.vpp, {1, 2, 3, 4, 6, 8});
    std::vector<std::int64_t> experts = {1};
    for (std::int64_t ep = 2; s.model.moe.experts > 0 && ep <= s.model.moe.experts; ep *= 2) {
        if (s.model.moe.experts % ep == 0)
            experts.push_back(ep);
    }
    ep_ = or_default(spec.ep, experts);
    schedule_ = or_default(spec.schedule, {Schedule::one_f_one_b, Schedule::interleaved});
    global_ = or_default(spec.global_batch, {s.training.global_batch});
    micro_ = or_default(spec.micro_batch, {1, 2, 4, 8});
    zero_ = or_default(spec.zero, {1, 3});
    shard_ = or_default(spec.shard_group, {0});
    recompute_ = or_default(spec.recompute, {Recompute::none, Recompute::selective, Recompute::full});
    overlap_ = or_default(spec.overlap, {"both"});
    order_ = or_default(spec.order, {s.training.layout.order});
    context_ = or_default(spec.context, {s.training.context});
    sp_ = or_default(spec.sp, {true});
    if (s.layout_given)
        add_own(s.training, spec);
    for (std::vector<std::int64_t>* list : {&tp_, &cp_, &pp_, &vpp_, &ep_, &global_, &micro_, &zero_, &shard_})
        distinct(*list);
    distinct(schedule_);
    distinct(recompute_);
    distinct(overlap_);
    distinct(order_);
    const std::size_t counts[kDimensions] = {clusters.size(),  tp_.size(),        sp_.size(),      cp_.size(),
                                             context_.size(),  ep_.size(),        pp_.size(),      vpp_.size(),
                                             schedule_.size(), global_.size(),    micro_.size(),   zero_.size(),
                                             shard_.size(),    recompute_.size(), overlap_.size(), order_.size()};
    const auto plain = std::find_if(schedule_.begin(), schedule_.end(), [](Schedule schedule) {
        return schedule == Schedule::one_f_one_b || schedule == Schedule::gpipe;
    });
    plain_schedule_ = plain == schedule_.end() ? 0 : static_cast<std::uint32_t>(plain - schedule_.begin());
    one_chunk_ = static_cast<std::uint32_t>(std::find(vpp_.begin(), vpp_.end(), 1) - vpp_.begin());
    size_ = 1;
    for (std::size_t d = 0; d < kDimensions; ++d) {
        counts_[d] = static_cast<std::uint32_t>(counts[d]);
        size_ *= counts[d];
    }
}

// The layout of the scenario is among the others, unless `plan:` says which values there are.
void PlanSpace::add_own(const TrainingPlan& p, const PlanSpec& spec) {
    const Layout& l = p.layout;
    const auto add = [](auto& list, const auto& given, const auto& value) {
        if (given.empty() && std::find(list.begin(), list.end(), value) == list.end())
            list.push_back(value);
    };
    add(tp_, spec.tp, l.tp);
    add(sp_, spec.sp, l.sequence_parallel || l.tp == 1);
    add(cp_, spec.cp, l.cp);
    add(pp_, spec.pp, l.pp);
    add(vpp_, spec.vpp, l.vpp);
    add(ep_, spec.ep, l.ep);
    add(schedule_, spec.schedule, l.schedule);
    add(micro_, spec.micro_batch, p.micro_batch);
    add(zero_, spec.zero, std::int64_t{l.zero});
    add(shard_, spec.shard_group, l.shard_group);
    add(recompute_, spec.recompute, p.recompute);
    add(overlap_, spec.overlap, overlap_word(p));
}

Choice PlanSpace::at(std::uint64_t index) const {
    Choice out = {};
    for (std::size_t d = kDimensions; d-- > 0;) {
        out[d] = static_cast<std::uint32_t>(index % counts_[d]);
        index /= counts_[d];
    }
    return out;
}

std::uint64_t PlanSpace::index_of(const Choice& choice) const {
    std::uint64_t out = 0;
    for (std::size_t d = 0; d < kDimensions; ++d)
        out = out * counts_[d] + choice[d];
    return out;
}

std::string PlanSpace::value_text(Dimension dimension, std::uint32_t v) const {
    switch (dimension) {
        case Dimension::cluster: {
            const Scenario& s = clusters_[v]->scenario();
            std::string text = fmt::format("{} x {}", clusters_[v]->gpus(), s.gpu.name);
            for (const std::string& change : clusters_[v]->changes()) {
                if (!change.starts_with("cluster.node"))  // nodes and node are said
                    text += ", " + change.substr(change.rfind('.', change.find('=')) + 1);
            }
            return text;
        }
        case Dimension::tp: return std::to_string(tp_[v]);
        case Dimension::sp: return sp_[v] ? "on" : "off";
        case Dimension::cp: return std::to_string(cp_[v]);
        case Dimension::context: return std::string(context_exchange_name(context_[v]));
        case Dimension::ep: return std::to_string(ep_[v]);
        case Dimension::pp: return std::to_string(pp_[v]);
        case Dimension::vpp: return std::to_string(vpp_[v]);
        case Dimension::schedule: return std::string(schedule_name(schedule_[v]));
        case Dimension::global_batch: return std::to_string(global_[v]);
        case Dimension::micro_batch: return std::to_string(micro_[v]);
        case Dimension::zero: return std::to_string(zero_[v]);
        case Dimension::shard_group: return std::to_string(shard_[v]);
        case Dimension::recompute: return std::string(recompute_name(recompute_[v]));
        case Dimension::overlap: return overlap_[v];
        case Dimension::order: return order_[v];
        case Dimension::count: break;
    }
    return {};
}

TrainingPlan PlanSpace::raw(const Choice& c) const {
    const auto of = [&](Dimension d) { return c[plan::at(d)]; };
    TrainingPlan p = clusters_[c[0]]->scenario().training;
    Layout& l = p.layout;
    l.tp = tp_[of(Dimension::tp)];
    l.sequence_parallel = sp_[of(Dimension::sp)] && l.tp > 1;
    l.cp = cp_[of(Dimension::cp)];
    p.context = context_[of(Dimension::context)];
    l.ep = ep_[of(Dimension::ep)];
    l.pp = pp_[of(Dimension::pp)];
    l.vpp = vpp_[of(Dimension::vpp)];
    l.schedule = schedule_[of(Dimension::schedule)];
    p.global_batch = global_[of(Dimension::global_batch)];
    p.micro_batch = micro_[of(Dimension::micro_batch)];
    l.zero = static_cast<int>(zero_[of(Dimension::zero)]);
    l.shard_group = shard_[of(Dimension::shard_group)];
    p.recompute = recompute_[of(Dimension::recompute)];
    if (p.recompute == Recompute::none)
        p.recompute_layers = 0;
    p.overlap_grad_reduce = overlaps_gradients(overlap_[of(Dimension::overlap)]);
    p.overlap_param_gather = overlaps_parameters(overlap_[of(Dimension::overlap)]);
    l.order = order_[of(Dimension::order)];
    l.dp = std::max<std::int64_t>(1, clusters_[c[0]]->gpus() / (l.tp * l.cp * l.pp));
    const Layout& stated = clusters_[c[0]]->scenario().training.layout;
    if (stated.stage_layers.empty() || l.pp != stated.pp ||
        static_cast<std::int64_t>(stated.stage_layers.size()) != virtual_stages(l))
        l.stage_layers = light_ends(clusters_[c[0]]->scenario().model.layers, virtual_stages(l));
    return p;
}

TrainingPlan PlanSpace::plan(const Choice& c, std::string& rule, std::string& why) const {
    rule.clear();
    why.clear();
    TrainingPlan p = raw(c);
    const Layout& l = p.layout;
    const std::int64_t gpus = clusters_[c[0]]->gpus();
    const auto first = [&](Dimension d) { return c[plan::at(d)] == 0; };
    const auto chunked = [](Schedule schedule) {
        return schedule == Schedule::interleaved || schedule == Schedule::zb_v;
    };
    // Whether the list has the job under another name: with one chunk, or (1f1b with chunks is interleaved) with the schedule.
    const bool unchunked_twin =
        one_chunk_ < vpp_.size() || (l.pp > 1 && std::any_of(schedule_.begin(), schedule_.end(), chunked));
    const bool plain_twin = vpp_.size() > 1 && !std::all_of(schedule_.begin(), schedule_.end(), chunked);
    const bool same = (l.tp == 1 && !first(Dimension::sp)) || (l.cp == 1 && !first(Dimension::context)) ||
                      (l.pp == 1 && c[plan::at(Dimension::schedule)] != plain_schedule_) ||
                      (l.vpp > 1 && !chunked(l.schedule) && unchunked_twin) ||
                      (l.vpp == 1 && l.schedule == Schedule::interleaved && plain_twin) ||
                      (l.dp * l.cp == 1 && (!first(Dimension::zero) || !first(Dimension::overlap))) ||
                      ((l.zero == 0 || l.dp * l.cp == 1) && !first(Dimension::shard_group));
    if (same) {
        rule = "same";
        why = "the same job as another layout of the list";
        return p;
    }
    const std::int64_t inner = l.tp * l.cp * l.pp;
    if (gpus % inner != 0) {
        rule = "gpus";
        why = inner > gpus ? fmt::format("tp {} x cp {} x pp {} is more than {} GPUs", l.tp, l.cp, l.pp, gpus)
                           : fmt::format("tp {} x cp {} x pp {} does not divide {} GPUs", l.tp, l.cp, l.pp, gpus);
        return p;
    }
    why = check_layout(clusters_[c[0]]->scenario().model, p, gpus, rule);
    if (why.empty())
        rule.clear();
    return p;
}

Choice PlanSpace::settled(const Choice& choice) const {
    Choice out = choice;
    const auto set = [&](Dimension d, std::uint32_t v) { out[plan::at(d)] = v; };
    const Layout l = raw(choice).layout;
    if (l.tp == 1)
        set(Dimension::sp, 0);
    if (l.cp == 1)
        set(Dimension::context, 0);
    if (l.pp == 1) {
        set(Dimension::schedule, plain_schedule_);
        if (one_chunk_ < vpp_.size())
            set(Dimension::vpp, one_chunk_);
    }
    if (l.dp * l.cp == 1) {
        set(Dimension::zero, 0);
        set(Dimension::overlap, 0);
    }
    if (raw(out).layout.zero == 0 || l.dp * l.cp == 1)
        set(Dimension::shard_group, 0);
    return out;
}

bool PlanSpace::find(const TrainingPlan& p, std::uint32_t cluster, Choice& choice) const {
    const auto place = [&](const auto& list, const auto& value, Dimension d) {
        const auto found = std::find(list.begin(), list.end(), value);
        choice[plan::at(d)] = static_cast<std::uint32_t>(found - list.begin());
        return found != list.end();
    };
    const Layout& l = p.layout;
    choice = {};
    choice[0] = cluster;
    choice[plan::at(Dimension::schedule)] = plain_schedule_;
    return place(tp_, l.tp, Dimension::tp) && (l.tp == 1 || place(sp_, l.sequence_parallel, Dimension::sp)) &&
           place(cp_, l.cp, Dimension::cp) && (l.cp == 1 || place(context_, p.context, Dimension::context)) &&
           place(ep_, l.ep, Dimension::ep) && place(pp_, l.pp, Dimension::pp) && place(vpp_, l.vpp, Dimension::vpp) &&
           (l.pp == 1 || place(schedule_, l.schedule, Dimension::schedule)) &&
           place(global_, p.global_batch, Dimension::global_batch) &&
           place(micro_, p.micro_batch, Dimension::micro_batch) &&
           place(zero_, std::int64_t{l.zero}, Dimension::zero) &&
           place(shard_, l.shard_group, Dimension::shard_group) &&
           place(recompute_, p.recompute, Dimension::recompute) &&
           place(overlap_, overlap_word(p), Dimension::overlap) && place(order_, l.order, Dimension::order) &&
           raw(choice).layout.stage_layers == l.stage_layers;
}

}  // namespace fabricast::plan
