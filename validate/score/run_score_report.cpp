// Text and JSON of a run score.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "sim/report/interval.hpp"
#include "validate/score/run_score.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

void table(std::string& text, std::string_view title, const std::map<std::string, ErrorStats>& rows) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "\n{:<18} {:>5} {:>7} {:>7} {:>7} {:>7}\n", title, "rows", "mape", "median", "p90", "bias");
    for (const auto& [name, s] : rows)
        fmt::format_to(out, "{:<18} {:>5} {:>6.1f}% {:>6.1f}% {:>6.1f}% {:>+6.1f}%\n", name, s.n, 100 * s.mape,
                       100 * s.median, 100 * s.p90, 100 * s.bias);
}

// Reasons with the rows they hold for, most rows first.
std::vector<std::pair<std::string, std::vector<std::string>>> reasons(const RunScore& score) {
    std::vector<std::pair<std::string, std::vector<std::string>>> out;
    for (const SkippedRow& row : score.skipped) {
        auto at = std::find_if(out.begin(), out.end(), [&](const auto& one) { return one.first == row.reason; });
        if (at == out.end())
            at = out.insert(out.end(), {row.reason, {}});
        at->second.push_back(row.run->id);
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second.size() > b.second.size(); });
    return out;
}

Json stats_json(const ErrorStats& s) {
    return {{"n", s.n}, {"mape", s.mape}, {"bias", s.bias}, {"median_ape", s.median}, {"p90_ape", s.p90}};
}
Json stats_json(const std::map<std::string, ErrorStats>& rows) {
    Json out = Json::object();
    for (const auto& [name, s] : rows)
        out[name] = stats_json(s);
    return out;
}

}  // namespace

std::string residuals_yaml(const RunScore& score) {
    std::map<std::pair<std::string, std::string>, std::vector<double>> classes;
    for (const RowScore& row : score.scored) {
        const std::string kind = run_kind(*row.run);
        const std::string family = gpu_family(row.run->gpu);
        classes[{kind, family}].push_back(1 + row.error());
        classes[{kind, "all"}].push_back(1 + row.error());
    }
    std::string text =
        "# Written by `fabricast-validate score runs published_runs.csv --residuals`: predicted / measured step time "
        "of\n"
        "# published runs, by class. In sample: the constants saw these runs.\nclasses:\n";
    for (auto& [name, ratios] : classes) {
        std::sort(ratios.begin(), ratios.end());
        const auto at = [&ratios = ratios](double q) {
            return ratios[static_cast<std::size_t>(q * static_cast<double>(ratios.size() - 1) + 0.5)];
        };
        fmt::format_to(std::back_inserter(text),
                       "  - {{model: {}, gpu: {}, runs: {}, p10: {:.3f}, p50: {:.3f}, p90: {:.3f}}}\n", name.first,
                       name.second, ratios.size(), at(0.1), at(0.5), at(0.9));
    }
    return text;
}

std::string run_score_text(const RunScore& score, bool full) {
    std::string text;
    const auto out = std::back_inserter(text);
    if (full) {
        fmt::format_to(out, "rules for what a row leaves blank; the first that holds counts\n");
        for (const FillRule& rule : fill_rules())
            fmt::format_to(out, "  {:<12} {:<12} {:<38} {:<26} {}\n", rule.field, rule.source, rule.when, rule.value,
                           rule.why);
        fmt::format_to(out, "\n{:<18} {:>10} {:>10} {:>7} {:>6}  {}\n", "row", "measured", "predicted", "error", "HFU",
                       "filled");
        for (const RowScore& row : score.scored) {
            std::string filled;
            for (const Filled& f : run_scenario(*row.run).filled)
                filled += fmt::format("{}{} {}", filled.empty() ? "" : ", ", f.field, f.value);
            fmt::format_to(out, "{:<18} {:>8.3f} s {:>8.3f} s {:>+6.1f}% {:>5.1f}%  {}{}\n", row.run->id,
                           row.run->step_s, row.predicted_s, 100 * row.error(), 100 * row.hfu,
                           row.out_of_memory ? "predicted out of memory; " : "", filled);
        }
        fmt::format_to(out, "\n");
    }
    const std::size_t over = static_cast<std::size_t>(
        std::count_if(score.scored.begin(), score.scored.end(), [](const RowScore& r) { return r.out_of_memory; }));
    fmt::format_to(out, "{} of {} runs scored: mean error {:.1f} %, median {:.1f} %, p90 {:.1f} %, bias {:+.1f} %; ",
                   score.scored.size(), score.rows, 100 * score.total.mape, 100 * score.total.median,
                   100 * score.total.p90, 100 * score.total.bias);
    fmt::format_to(out, "source mean {:.1f} %; {} predicted out of memory\n", 100 * score.source_mean, over);
    table(text, "source", score.by_source);
    table(text, "GPU, precision", score.by_gpu);
    table(text, "model", score.by_kind);
    if (!score.groups.empty()) {
        fmt::format_to(out,
                       "\nlayouts of one model, GPU count and batch: Kendall {:.2f}, regret {:.1f} % over {} groups\n",
                       score.kendall, 100 * score.regret, score.groups.size());
        for (const RankingGroup& g : score.groups)
            fmt::format_to(out, "  {:<64} {:>3} layouts, Kendall {:>5.2f}, regret {:>4.1f} %\n", g.what, g.n, g.kendall,
                           100 * g.regret);
    }
    if (!score.skipped.empty())
        fmt::format_to(out, "\nnot scored\n");
    for (const auto& [reason, rows] : reasons(score)) {
        fmt::format_to(out, "  {:>3}  {} (", rows.size(), reason);
        for (std::size_t i = 0; i < rows.size() && (full || i < 3); ++i)
            fmt::format_to(out, "{}{}", i > 0 ? ", " : "", rows[i]);
        fmt::format_to(out, "{})\n", !full && rows.size() > 3 ? ", ..." : "");
    }
    return text;
}

Json run_score_json(const RunScore& score) {
    Json skipped = Json::array(), runs = Json::array(), groups = Json::array();
    for (const SkippedRow& row : score.skipped)
        skipped.push_back({{"id", row.run->id}, {"reason", row.reason}});
    for (const RowScore& row : score.scored)
        runs.push_back({{"id", row.run->id},
                        {"source", row.run->source_key},
                        {"measured_s", row.run->step_s},
                        {"predicted_s", row.predicted_s},
                        {"error", row.error()},
                        {"implied_hfu", row.hfu},
                        {"out_of_memory", row.out_of_memory}});
    for (const RankingGroup& g : score.groups)
        groups.push_back({{"what", g.what}, {"layouts", g.n}, {"kendall", g.kendall}, {"regret", g.regret}});
    return {
        {"schema", "fabricast-run-score/1"},
        {"rows", score.rows},
        {"scored", score.scored.size()},
        {"coverage", score.rows > 0 ? static_cast<double>(score.scored.size()) / static_cast<double>(score.rows) : 0},
        {"mape", score.total.mape},
        {"median_ape", score.total.median},
        {"p90_ape", score.total.p90},
        {"bias", score.total.bias},
        {"source_mean", score.source_mean},
        {"by_source", stats_json(score.by_source)},
        {"by_gpu", stats_json(score.by_gpu)},
        {"by_model", stats_json(score.by_kind)},
        {"kendall", score.kendall},
        {"regret", score.regret},
        {"groups", groups},
        {"skipped", skipped},
        {"runs", runs}};
}

}  // namespace fabricast
