#include "validate/score/run_score.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "sim/step/forecast.hpp"
#include "validate/score/parallel_rows.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

// Rough count of operations, to start the long rows first.
double effort(const PublishedRun& r) {
    const double passes = static_cast<double>(r.layers) / static_cast<double>(r.pp) *
                          static_cast<double>(r.micro_batches()) * (r.tp > 1 ? 14 : 4);
    return static_cast<double>(r.gpus) * passes;
}

// The sentence of a refusal without its place: "x.yaml:3:4: sentence" -> "sentence", first line only.
std::string sentence(const std::string& what) {
    std::string text = what.substr(0, what.find('\n'));
    if (const std::size_t space = text.find(": "); space != std::string::npos && text.find(':') < space)
        text = text.substr(space + 2);
    return text;
}

struct Outcome {
    RowScore row;
    std::string reason;
};

Outcome score_row(const PublishedRun& run, const Adjust& adjust,
                  const std::shared_ptr<const Calibration>& calibration) {
    Outcome out;
    out.row.run = &run;
    try {
        Scenario scenario = parse_scenario(run_scenario(run).yaml, run.id + ".yaml", {}, Scope::step, calibration);
        if (adjust)
            adjust(run, scenario);
        const Result result = forecast(scenario, {.over_memory = true, .critical_path = false});
        if (!result.failure.empty()) {
            out.reason = result.failure;
            return out;
        }
        out.row.predicted_s = seconds(result.step.ps);
        out.row.out_of_memory = result.verdict == "out of memory";
        out.row.hfu =
            result.step.hardware_flops / (run.step_s * result.step.peak_flops * static_cast<double>(result.step.ranks));
    } catch (const ScenarioError& refused) {
        out.reason = sentence(refused.what());
    }
    return out;
}

// tau-b of two orders, ties counted.
double kendall(const std::vector<double>& a, const std::vector<double>& b) {
    double agree = 0, ties_a = 0, ties_b = 0, pairs = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        for (std::size_t j = i + 1; j < a.size(); ++j) {
            const double x = a[i] - a[j], y = b[i] - b[j];
            pairs += 1;
            ties_a += x == 0;
            ties_b += y == 0;
            agree += x * y > 0 ? 1 : x * y < 0 ? -1 : 0;
        }
    }
    const double scale = std::sqrt((pairs - ties_a) * (pairs - ties_b));
    return scale > 0 ? agree / scale : 0;
}

void rank_groups(RunScore& score) {
    using Key =
        std::tuple<std::string, std::string, std::string, std::string, std::int64_t, std::int64_t, std::int64_t>;
    std::map<Key, std::vector<const RowScore*>> groups;
    for (const RowScore& row : score.scored) {
        const PublishedRun& r = *row.run;
        groups[{r.source_key, r.model, r.gpu, r.precision, r.gpus, r.global_batch, r.sequence}].push_back(&row);
    }
    constexpr std::size_t kSmallest = 4;
    for (const auto& [key, rows] : groups) {
        if (rows.size() < kSmallest)
            continue;
        std::vector<double> predicted, measured;
        for (const RowScore* row : rows) {
            predicted.push_back(row->predicted_s);
            measured.push_back(row->run->step_s);
        }
        RankingGroup group;
        const PublishedRun& r = *rows.front()->run;
        group.what = fmt::format("{}: {} on {} x {}, batch {}", r.source_key, r.model, r.gpus, r.gpu, r.global_batch);
        group.n = rows.size();
        group.kendall = kendall(predicted, measured);
        const auto chosen = std::min_element(predicted.begin(), predicted.end()) - predicted.begin();
        const double best = *std::min_element(measured.begin(), measured.end());
        group.regret = measured[static_cast<std::size_t>(chosen)] / best - 1;
        score.kendall += group.kendall;
        score.regret += group.regret;
        score.groups.push_back(std::move(group));
    }
    if (!score.groups.empty()) {
        score.kendall /= static_cast<double>(score.groups.size());
        score.regret /= static_cast<double>(score.groups.size());
    }
}

}  // namespace

ErrorStats error_stats(const std::vector<double>& errors) {
    ErrorStats s;
    s.n = errors.size();
    if (errors.empty())
        return s;
    std::vector<double> size;
    for (const double e : errors) {
        s.bias += e;
        s.mape += std::abs(e);
        size.push_back(std::abs(e));
    }
    s.bias /= static_cast<double>(s.n);
    s.mape /= static_cast<double>(s.n);
    std::sort(size.begin(), size.end());
    const auto quantile = [&](double q) {
        const double at = q * static_cast<double>(size.size() - 1);
        const auto low = static_cast<std::size_t>(at);
        const std::size_t high = std::min(low + 1, size.size() - 1);
        return size[low] + (at - static_cast<double>(low)) * (size[high] - size[low]);
    };
    s.median = quantile(0.5);
    s.p90 = quantile(0.9);
    return s;
}

std::string gpu_class(const PublishedRun& run) {
    const std::string family = run.gpu.substr(0, run.gpu.find('-'));
    const std::string part = run.gpu.find("HBM2e") != std::string::npos ? family + " HBM2e" : family;
    return part + " " + (run.precision == "fp16" || run.precision.empty() ? "bf16" : run.precision);
}

std::string run_kind(const PublishedRun& run) { return run.experts ? "moe" : "dense"; }

void summarise(RunScore& score) {
    std::map<std::string, std::vector<double>> source, gpu, kind;
    std::vector<double> all;
    for (const RowScore& row : score.scored) {
        const double e = row.error();
        all.push_back(e);
        source[row.run->source_key].push_back(e);
        gpu[gpu_class(*row.run)].push_back(e);
        kind[run_kind(*row.run)].push_back(e);
    }
    score.total = error_stats(all);
    const auto fill = [](const auto& from, auto& to) {
        to.clear();
        for (const auto& [name, errors] : from)
            to[name] = error_stats(errors);
    };
    fill(source, score.by_source);
    fill(gpu, score.by_gpu);
    fill(kind, score.by_kind);
    score.source_mean = 0;
    for (const auto& [name, stats] : score.by_source)
        score.source_mean += stats.mape / static_cast<double>(score.by_source.size());
    score.groups.clear();
    score.kendall = score.regret = 0;
    rank_groups(score);
}

RunScore score_runs(const std::vector<PublishedRun>& runs, unsigned jobs, const Adjust& adjust,
                    const std::shared_ptr<const Calibration>& calibration) {
    std::vector<std::size_t> order(runs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return effort(runs[a]) > effort(runs[b]); });
    std::vector<Outcome> outcomes(runs.size());
    for_each_row(order.size(), jobs,
                 [&](std::size_t i) { outcomes[order[i]] = score_row(runs[order[i]], adjust, calibration); });
    RunScore score;
    score.rows = runs.size();
    for (std::size_t i = 0; i < runs.size(); ++i) {
        if (outcomes[i].reason.empty())
            score.scored.push_back(outcomes[i].row);
        else
            score.skipped.push_back({&runs[i], outcomes[i].reason});
    }
    summarise(score);
    return score;
}

}  // namespace fabricast
