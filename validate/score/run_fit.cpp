#include "validate/score/run_fit.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include "models/compute/spread.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

struct Constant {
    const char* name;
    const char* rows;
    bool (*applies)(const Scenario&);
    void (*scale)(Scenario&, double);
    double least, most;  ///< factor; the upper ends keep rates inside what kernels reach
};

bool ampere(const Scenario& s) { return s.gpu.generation == GpuGeneration::ampere; }
bool hopper(const Scenario& s) { return s.gpu.generation == GpuGeneration::hopper; }
bool grace(const Scenario& s) { return s.gpu.name.starts_with("GB"); }
bool blackwell(const Scenario& s) { return s.gpu.generation == GpuGeneration::blackwell && !grace(s); }
void scale_gemm(Scenario& s, double f) { s.gpu.gemm.sustained = std::min(1.0, s.gpu.gemm.sustained * f); }
double memory(double fraction, double f) { return std::min(0.95, fraction * f); }

constexpr Constant kConstants[] = {
    {"gemm A100", "all A100 rows", ampere, scale_gemm, 0.8, 1.06},
    {"gemm Hopper", "all H100 and H200 rows", hopper, scale_gemm, 0.8, 1.1},
    {"gemm B200", "B200 rows of two sources", blackwell, scale_gemm, 0.7, 1.3},
    {"gemm GB200", "GB200 and GB300 rows of two sources", grace, scale_gemm, 0.7, 1.2},
    {"memory fused", "rows of fused stacks", [](const Scenario& s) { return s.software.fusion == Fusion::fused; },
     [](Scenario& s, double f) { s.gpu.memory.fused = memory(s.gpu.memory.fused, f); }, 0.7, 1.25},
    {"memory unfused", "rows of eager and compiled stacks",
     [](const Scenario& s) { return s.software.fusion != Fusion::fused; },
     [](Scenario& s, double f) {
         s.gpu.memory.compiled = memory(s.gpu.memory.compiled, f);
         s.gpu.memory.eager = memory(s.gpu.memory.eager, f);
     },
     0.7, 1.35},
    {"attention fa1", "llmfoundry", [](const Scenario& s) { return s.software.attention == "fa1"; },
     [](Scenario& s, double f) {
         s.gpu.attention["fa1"].e128 *= f;
         s.gpu.attention["fa1"].e64 *= f;
     },
     0.7, 1.5},
    {"host per layer", "vtrain and vtrain1n", [](const Scenario& s) { return s.software.host_per_layer_s > 5e-4; },
     [](Scenario& s, double f) { s.software.host_per_layer_s *= f; }, 0.6, 1.5},
    {"tp hidden", "rows of stacks with chunked products",
     [](const Scenario& s) { return s.software.tp_hidden_fraction > 0 && s.training.layout.tp > 1; },
     [](Scenario& s, double f) { s.software.tp_hidden_fraction = std::min(0.95, s.software.tp_hidden_fraction * f); },
     0.3, 1.5},
    {"kernel jitter", "rows of several groups of 8 GPUs",
     [](const Scenario& s) { return std::int64_t{s.nodes} * s.node.gpus > kJitterGpus; },
     [](Scenario& s, double f) { s.kernel_jitter *= f; }, 0.3, 2},
};
constexpr double kNudge = 1.1;
constexpr double kPull = 0.3;                      ///< cost of (ln factor)^2, a row that sees it
constexpr double kMostBias = 0.01, kBiasCost = 5;  ///< mean signed error allowed, and cost of what is beyond, a row

}  // namespace

PublishedRun shortened(const PublishedRun& run) {
    PublishedRun out = run;
    if (run.experts || run.zero.find("degree") != std::string::npos)
        return out;
    constexpr std::int64_t kGpus = 64;
    const std::int64_t model = run.tp * run.pp * run.cp;
    std::int64_t dp = std::max<std::int64_t>(1, kGpus / model);
    if (run.gpus <= run.gpus_per_node || dp >= run.dp)
        dp = run.dp;
    while (run.dp % dp != 0 || (model * dp) % run.gpus_per_node != 0) {
        if (++dp >= run.dp) {
            dp = run.dp;
            break;
        }
    }
    const std::int64_t most = 4 * run.pp, batches = std::min(run.micro_batches(), std::max<std::int64_t>(most, 2));
    out.dp = dp;
    out.gpus = model * dp;
    out.global_batch = dp * run.micro_batch * batches;
    return out;
}

std::vector<std::pair<std::string, std::string>> fitted_constants() {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Constant& c : kConstants)
        out.emplace_back(c.name, c.rows);
    return out;
}

void apply_factors(const Factors& factors, Scenario& scenario) {
    for (const Constant& c : kConstants) {
        const auto at = factors.find(c.name);
        if (at != factors.end() && at->second != 1 && c.applies(scenario))
            c.scale(scenario, at->second);
    }
}

void forget_stack(Scenario& scenario) {
    SoftwareFeatures& f = scenario.software;
    if (f.attention == "fa1")
        f.attention = "fa2";
    f.host_per_layer_s = f.host_per_step_s = f.host_per_shard_s = 0;
}

RunFitter::RunFitter(const std::vector<PublishedRun>& runs, unsigned jobs) : base_(score_runs(runs, jobs)) {
    std::vector<PublishedRun> small;
    std::map<std::string, std::size_t> index;
    for (const RowScore& row : base_.scored) {
        index[row.run->id] = rows_.size();
        rows_.push_back({&row, {}});
        small.push_back(shortened(*row.run));
    }
    const RunScore still = score_runs(small, jobs);
    std::map<std::string, double> before;
    for (const RowScore& row : still.scored)
        before[row.run->id] = row.predicted_s;
    for (const Constant& c : kConstants) {
        std::vector<PublishedRun> touched;
        for (const PublishedRun& run : small) {
            const Scenario s = parse_scenario(run_scenario(run).yaml, run.id);
            if (c.applies(s) && before.contains(run.id))
                touched.push_back(run);
        }
        // Factors that would meet a bound are tried downwards.
        const double nudge = c.most > kNudge ? kNudge : 1 / kNudge;
        const RunScore moved = score_runs(touched, jobs, [&](const PublishedRun&, Scenario& s) {
            apply_factors({{c.name, nudge}}, s);
        });
        for (const RowScore& row : moved.scored)
            rows_[index[row.run->id]].sensitivity[c.name] =
                std::log(row.predicted_s / before[row.run->id]) / std::log(nudge);
    }
}

RunFit RunFitter::fit(const std::string& without) const {
    RunFit out;
    for (const Constant& c : kConstants)
        out.factors[c.name] = 1;
    const auto errors = [&](const Factors& factors) {
        std::vector<double> all;
        for (const Row& row : rows_) {
            if (row.score->run->source_key == without)
                continue;
            double log_t = std::log(row.score->predicted_s / row.score->run->step_s);
            for (const auto& [name, s] : row.sensitivity)
                log_t += s * std::log(factors.at(name));
            all.push_back(std::exp(log_t) - 1);
        }
        return all;
    };
    // Rows of a source share what it does not state: n of them tell as much as sqrt(n) that are independent.
    std::map<std::string, double> size;
    for (const Row& row : rows_)
        ++size[row.score->run->source_key];
    std::vector<double> weights;
    for (const Row& row : rows_)
        if (row.score->run->source_key != without)
            weights.push_back(1 / std::sqrt(size[row.score->run->source_key]));
    const double rows = static_cast<double>(weights.size());
    const double scale = rows / std::accumulate(weights.begin(), weights.end(), 0.0);
    std::map<std::string, double> seen;  // constants that remaining rows see, by the rows' weight
    std::size_t at = 0;
    for (const Row& row : rows_) {
        if (row.score->run->source_key == without)
            continue;
        weights[at] *= scale;
        for (const auto& [name, s] : row.sensitivity)
            seen[name] += weights[at];
        ++at;
    }
    // Factors stay near 1 unless the rows that see them say otherwise.
    const auto cost = [&](const Factors& factors) {
        const std::vector<double> all = errors(factors);
        double sum = 0, bias = 0;
        for (std::size_t i = 0; i < all.size(); ++i) {
            sum += weights[i] * std::abs(all[i]);
            bias += weights[i] * all[i];
        }
        sum += kBiasCost * std::max(0.0, std::abs(bias) - kMostBias * rows);
        for (const auto& [name, weight] : seen)
            sum += kPull * weight * std::log(factors.at(name)) * std::log(factors.at(name));
        return sum;
    };
    // The steepest of all steps of one constant, or of two at once: where the mean signed error binds, one alone gets stuck.
    struct Move {
        const Constant* constant[2];
        double direction[2];
    };
    std::vector<Move> moves;
    for (const Constant& c : kConstants) {
        if (!seen.contains(c.name))
            continue;
        for (const double one : {1.0, -1.0}) {
            moves.push_back({{&c, nullptr}, {one, 0}});
            for (const Constant* d = kConstants; d != &c; ++d)
                for (const double other : {1.0, -1.0})
                    if (seen.contains(d->name))
                        moves.push_back({{&c, d}, {one, other}});
        }
    }
    double best = cost(out.factors);
    for (double step = 0.08; step > 0.002; step /= 2) {
        for (bool moved = true; moved;) {
            moved = false;
            Factors steepest;
            for (const Move& move : moves) {
                Factors tried = out.factors;
                for (int i = 0; i < 2; ++i) {
                    if (const Constant* c = move.constant[i])
                        tried[c->name] = std::clamp(tried[c->name] * (1 + move.direction[i] * step), c->least, c->most);
                }
                const double sum = cost(tried);
                if (sum < best - 1e-9) {
                    best = sum;
                    steepest = tried;
                    moved = true;
                }
            }
            if (moved)
                out.factors = steepest;
        }
    }
    out.linear = error_stats(errors(out.factors));
    return out;
}

Json RunFitter::json(const RunFit& fit) const {
    Json rows = Json::array();
    for (const Row& row : rows_)
        rows.push_back({{"id", row.score->run->id},
                        {"source", row.score->run->source_key},
                        {"error", row.score->predicted_s / row.score->run->step_s - 1},
                        {"sensitivity", row.sensitivity}});
    return {{"schema", "fabricast-run-refit/1"}, {"factors", fit.factors},    {"mape", fit.linear.mape},
            {"bias", fit.linear.bias},           {"p90_ape", fit.linear.p90}, {"runs", rows}};
}

LosoScore score_loso(const std::vector<PublishedRun>& runs, unsigned jobs) {
    const RunFitter fitter(runs, jobs);
    LosoScore score;
    score.all = fitter.fit("");
    for (const PublishedRun& run : runs)
        if (!score.factors.contains(run.source_key))
            score.factors[run.source_key] = fitter.fit(run.source_key).factors;
    score.known = score_runs(
        runs, jobs, [&](const PublishedRun& run, Scenario& s) { apply_factors(score.factors.at(run.source_key), s); });
    score.blind = score_runs(runs, jobs, [&](const PublishedRun& run, Scenario& s) {
        apply_factors(score.factors.at(run.source_key), s);
        forget_stack(s);
    });
    return score;
}

std::string refit_text(const RunFit& fit) {
    std::string text = fmt::format("{:<18} {:>8}  {}\n", "constant", "factor", "rows that see it");
    for (const auto& [name, rows] : fitted_constants())
        text += fmt::format("{:<18} {:>8.3f}  {}\n", name, fit.factors.at(name), rows);
    return text + fmt::format("{} rows in the linear form: mean error {:.2f} %, p90 {:.1f} %, bias {:+.2f} %\n",
                              fit.linear.n, 100 * fit.linear.mape, 100 * fit.linear.p90, 100 * fit.linear.bias);
}

std::string loso_text(const LosoScore& score) {
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "leave one source out, {} rows\n\n{:<18} {:>5} {:>15} {:>15}\n", score.known.scored.size(),
                   "source", "rows", "stack known", "blind");
    const auto line = [&](const std::string& name, const ErrorStats& known, const ErrorStats& blind) {
        fmt::format_to(out, "{:<18} {:>5} {:>6.1f}% {:>+6.1f}% {:>6.1f}% {:>+6.1f}%\n", name, known.n, 100 * known.mape,
                       100 * known.bias, 100 * blind.mape, 100 * blind.bias);
    };
    for (const auto& [name, known] : score.known.by_source)
        line(name, known, score.blind.by_source.at(name));
    line("all rows", score.known.total, score.blind.total);
    fmt::format_to(out, "p90 {:.1f} % and {:.1f} %, source mean {:.1f} % and {:.1f} %\n\n", 100 * score.known.total.p90,
                   100 * score.blind.total.p90, 100 * score.known.source_mean, 100 * score.blind.source_mean);
    fmt::format_to(out, "{:<18} {:>8}  {}\n", "constant", "factor", "without each source (range); rows that see it");
    for (const auto& [name, rows] : fitted_constants()) {
        double least = 10, most = 0;
        for (const auto& [source, factors] : score.factors) {
            least = std::min(least, factors.at(name));
            most = std::max(most, factors.at(name));
        }
        fmt::format_to(out, "{:<18} {:>8.3f}  {:.3f} to {:.3f}; {}\n", name, score.all.factors.at(name), least, most,
                       rows);
    }
    fmt::format_to(out, "refitted on all rows: mean error {:.1f} %, bias {:+.1f} %\n", 100 * score.all.linear.mape,
                   100 * score.all.linear.bias);
    return text;
}

Json loso_json(const LosoScore& score) {
    Json factors = Json::object();
    for (const auto& [source, values] : score.factors)
        factors[source] = values;
    Json out = run_score_json(score.known);
    out["schema"] = "fabricast-run-score-loso/1";
    Json blind = run_score_json(score.blind);
    for (const char* key : {"runs", "skipped", "schema", "groups"})
        blind.erase(key);
    out["blind"] = blind;
    out["factors"] = factors;
    out["refit"] = {{"factors", score.all.factors},
                    {"mape", score.all.linear.mape},
                    {"bias", score.all.linear.bias},
                    {"p90_ape", score.all.linear.p90}};
    return out;
}

}  // namespace fabricast
