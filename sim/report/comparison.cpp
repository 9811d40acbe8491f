#include "sim/report/comparison.hpp"

#include <fmt/format.h>

#include <utility>

#include "sim/campaign/campaign_report.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

constexpr double kTrillion = 1e12;

TokenCost token_cost(const Result& result) {
    TokenCost cost;
    const StepResult& step = result.step;
    cost.gpu_hours = seconds(step.ps) * static_cast<double>(step.ranks) / 3600 / step.tokens * kTrillion;
    if (result.campaign) {
        const campaign::CampaignReport& report = *result.campaign;
        cost.billed_gpu_hours = report.result
                                    .of([&](const campaign::ReplicaResult& r) {
                                        return r.tokens > 0 ? report.of(r).gpu_hours / r.tokens * kTrillion : 0.0;
                                    })
                                    .p50;
    }
    cost.cost = cost.gpu_hours * result.scenario->price_per_gpu_hour;
    cost.billed_cost = cost.billed_gpu_hours * result.scenario->price_per_gpu_hour;
    return cost;
}

Intervals intervals_of(const Headline& a, const Headline& b, double tokens_a, double tokens_b) {
    if (a.interval.runs == 0 || b.interval.runs == 0)
        return Intervals::unknown;
    const bool apart = tokens_a / a.interval.low_s < tokens_b / b.interval.high_s ||
                       tokens_b / b.interval.low_s < tokens_a / a.interval.high_s;
    return apart ? Intervals::apart : Intervals::overlap;
}

}  // namespace

Comparison compare(const Result& a, const Result& b, std::vector<KeyDifference> keys) {
    Comparison c;
    c.a = &a;
    c.b = &b;
    c.keys = std::move(keys);
    c.ran = a.step.ps > 0 && b.step.ps > 0;
    c.same_batch = a.step.tokens == b.step.tokens;
    c.same_gpus = a.step.ranks == b.step.ranks;
    if (!c.ran)
        return c;
    const auto per_gpu = [](__int128 rank_ps, const StepResult& step) {
        return static_cast<double>(rank_ps) / static_cast<double>(step.ranks) / 1e12;
    };
    const auto per_token = [](__int128 rank_ps, const StepResult& step) {
        return static_cast<double>(rank_ps) / 1e12 / (step.tokens / 1e6);
    };
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        if (a.step.accounts[i] == 0 && b.step.accounts[i] == 0)
            continue;
        AccountDifference row;
        row.account = static_cast<Account>(i);
        row.a_rank_ps = a.step.accounts[i];
        row.b_rank_ps = b.step.accounts[i];
        row.a_s = per_gpu(row.a_rank_ps, a.step);
        row.b_s = per_gpu(row.b_rank_ps, b.step);
        row.points = 100 * (row.b_s - row.a_s) / seconds(a.step.ps);
        row.a_per_token = per_token(row.a_rank_ps, a.step);
        row.b_per_token = per_token(row.b_rank_ps, b.step);
        c.accounts.push_back(row);
    }
    const auto gpu_time = [](const StepResult& step) {
        return seconds(step.ps) * static_cast<double>(step.ranks) / step.tokens;
    };
    c.gpu_s_per_token_ratio = gpu_time(b.step) / gpu_time(a.step);
    c.tokens_a = token_cost(a);
    c.tokens_b = token_cost(b);
    c.break_even = c.tokens_a.gpu_hours / c.tokens_b.gpu_hours;
    if (c.tokens_a.billed_gpu_hours > 0 && c.tokens_b.billed_gpu_hours > 0)
        c.billed_break_even = c.tokens_a.billed_gpu_hours / c.tokens_b.billed_gpu_hours;
    const Headline head_a = headline(a), head_b = headline(b);
    c.speed_ratio = head_b.tokens_per_s / head_a.tokens_per_s;
    c.intervals = intervals_of(head_a, head_b, a.step.tokens, b.step.tokens);
    const Scenario &sa = *a.scenario, &sb = *b.scenario;
    if (sa.price_per_gpu_hour > 0 && sb.price_per_gpu_hour > 0 && sa.currency == sb.currency)
        c.cost_ratio = c.gpu_s_per_token_ratio * sb.price_per_gpu_hour / sa.price_per_gpu_hour;
    return c;
}

namespace report {

std::string speed_words(double ratio) {
    if (ratio <= 0)
        return {};
    if (ratio > 0.9995 && ratio < 1.0005)
        return "as fast";
    const double times = ratio > 1 ? ratio : 1 / ratio;
    const char* word = ratio > 1 ? "faster" : "slower";
    return times < 1.1 ? fmt::format("{:.3f}x {}", times, word) : fmt::format("{:.2f}x {}", times, word);
}

std::string_view interval_words(Intervals intervals) {
    switch (intervals) {
        case Intervals::unknown: return "";
        case Intervals::overlap: return ", intervals overlap";
        case Intervals::apart: return ", intervals do not overlap";
    }
    return "";
}

}  // namespace report
}  // namespace fabricast
