#include "sim/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fabricast::report {
namespace {

constexpr std::size_t kLabel = 11;

void label(Page& page, std::string_view text) { page.add("  ").add(pad_right(text, kLabel), Paint::dim); }

Paint verdict_paint(const Result& result) {
    if (!result.failure.empty())
        return Paint::bad;
    return result.verdict == "fits" ? Paint::good : Paint::warn;
}

const StageMemory* heaviest_stage(const Result& result) {
    const auto heavier = [](const StageMemory& a, const StageMemory& b) { return a.total_bytes < b.total_bytes; };
    const auto heaviest = std::max_element(result.memory.begin(), result.memory.end(), heavier);
    return heaviest == result.memory.end() ? nullptr : &*heaviest;
}

void print_memory(Page& page, const Result& result) {
    const StageMemory* stage = heaviest_stage(result);
    if (stage == nullptr)
        return;
    const double fraction = stage->capacity_bytes > 0
                                ? static_cast<double>(stage->total_bytes) / static_cast<double>(stage->capacity_bytes)
                                : 0;
    std::size_t largest = 0;
    for (std::size_t i = 1; i < kMemoryCauseCount; ++i) {
        if (stage->parts[i] > stage->parts[largest])
            largest = i;
    }
    label(page, "Memory");
    page.add(fmt::format("{} of {} GiB", gib(stage->total_bytes), gib(stage->capacity_bytes)), fraction > 1 ? Paint::bad
                                                                                               : fraction > 0.9
                                                                                                   ? Paint::warn
                                                                                                   : Paint::bold);
    page.add(fmt::format("  {}", percent(fraction)));
    if (result.memory.size() > 1)
        page.add(fmt::format(" on stage {}, the heaviest", stage->stage));
    page.add(fmt::format("; largest part {} ({} GiB)", memory_cause_text(static_cast<MemoryCause>(largest)),
                         gib(stage->parts[largest])),
             Paint::dim)
        .end();
}

void print_run(Page& page, const Result& result, const Headline& h) {
    if (h.days <= 0)
        return;
    const Scenario& scenario = *result.scenario;
    label(page, "Run");
    page.add(fmt::format("{:.1f} days", h.days), Paint::bold);
    page.add(fmt::format(" for {} tokens, {} GPU-hours", magnitude(scenario.tokens), magnitude(h.gpu_hours)));
    if (h.cost > 0) {
        page.add(", ").add(fmt::format("{} {}", magnitude(h.cost), clean(scenario.currency)), Paint::bold);
    }
    page.add(result.campaign ? "; with faults see the campaign" : "; no failures counted", Paint::dim).end();
}

}  // namespace

std::string methods_text(const TrainingPlan& t) {
    std::string out;
    const auto say = [&](const std::string& part) { out += (out.empty() ? "" : "; ") + part; };
    if (!(t.optimizer == Optimizer{}))
        say(optimizer_text(t.optimizer));
    if (t.offload.optimizer > 0)
        say(fmt::format("{:.0f} % of the optimizer{} on the host", 100 * t.offload.optimizer,
                        t.offload.parameters ? " and the weights" : ""));
    else if (t.offload.parameters)
        say("weights on the host");
    if (t.document > 0)
        say(fmt::format("packed, {} tokens a document", t.document));
    const CompressedTraffic& c = t.compression;
    for (const auto& [what, method] : {std::pair{"gradients", c.gradients},
                                       {"parameters", c.parameters},
                                       {"tensor-parallel traffic", c.tensor_parallel}})
        if (method != Compression::none)
            say(fmt::format("{} in {}", what, compression_name(method)));
    return out;
}

std::string quantum_text(const Result& result) {
    if (!result.quantum)
        return {};
    const QuantumResult& q = *result.quantum;
    const std::string bound =
        q.late < 0 ? "by how much the step is too long is not known"
                   : fmt::format("an exact step is at most {} shorter, as far as the same operations meet",
                                 duration(seconds(q.late)));
    return fmt::format("network solved at most every {}: {} of {} completions and {} starts waited, up to {}; {}",
                       duration(seconds(result.scenario->quantum)), magnitude(static_cast<double>(q.put_off)),
                       magnitude(static_cast<double>(q.completions)), magnitude(static_cast<double>(q.held)),
                       duration(seconds(q.longest)), bound);
}

void print_verdict(Page& page, const Result& result) {
    const Scenario& s = *result.scenario;
    const std::int64_t gpus = std::int64_t{s.nodes} * s.node.gpus;
    page.add(result.failure.empty() ? "✔ " : "✘ ", verdict_paint(result));
    page.add(clean(result.verdict), verdict_paint(result));
    page.add("  ").add(clean(s.name), Paint::bold);
    page.add(fmt::format("  {} on {} × {}", clean(s.model.name), gpus, clean(s.gpu.name)));
    page.add(fmt::format(", {} × {}, {}", s.nodes, clean(s.node.name), clean(s.fabric.name))).end();

    const TrainingPlan& t = s.training;
    page.add(fmt::format("  {}, {}; {} × {} tokens, micro-batch {}, {}, recompute {}", layout_text(t.layout),
                         schedule_name(t.layout.schedule), t.global_batch, t.sequence, t.micro_batch,
                         precision_text(t.precision), recompute_name(t.recompute)),
             Paint::dim);
    page.end();
    if (const std::string methods = methods_text(t); !methods.empty())
        page.add("  ").add(methods, Paint::dim).end();
}

void print_headline(Page& page, const Result& result) {
    const Headline h = headline(result);
    if (result.step.ps > 0) {
        label(page, "MFU");
        page.add(percent(h.mfu), Paint::bold);
        page.add(fmt::format(" of {:.1f} TFLOP/s dense {}, attention counted in full", h.peak_tflops,
                             precision_text(result.scenario->training.precision)));
        page.add(fmt::format("      HFU {}", percent(h.hfu))).end();

        label(page, "Step time");
        page.add(duration(h.step_s), Paint::bold);
        if (h.interval.runs > 0) {
            const double unit = h.step_s >= 1 ? 1 : h.step_s >= 1e-3 ? 1e-3 : 1e-6;
            page.add(fmt::format(" ({:.3g}-{:.3g}, 80 % of published runs like it)", h.interval.low_s / unit,
                                 h.interval.high_s / unit));
        }
        if (!result.step.periodic)
            page.add("   not settled to a period", Paint::warn);
        page.end();

        label(page, "Exposed");
        page.add(
            fmt::format("communication {}, bubble {}", percent(h.exposed_comm_fraction), percent(h.bubble_fraction)));
        if (result.waiting && h.bubble_fraction > 0)
            page.add(fmt::format(" (warm-up and drain {}, unequal stages {})",
                                 percent(h.bubble_fraction - h.bubble_imbalance_fraction),
                                 percent(h.bubble_imbalance_fraction)));
        page.end();

        label(page, "Tokens/s");
        page.add(grouped(h.tokens_per_s), Paint::bold);
        page.add(fmt::format(", per GPU {}; {:.1f} model TFLOP/s per GPU", grouped(h.tokens_per_s_per_gpu),
                             h.model_tflops_per_gpu))
            .end();
    }
    print_memory(page, result);
    print_run(page, result, h);
}

void print_definitions(Page& page, const Result& result) {
    const bool packed = result.scenario->training.document > 0;
    const Headline h = headline(result);
    page.heading("MFU and HFU: FLOPs / (step time x GPUs x dense peak)");
    Table table("lrrl");
    table.row({"attention scores", "MFU", "HFU", ""});
    table.row({"in full", percent(h.mfu), percent(h.hfu), "as most frameworks print it"});
    table.row({"causal, halved", percent(h.mfu_causal), percent(h.hfu_causal), "what a causal kernel computes"});
    if (packed)
        table.row({"whole sequences", percent(h.mfu_whole), percent(h.hfu_whole),
                   "as if documents were not packed; what a trainer prints that does not know them"});
    table.print(page);
    if (packed)
        page.add(fmt::format("  packed: scores of a token count the {} tokens of its document, of {} of the sequence",
                             result.scenario->training.document, result.scenario->training.sequence),
                 Paint::dim)
            .end();
    page.add("  MFU counts the model's FLOPs once, HFU recomputed ones too", Paint::dim).end();
}

void print_critical_path(Page& page, const std::vector<CriticalEntry>& critical_path) {
    if (critical_path.empty())
        return;
    Picoseconds total = 0;
    for (const CriticalEntry& entry : critical_path)
        total += entry.ps;
    page.heading("Critical path");
    Table table("lrr");
    table.row({"what", "time", "share"});
    for (const CriticalEntry& entry : critical_path) {
        table.row({clean(entry.what), duration(seconds(entry.ps)),
                   percent(static_cast<double>(entry.ps) / static_cast<double>(total))});
    }
    table.print(page);
}

const CommRow* dominant_communication(const Result& result) {
    const auto exposed = [&](const CommRow& row) {
        return row.account == Account::count || row.account == Account::offload
                   ? __int128{0}
                   : result.step.accounts[static_cast<std::size_t>(row.account)];
    };
    const auto busy_s = [](const CommRow& row) { return row.time_s * static_cast<double>(row.calls_per_rank); };
    const auto less = [&](const CommRow& a, const CommRow& b) {
        return exposed(a) != exposed(b) ? exposed(a) < exposed(b) : busy_s(a) < busy_s(b);
    };
    const auto row = std::max_element(result.communication.begin(), result.communication.end(), less);
    return row == result.communication.end() ? nullptr : &*row;
}

}  // namespace fabricast::report
