// `fabricast compare` on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/report/campaign_view.hpp"
#include "sim/report/comparison.hpp"
#include "sim/report/sections.hpp"
#include "sim/report/text.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kPageColumns = 160, kMaxValue = 40;

std::string change(double a, double b) { return a > 0 ? fmt::format("{:+.1f} %", (b / a - 1) * 100) : ""; }

void print_title(Page& page, std::string_view mark, const Result& result) {
    const Scenario& s = *result.scenario;
    const std::int64_t gpus = std::int64_t{s.nodes} * s.node.gpus;
    page.add(fmt::format("{}  ", mark), Paint::bold).add(clean(s.name), Paint::bold);
    page.add(fmt::format("  {} on {} × {}, {}; {} × {} tokens, {}", clean(s.model.name), gpus, clean(s.gpu.name),
                         layout_text(s.training.layout), s.training.global_batch, s.training.sequence,
                         precision_text(s.training.precision)));
    const bool failed = !result.failure.empty();
    page.add("  ").add(clean(result.verdict), failed ? Paint::bad : Paint::good).end();
    if (failed)
        page.add("   ").add(clean(result.failure), Paint::bad).end();
}

void print_keys(Page& page, const Comparison& c) {
    page.heading(c.keys.empty() ? "The scenarios say the same" : "What the scenarios say differently");
    if (c.keys.empty())
        return;
    Table table("lll");
    table.row({"key", "A", c.letter});
    for (const KeyDifference& key : c.keys)
        table.row({key.key, clip(clean(key.a), kMaxValue), clip(clean(key.b), kMaxValue)});
    table.print(page);
}

void print_figures(Page& page, const Comparison& c) {
    const Headline a = headline(*c.a), b = headline(*c.b);
    const bool ran_a = c.a->step.ps > 0, ran_b = c.b->step.ps > 0;
    page.heading("Figures");
    Table table("lrrr");
    table.row({"", "A", c.letter, c.letter + " against A"});
    const auto row = [&](std::string_view name, const std::string& left, const std::string& right,
                         const std::string& difference) {
        table.row({std::string(name), ran_a ? left : "-", ran_b ? right : "-", c.ran ? difference : ""});
    };
    const auto points = [](double x, double y) { return fmt::format("{:+.1f} points", (y - x) * 100); };
    row("step", duration(a.step_s), duration(b.step_s), change(a.step_s, b.step_s));
    row("tokens a step", grouped(c.a->step.tokens), grouped(c.b->step.tokens),
        change(c.a->step.tokens, c.b->step.tokens));
    row("tokens/s", grouped(a.tokens_per_s), grouped(b.tokens_per_s), change(a.tokens_per_s, b.tokens_per_s));
    row("tokens/s/GPU", grouped(a.tokens_per_s_per_gpu), grouped(b.tokens_per_s_per_gpu),
        change(a.tokens_per_s_per_gpu, b.tokens_per_s_per_gpu));
    row("MFU, attention in full", percent(a.mfu), percent(b.mfu), points(a.mfu, b.mfu));
    row("HFU, recomputation counted", percent(a.hfu), percent(b.hfu), points(a.hfu, b.hfu));
    row("MFU, causal attention", percent(a.mfu_causal), percent(b.mfu_causal), points(a.mfu_causal, b.mfu_causal));
    row("dense peak of a GPU", fmt::format("{:.1f} TFLOP/s", a.peak_tflops),
        fmt::format("{:.1f} TFLOP/s", b.peak_tflops), change(a.peak_tflops, b.peak_tflops));
    row("exposed communication", percent(a.exposed_comm_fraction), percent(b.exposed_comm_fraction),
        points(a.exposed_comm_fraction, b.exposed_comm_fraction));
    row("bubble", percent(a.bubble_fraction), percent(b.bubble_fraction), points(a.bubble_fraction, b.bubble_fraction));
    table.print(page);
}

/// What tokens cost, and at which price of B's GPUs both cost the same.
void print_money(Page& page, const Comparison& c) {
    if (!c.ran)
        return;
    const TokenCost &a = c.tokens_a, &b = c.tokens_b;
    page.heading("A trillion tokens");
    Table table("lrrr");
    table.row({"", "A", c.letter, c.letter + " against A"});
    const auto row = [&](const std::string& name, double left, double right) {
        if (left > 0 && right > 0)
            table.row({name, grouped(left), grouped(right), change(left, right)});
    };
    const std::string money =
        c.a->scenario->currency == c.b->scenario->currency ? clean(c.a->scenario->currency) : "money";
    row("GPU-hours of steps", a.gpu_hours, b.gpu_hours);
    row("GPU-hours billed, faults included", a.billed_gpu_hours, b.billed_gpu_hours);
    row(money + " for steps", a.cost, b.cost);
    row(money + " as billed", a.billed_cost, b.billed_cost);
    table.print(page);
    page.add(fmt::format("  Break-even: a GPU-hour of {} may cost ", c.letter))
        .add(fmt::format("{:.2f} times", c.break_even), Paint::bold);
    page.add(" as much as one of A");
    if (c.billed_break_even > 0)
        page.add(fmt::format("; as billed, {:.2f} times", c.billed_break_even));
    page.end();
}

/// Runs with faults, medians of the lives.
void print_campaigns(Page& page, const Comparison& c) {
    if (!c.a->campaign || !c.b->campaign)
        return;
    const auto figures = [](const Result& r) {
        return campaign_figures(*r.campaign, r.scenario->price_per_gpu_hour > 0);
    };
    const std::vector<CampaignFigure> a = figures(*c.a), b = figures(*c.b);
    page.heading("Runs with faults, median (P10 to P90)");
    Table table("lrrr");
    table.row({"", "A", c.letter, c.letter + " against A"});
    const auto cell = [](const CampaignFigure& f) {
        return fmt::format("{:.5g} ({:.5g} to {:.5g})", f.value.p50, f.value.p10, f.value.p90);
    };
    for (const CampaignFigure& left : a)
        for (const CampaignFigure& right : b)
            if (left.key == right.key)
                table.row({left.text, cell(left), cell(right), change(left.value.p50, right.value.p50)});
    table.print(page);
}

const StageMemory* heaviest(const Result& result) {
    const auto stage =
        std::max_element(result.memory.begin(), result.memory.end(),
                         [](const StageMemory& x, const StageMemory& y) { return x.total_bytes < y.total_bytes; });
    return stage == result.memory.end() ? nullptr : &*stage;
}

void print_memory(Page& page, const Comparison& c) {
    const StageMemory *a = heaviest(*c.a), *b = heaviest(*c.b);
    if (a == nullptr || b == nullptr)
        return;
    page.heading(
        fmt::format("Memory of the heaviest stage, GiB (A stage {}, {} stage {})", a->stage, c.letter, b->stage));
    Table table("lrrr");
    table.row({"cause", "A", c.letter, c.letter + " - A"});
    const auto row = [&](std::string_view name, std::int64_t x, std::int64_t y) {
        const double gib_difference = static_cast<double>(y - x) / static_cast<double>(std::int64_t{1} << 30);
        table.row({std::string(name), gib(x), gib(y), fmt::format("{:+.1f}", gib_difference)});
    };
    for (std::size_t i = 0; i < kMemoryCauseCount; ++i) {
        if (a->parts[i] != 0 || b->parts[i] != 0)
            row(memory_cause_text(static_cast<MemoryCause>(i)), a->parts[i], b->parts[i]);
    }
    row("= total", a->total_bytes, b->total_bytes);
    row("capacity", a->capacity_bytes, b->capacity_bytes);
    table.print(page);
}

void print_accounts(Page& page, const Comparison& c) {
    const bool by_tokens = !c.same_batch || !c.same_gpus;
    page.heading(by_tokens ? "Where the difference lies, GPU-seconds per million tokens"
                           : "Where the difference lies, ms of a step, mean over GPUs");
    if (by_tokens) {
        page.add(c.same_batch ? "  GPU counts differ: a shorter step on more GPUs need not be cheaper."
                              : "  Batches differ: compare by tokens, not by iteration time.",
                 Paint::warn)
            .end();
    }
    Table table("lrrrr");
    table.row({"account", "A", c.letter, c.letter + " - A", "points of A"});
    double sum_a = 0, sum_b = 0;
    for (const AccountDifference& d : c.accounts) {
        sum_a += by_tokens ? d.a_per_token : d.a_s * 1e3;
        sum_b += by_tokens ? d.b_per_token : d.b_s * 1e3;
    }
    const auto row = [&](std::string_view name, double a, double b) {
        table.row({std::string(name), fmt::format("{:.3f}", a), fmt::format("{:.3f}", b), fmt::format("{:+.3f}", b - a),
                   fmt::format("{:+.2f}", 100 * (b - a) / sum_a)});
    };
    for (const AccountDifference& d : c.accounts) {
        row(account_text(d.account), by_tokens ? d.a_per_token : d.a_s * 1e3, by_tokens ? d.b_per_token : d.b_s * 1e3);
    }
    row(by_tokens ? "= GPU-time of a million tokens" : "= step", sum_a, sum_b);
    table.print(page);
}

void print_verdict(Page& page, const Comparison& c) {
    page.blank();
    page.add(fmt::format("  {} is ", c.letter));
    page.add(fmt::format("{}{}", speed_words(c.speed_ratio), interval_words(c.intervals)), Paint::bold).end();
    page.add(fmt::format("  {:.3f} times the tokens a second of A, {:.3f} times the GPU-time a token", c.speed_ratio,
                         c.gpu_s_per_token_ratio));
    if (c.cost_ratio > 0)
        page.add(fmt::format(", {:.3f} times the money", c.cost_ratio));
    else
        page.add("; cost: the scenarios name no price in one currency (run.price)", Paint::dim);
    page.end();
}

}  // namespace

std::string comparison_text(const Comparison& c, bool color, bool unicode) {
    Page page(color, unicode, kPageColumns);
    print_title(page, "A", *c.a);
    print_title(page, c.letter, *c.b);
    if (c.ran)
        print_verdict(page, c);
    print_keys(page, c);
    print_figures(page, c);
    print_money(page, c);
    print_campaigns(page, c);
    print_memory(page, c);
    if (c.ran)
        print_accounts(page, c);
    for (const Measurement& m : c.measured_a)
        page.add("  Measured A   ").add(describe(m, *c.a)).end();
    for (const Measurement& m : c.measured_b)
        page.add(fmt::format("  Measured {}   ", c.letter)).add(describe(m, *c.b)).end();
    return page.text();
}

}  // namespace fabricast
