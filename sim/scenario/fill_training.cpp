#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/transformer/packing.hpp"
#include "models/transformer/software.hpp"
#include "sim/scenario/calibration.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

constexpr std::int64_t kMaxSequences = 1'000'000'000;  // keeps products of shapes inside 64 bits

Precision precision_from(const std::string& word) {
    return word == "fp32"   ? Precision::fp32
           : word == "fp16" ? Precision::fp16
           : word == "fp8"  ? Precision::fp8
                            : Precision::bf16;
}

void fill_precision(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer& answer = answers.get("training.precision");
    s.training.precision = precision_from(answer.text);
    const double peak = s.training.precision == Precision::fp32  ? s.gpu.peak_fp32
                        : s.training.precision == Precision::fp8 ? s.gpu.peak_fp8
                                                                 : s.gpu.peak_bf16;
    if (!(peak > 0))
        diagnostics.error(answer.place,
                          fmt::format("training.precision: {} does not compute in {}", s.gpu.name, answer.text));
}

void fill_software(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    SoftwareFeatures& f = s.software;
    f = *find_software(answers.get("training.software.preset").text);
    if (s.calibration)
        apply(*s.calibration, f);
    if (const Answer* a = answers.given("training.software.attention"))
        f.attention = a->text;
    if (const Answer* a = answers.given("training.software.fusion"))
        f.fusion = a->text == "fused" ? Fusion::fused : a->text == "compiled" ? Fusion::compiled : Fusion::eager;
    if (const Answer* a = answers.given("training.software.dropout"))
        f.dropout = a->flag;
    if (const Answer* a = answers.given("training.software.fp32_gradients"))
        f.fp32_gradients = a->flag;
    if (const Answer* a = answers.given("training.software.fp32_reduce"))
        f.fp32_reduce = a->flag;
    if (const Answer* a = answers.given("training.software.cuda_graphs"))
        f.cuda_graphs = a->flag;
    if (const Answer* a = answers.given("training.software.p2p_overlap"))
        f.p2p_overlap = a->flag;
    if (const Answer* a = answers.given("training.software.tp_backward_overlap"))
        f.tp_backward_overlap = a->flag;
    if (const Answer* a = answers.given("training.software.tp_hidden_fraction"))
        f.tp_hidden_fraction = a->number;
    if (const Answer* a = answers.given("training.software.head_weight_deferred"))
        f.head_weight_deferred = a->integer;
    f.attention = resolve_attention(f, s.gpu);
    if (f.attention != "unfused" && !s.gpu.attention.contains(f.attention)) {
        std::string known = "unfused";
        for (const auto& entry : s.gpu.attention)
            known += ", " + entry.first;
        const std::string_view path =
            answers.given("training.software.attention") ? "training.software.attention" : "training.software";
        diagnostics.error(answers.place(path),
                          fmt::format("{}: attention kernel `{}` of {} has no constants for {}; known there: {}", path,
                                      f.attention, f.name, s.gpu.name, known));
    }
}

void fill_batch(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    TrainingPlan& t = s.training;
    const Answer* sequence = answers.given("training.sequence");
    const Answer* batch = answers.given("training.global_batch");
    if (!sequence)
        missing(answers, "training.sequence", "; write it like 4096 tokens", diagnostics);
    if (!batch)
        missing(answers, "training.global_batch", "; write it like 512 sequences or 4194304 tokens", diagnostics);
    t.micro_batch = answers.get("training.micro_batch").integer;
    if (!sequence || !batch)
        return;
    t.sequence = sequence->integer;
    t.global_batch = batch->integer;
    if (batch->dimension == Dimension::tokens) {
        t.global_batch = batch->integer / t.sequence;
        if (batch->integer % t.sequence != 0)
            diagnostics.error(batch->place,
                              fmt::format("training.global_batch: `{}` is not a whole number of sequences of {} "
                                          "tokens; {} or {} sequences are {} or {} tokens",
                                          batch->text, t.sequence, t.global_batch, t.global_batch + 1,
                                          t.global_batch * t.sequence, (t.global_batch + 1) * t.sequence));
    }
    if (t.global_batch > kMaxSequences)
        diagnostics.error(batch->place, fmt::format("training.global_batch: `{}` is more than {} sequences",
                                                    batch->text, kMaxSequences));
    if (s.model.max_positions == 0 && !s.model.rotary && !s.model.alibi)
        s.model.max_positions = t.sequence;
    if (s.model.max_positions > 0 && t.sequence > s.model.max_positions)
        diagnostics.error(
            sequence->place,
            fmt::format(
                "training.sequence: {} tokens, but {} has {} learned positions; set model.max_positions to change it",
                t.sequence, s.model.name, s.model.max_positions));
}

void fill_layout(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    Layout& l = s.training.layout;
    l.tp = answers.get("training.layout.tp").integer;
    l.sequence_parallel = answers.get("training.layout.sp").flag;
    l.pp = answers.get("training.layout.pp").integer;
    l.vpp = answers.get("training.layout.vpp").integer;
    if (const Answer* layers = answers.given("training.layout.stage_layers")) {
        for (const double number : layers->numbers) {
            l.stage_layers.push_back(static_cast<std::int64_t>(number));
            if (static_cast<double>(l.stage_layers.back()) != number) {
                diagnostics.error(layers->place,
                                  fmt::format("training.layout.stage_layers: {} is no whole number", number));
                break;
            }
        }
    }
    l.cp = answers.get("training.layout.cp").integer;
    l.ep = answers.get("training.layout.ep").integer;
    l.etp = answers.get("training.layout.etp").integer;
    l.shard_group = answers.get("training.layout.shard_group").integer;
    s.training.context = context_from(answers.get("training.layout.cp_exchange").text);
    s.training.context_balanced = answers.get("training.layout.cp_balanced").flag;
    l.zero = static_cast<int>(answers.get("training.layout.zero").integer);
    l.order = answers.get("training.layout.order").text;
    s.layout_given = answers.given("training.layout") != nullptr;
    const std::int64_t gpus = std::int64_t{s.nodes} * s.node.gpus;
    if (s.layout_open) {
        l.dp = std::max<std::int64_t>(1, gpus / std::max<std::int64_t>(1, l.tp * l.cp * l.pp));
        return;
    }
    const __int128 wide = static_cast<__int128>(l.tp) * l.cp * l.pp;
    const Place place = answers.place("training.layout");
    const std::string cluster =
        fmt::format("{} GPUs ({} node{} x {})", gpus, s.nodes, s.nodes == 1 ? "" : "s", s.node.gpus);
    if (wide > gpus) {
        diagnostics.error(place, fmt::format("training.layout: tp {} x cp {} x pp {} is more than the {}", l.tp, l.cp,
                                             l.pp, cluster));
        return;
    }
    const auto inner = static_cast<std::int64_t>(wide);
    const std::string product = fmt::format("tp {} x cp {} x pp {}", l.tp, l.cp, l.pp);
    const bool divides = gpus % inner == 0;
    const Answer* dp = answers.given("training.layout.dp");
    if (!dp || dp->text == "auto") {
        l.dp = gpus / inner;
        if (!divides)
            diagnostics.error(place,
                              fmt::format("training.layout: {} = {} does not divide the {}", product, inner, cluster));
        return;
    }
    std::string problem;
    const auto number = parse_integer(dp->text, problem);
    if (!number || dp->field->low > static_cast<double>(*number) || *number < 1 || *number > 1'000'000) {
        diagnostics.error(dp->place, fmt::format("training.layout.dp: `{}` {}; it needs a whole number from 1, or auto",
                                                 dp->text, number ? "is out of range" : problem));
        return;
    }
    l.dp = *number;
    if (static_cast<__int128>(inner) * l.dp != gpus) {
        const std::string fit = divides ? fmt::format("dp {} fits", gpus / inner)
                                        : fmt::format("no dp fits, because {} does not divide {}", inner, gpus);
        diagnostics.error(place, fmt::format("training.layout: {} x dp {} = {} ranks, but the cluster has {}; {}",
                                             product, l.dp, inner * l.dp, cluster, fit));
    }
}

void fill_schedule(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    TrainingPlan& t = s.training;
    t.layout.schedule = schedule_from(answers.get("training.schedule").text);
    if (t.layout.schedule == Schedule::zb_v && !answers.given("training.layout.vpp")) {
        t.layout.vpp = 2;
        s.notes.emplace_back("training.layout.vpp: 2, because zb-v gives every stage two chunks");
    }
    if (t.layout.schedule == Schedule::one_f_one_b && t.layout.vpp > 1) {
        t.layout.schedule = Schedule::interleaved;
        s.notes.push_back(fmt::format("training.schedule: 1f1b with vpp {} is the interleaved schedule", t.layout.vpp));
    }
    t.recompute = recompute_from(answers.get("training.recompute").text);
    t.recompute_layers = answers.get("training.recompute_layers").integer;
    const std::string& dispatch = answers.get("training.moe.dispatch").text;
    t.dispatch = dispatch == "node_aware"   ? ExpertDispatch::node_aware
                 : dispatch == "all_gather" ? ExpertDispatch::all_gather
                                            : ExpertDispatch::all_to_all;
    if (const Answer* capacity = answers.given("training.moe.capacity_factor"))
        t.capacity_factor = capacity->number;
    t.expert_imbalance = answers.get("training.moe.imbalance").number;
    t.reshard_after_forward = answers.get("training.overlap.reshard").flag;
    t.overlap_grad_reduce = answers.get("training.overlap.grad_reduce").flag;
    t.overlap_param_gather = answers.get("training.overlap.param_gather").flag;
    t.reduce_every = answers.get("training.reduce_every").text == "step" ? ReduceEvery::step : ReduceEvery::micro_batch;
    t.clip_gradients = answers.get("training.clip_gradients").flag;
    const Answer* cap = answers.given("training.buckets.cap");
    const Answer* split = answers.given("training.buckets.split");
    if (cap && split)
        diagnostics.error(split->place, "training.buckets: give either cap or split, not both");
    if (cap)
        t.bucket_bytes = static_cast<std::int64_t>(cap->number);
    if (cap && t.bucket_bytes == 0)
        diagnostics.error(cap->place, fmt::format("training.buckets.cap: `{}` is less than a byte", cap->text));
    if (split)
        t.bucket_split = split->numbers;

    const Layout& l = t.layout;
    if (l.sequence_parallel && l.tp == 1)
        s.notes.emplace_back("training.layout.sp: no effect with tp 1");
    if (t.overlap_param_gather && l.zero == 0)
        s.notes.emplace_back("training.overlap.param_gather: no effect with zero 0, parameters are not gathered");
    if (t.overlap_grad_reduce && l.dp * l.cp == 1)
        s.notes.emplace_back("training.overlap.grad_reduce: no effect with dp 1");
    if (answers.given("training.moe") && s.model.moe.experts == 0)
        s.notes.push_back(fmt::format("training.moe: no effect, {} has no experts", s.model.name));
    if (l.shard_group > 0 && l.zero == 0)
        s.notes.emplace_back("training.layout.shard_group: no effect with zero 0, nothing is sharded");
    if (l.zero > 0 && l.dp * l.cp == 1)
        s.notes.push_back(fmt::format("training.layout.zero: {} has no effect with dp 1", l.zero));
}

void fill_packed(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    if (!answers.given("training.packed"))
        return;
    const Place place = answers.place("training.packed");
    const Answer* mean = answers.given("training.packed.document");
    const Answer* lengths = answers.given("training.packed.lengths");
    if (static_cast<bool>(mean) == static_cast<bool>(lengths))
        return diagnostics.error(place, "training.packed: give either document, the mean length, or lengths, a sample");
    if (lengths && answers.given("training.packed.distribution"))
        diagnostics.error(answers.place("training.packed.distribution"),
                          "training.packed.distribution: lengths are a distribution themselves");
    if (s.software.attention == "unfused")
        return diagnostics.error(place,
                                 fmt::format("training.packed: unfused attention of {} computes the scores of the "
                                             "whole sequence and masks them; packing saves nothing there",
                                             s.software.name));
    const auto sequence = static_cast<double>(s.training.sequence);
    double tokens = 0;
    std::string how;
    if (lengths) {
        tokens = sampled_documents(lengths->numbers, sequence);
        how = fmt::format("{} sampled lengths", lengths->numbers.size());
    } else if (answers.get("training.packed.distribution").text == "equal") {
        if (mean->number > sequence)
            return diagnostics.error(mean->place,
                                     fmt::format("training.packed.document: `{}` is longer than the sequence "
                                                 "of {} tokens",
                                                 mean->text, s.training.sequence));
        tokens = equal_documents(mean->number, sequence);
        how = fmt::format("equal ones of {:.0f}", mean->number);
    } else {
        tokens = exponential_documents(mean->number, sequence);
        how = fmt::format("a mean of {:.0f}, exponential", mean->number);
    }
    s.training.document = std::max<std::int64_t>(1, std::llround(tokens));
    s.notes.push_back(
        fmt::format("training.packed: a token's document has {} of the {} tokens of a sequence on average "
                    "({}); attention and MFU count those",
                    s.training.document, s.training.sequence, how));
}

}  // namespace

Schedule schedule_from(std::string_view word) {
    return word == "gpipe"         ? Schedule::gpipe
           : word == "interleaved" ? Schedule::interleaved
           : word == "zb-h1"       ? Schedule::zb_h1
           : word == "zb-h2"       ? Schedule::zb_h2
           : word == "zb-v"        ? Schedule::zb_v
           : word == "dual-pipe"   ? Schedule::dual_pipe
                                   : Schedule::one_f_one_b;
}

Recompute recompute_from(std::string_view word) {
    return word == "full" ? Recompute::full : word == "selective" ? Recompute::selective : Recompute::none;
}

ContextExchange context_from(std::string_view word) {
    return word == "ulysses"      ? ContextExchange::ulysses
           : word == "all_gather" ? ContextExchange::all_gather
                                  : ContextExchange::ring;
}

bool fill_training(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    if (!answers.given("training")) {
        missing(answers, "training", "; it needs at least sequence and global_batch", diagnostics);
        return false;
    }
    fill_batch(answers, s, diagnostics);
    fill_precision(answers, s, diagnostics);
    fill_layout(answers, s, diagnostics);
    fill_schedule(answers, s, diagnostics);
    fill_software(answers, s, diagnostics);
    fill_optimizer(answers, s, diagnostics);
    fill_packed(answers, s, diagnostics);
    if (!diagnostics.ok())
        return false;
    fill_compression(answers, s, diagnostics);
    if (s.layout_open)
        return diagnostics.ok();
    std::string field;
    const std::string problem = check_layout(s.model, s.training, std::int64_t{s.nodes} * s.node.gpus, field);
    if (!problem.empty())
        diagnostics.error(answers.place(field), fmt::format("{}: {}", field, problem));
    if (diagnostics.ok())
        place_compression(s);
    return diagnostics.ok();
}

}  // namespace fabricast
