#include "validate/fit/fit_steps.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/report/measured.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/forecast.hpp"
#include "validate/fit/least_squares.hpp"
#include "validate/score/parallel_rows.hpp"
#include "validate/score/run_fit.hpp"
#include "validate/score/run_score_rules.hpp"

namespace fabricast {
namespace {

constexpr double kNudge = 1.1, kFelt = 0.005, kNoise = 0.02;
constexpr int kRounds = 2, kSettleSteps = 8;
using Part = Calibration::Owned Calibration::*;

/// One constant, or several that move together.
struct Knob {
    Part part = &Calibration::gpus;
    std::string owner;
    std::vector<std::string> keys;
    std::vector<double> starts;
    double sigma = .1, most = 1;
    std::string name() const { return owner + " " + keys.front(); }
};

std::string_view memory_key(Fusion fusion) {
    return fusion == Fusion::fused      ? "memory_bound.fused"
           : fusion == Fusion::compiled ? "memory_bound.compiled"
                                        : "memory_bound.eager";
}

void set(Calibration::Owned& part, const std::string& owner, const std::string& key, double value) {
    for (auto& [name, values] : part) {
        if (name != owner)
            continue;
        for (auto& [known, old] : values) {
            if (known == key) {
                old = value;
                return;
            }
        }
        values.emplace_back(key, value);
        return;
    }
    part.push_back({owner, {{key, value}}});
}

/// A slope d ln t / d ln x that moves a job.
bool felt(double slope) { return std::abs(slope) * std::log(kNudge) > kFelt; }

class Fitter {
public:
    Fitter(const std::vector<StepCase>& cases, const Calibration& known, unsigned jobs)
        : cases_(cases), known_(known), jobs_(jobs) {}
    StepFit fit();

private:
    void read_cases(StepFit& out);
    void check_one_gpu() const;
    bool efficiency_known(const std::string& network) const;
    void find_knobs();
    void add_knob(Part part, const std::string& owner, std::vector<std::string> keys, std::vector<double> starts,
                  double sigma, double most);
    void drop_knobs_not_felt();
    std::shared_ptr<const Calibration> calibration(const std::vector<double>& x) const;
    std::vector<double> log_times(const std::vector<double>& x, bool shortened) const;
    void linearise(const std::vector<double>& x);
    std::vector<double> solve(const std::vector<std::size_t>& rows, RobustFit* found = nullptr) const;
    std::vector<double> settle_between(const std::vector<std::size_t>& rows, const std::vector<double>& x) const;
    std::vector<double> linear_errors(const std::vector<std::size_t>& rows, const std::vector<double>& x) const;
    void report(const std::vector<double>& x, const RobustFit& found, StepFit& out);

    std::vector<StepCase> cases_;
    const Calibration& known_;
    unsigned jobs_;
    std::vector<Scenario> scenarios_;
    std::vector<double> defaults_;  ///< ln t with what is known alone
    std::vector<Knob> knobs_;
    std::vector<double> base_;                 ///< ln t at at_
    std::vector<double> at_;                   ///< factors of the knobs
    std::vector<std::vector<double>> slopes_;  ///< by case, by knob
};

/// Jobs that cannot be forecast are told and left out.
void Fitter::read_cases(StepFit& out) {
    const auto start = std::make_shared<const Calibration>(known_);
    const std::vector<double> times = forecast_cases(cases_, start, jobs_);
    for (std::size_t i = times.size(); i-- > 0;) {
        if (times[i] > 0)
            continue;
        out.warnings.push_back(cases_[i].where + ": the forecast refuses this job; it is left out");
        cases_.erase(cases_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    for (const double seconds : times) {
        if (seconds > 0)
            defaults_.push_back(std::log(seconds));
    }
    for (const StepCase& one : cases_) {
        try {
            scenarios_.push_back(parse_scenario(one.scenario, one.where, {}, Scope::step, start));
            const std::string doubted = doubt(
                parse_measurement(fmt::format("step_s={:.17g}", one.step_s), scenarios_.back()), scenarios_.back());
            if (!doubted.empty())
                out.warnings.push_back(one.where + ": " + doubted);
        } catch (const ScenarioError& error) {
            throw IngestError(one.where, 0, error.what());
        }
    }
}

/// As kernels and curves: constants are of one kind of GPU. Told before any job is forecast.
void Fitter::check_one_gpu() const {
    std::string first = known_.gpus.empty() ? "" : known_.gpus.front().first;
    for (const StepCase& one : cases_) {
        try {
            const std::string own = parse_scenario(one.scenario, one.where).gpu.name;
            if (!first.empty() && own != first)
                throw IngestError(one.where, 0,
                                  fmt::format("mixed GPUs, {} and {}: one calibration is of one site; choose with "
                                              "--source or --rows",
                                              first, own));
            first = own;
        } catch (const ScenarioError&) {
            // told by the forecast
        }
    }
}

void Fitter::add_knob(Part part, const std::string& owner, std::vector<std::string> keys, std::vector<double> starts,
                      double sigma, double most) {
    for (const Knob& knob : knobs_) {
        if (knob.part == part && knob.owner == owner && knob.keys == keys)
            return;
    }
    double room = 1e9;  // factor up to which every value stays a possible one
    for (const double start : starts)
        room = std::min(room, most / start);
    knobs_.push_back({part, owner, std::move(keys), std::move(starts), sigma, room});
}

bool Fitter::efficiency_known(const std::string& network) const {
    const Calibration::Values* values = known_.find(known_.networks, network);
    return values != nullptr &&
           std::any_of(values->begin(), values->end(), [](const auto& one) { return one.first == "efficiency"; });
}

void Fitter::find_knobs() {
    for (const Scenario& s : scenarios_) {
        GpuSpec gpu = s.gpu;
        const auto of_gpu = [&](std::vector<std::string> keys, double sigma, double most) {
            std::vector<double> starts;
            for (const std::string& key : keys)
                starts.push_back(*calibrated_value(gpu, key));
            add_knob(&Calibration::gpus, gpu.name, std::move(keys), std::move(starts), sigma, most);
        };
        of_gpu({"gemm.sustained"}, .05, 1);
        of_gpu({std::string(memory_key(s.software.fusion))}, .15, .95);
        if (s.software.attention != "unfused")
            of_gpu({fmt::format("attention.{}.e128", s.software.attention),
                    fmt::format("attention.{}.e64", s.software.attention)},
                   .15, .95);
        if (gpu.nvlink_achieved_bytes_per_s > 0 && gpu.nvlink_nominal_bytes_per_s > 0)
            of_gpu({"nvlink_achieved"}, .05, gpu.nvlink_nominal_bytes_per_s);
        if (s.software.host_per_layer_s > 0 && !s.software.cuda_graphs)
            add_knob(&Calibration::software, s.software.name, {"host_per_layer"}, {s.software.host_per_layer_s}, .4,
                     .05);
        if (s.nodes > 1 && !efficiency_known(s.node.network))
            add_knob(&Calibration::networks, s.node.network, {"efficiency"}, {s.node.nic_efficiency}, .1, 1);
        if (s.software.tp_hidden_fraction > 0)
            add_knob(&Calibration::software, s.software.name, {"tp_hidden_fraction"}, {s.software.tp_hidden_fraction},
                     .2, .95);
    }
}

std::shared_ptr<const Calibration> Fitter::calibration(const std::vector<double>& x) const {
    auto out = std::make_shared<Calibration>(known_);
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
        for (std::size_t i = 0; i < knobs_[k].keys.size(); ++i)
            set((*out).*knobs_[k].part, knobs_[k].owner, knobs_[k].keys[i], knobs_[k].starts[i] * x[k]);
    }
    return out;
}

std::vector<double> Fitter::log_times(const std::vector<double>& x, bool shortened) const {
    std::vector<double> out;
    for (const double seconds : forecast_cases(cases_, calibration(x), jobs_, shortened))
        out.push_back(seconds > 0 ? std::log(seconds) : 0);
    return out;
}

void Fitter::linearise(const std::vector<double>& x) {
    at_ = x;
    base_ = log_times(x, false);
    const std::vector<double> still = log_times(x, true);
    slopes_.assign(cases_.size(), std::vector<double>(knobs_.size(), 0));
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
        std::vector<double> moved = x;
        moved[k] *= x[k] * kNudge <= knobs_[k].most ? kNudge : 1 / kNudge;
        const std::vector<double> there = log_times(moved, true);
        for (std::size_t i = 0; i < cases_.size(); ++i)
            slopes_[i][k] = (there[i] - still[i]) / std::log(moved[k] / x[k]);
    }
}

std::vector<double> Fitter::linear_errors(const std::vector<std::size_t>& rows, const std::vector<double>& x) const {
    std::vector<double> out;
    for (const std::size_t i : rows) {
        double error = base_[i] - std::log(cases_[i].step_s);
        for (std::size_t k = 0; k < knobs_.size(); ++k)
            error += slopes_[i][k] * std::log(x[k] / at_[k]);
        out.push_back(error);
    }
    return out;
}

/// Constants that move no job stay as they are, and out of the file.
void Fitter::drop_knobs_not_felt() {
    bool network = false;
    for (std::size_t k = knobs_.size(); k-- > 0;) {
        if (std::any_of(slopes_.begin(), slopes_.end(), [&](const auto& of_case) { return felt(of_case[k]); }))
            continue;
        network |= knobs_[k].part == &Calibration::networks;
        const auto at = static_cast<std::ptrdiff_t>(k);
        knobs_.erase(knobs_.begin() + at);
        at_.erase(at_.begin() + at);
        for (std::vector<double>& of_case : slopes_)
            of_case.erase(of_case.begin() + at);
    }
    if (network)  // a network that a calibration names brings its hops with it
        base_ = log_times(at_, false);
}

std::vector<double> Fitter::solve(const std::vector<std::size_t>& rows, RobustFit* found) const {
    std::vector<FitParameter> free;
    std::vector<std::size_t> index;
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
        if (std::none_of(rows.begin(), rows.end(), [&](std::size_t i) { return felt(slopes_[i][k]); }))
            continue;
        free.push_back({knobs_[k].name(), 1, .3, knobs_[k].most, knobs_[k].sigma, 0});
        index.push_back(k);
    }
    std::vector<double> x(knobs_.size(), 1);
    const RobustFit fit = robust_least_squares(free,
                                               [&](const std::vector<double>& values) {
                                                   std::vector<double> at(knobs_.size(), 1);
                                                   for (std::size_t k = 0; k < index.size(); ++k)
                                                       at[index[k]] = values[k];
                                                   return linear_errors(rows, at);
                                               },
                                               {.floor = kNoise, .most_iterations = 20});
    for (std::size_t k = 0; k < index.size(); ++k)
        x[index[k]] = fit.values[k];
    if (found != nullptr)
        *found = fit;
    return settle_between(rows, x);
}

/// Where between the defaults and a fit the median error of its own jobs is least, as in fit_curves.cpp.
std::vector<double> Fitter::settle_between(const std::vector<std::size_t>& rows,
                                           const std::vector<double>& fitted) const {
    std::vector<double> best(fitted.size(), 1);
    double least = median_error(linear_errors(rows, best));
    for (int step = 1; step <= kSettleSteps; ++step) {
        std::vector<double> x;
        for (const double end : fitted)
            x.push_back(1 + (end - 1) * step / kSettleSteps);
        const double error = median_error(linear_errors(rows, x));
        if (error < least) {
            least = error;
            best = std::move(x);
        }
    }
    return best;
}

void Fitter::report(const std::vector<double>& x, const RobustFit& found, StepFit& out) {
    std::set<std::string> groups;
    for (const StepCase& one : cases_)
        groups.insert(one.group);
    const bool by_case = groups.size() < 2;
    std::vector<double> cross(cases_.size());
    std::map<std::string, std::vector<std::size_t>> left_out;
    for (std::size_t i = 0; i < cases_.size(); ++i)
        left_out[by_case ? fmt::format("{:09}", i) : cases_[i].group].push_back(i);
    for (const auto& [group, own] : left_out) {
        std::vector<std::size_t> others;
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (std::find(own.begin(), own.end(), i) == own.end())
                others.push_back(i);
        }
        const std::vector<double> errors =
            linear_errors(own, others.empty() ? std::vector<double>(knobs_.size(), 1) : solve(others));
        for (std::size_t i = 0; i < own.size(); ++i)
            cross[own[i]] = errors[i];
    }
    const std::vector<double> times = log_times(x, false);
    std::map<std::string, PartFit> parts;
    std::map<std::string, std::vector<std::int64_t>> sizes;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
        const Scenario& s = scenarios_[i];
        const std::string what = fmt::format("steps {} {}", s.model.moe.experts > 0 ? "moe" : "dense", s.gpu.name);
        PartFit& part = parts[what];
        part.what = what;
        part.crossed = left_out.size() > 1;
        const double measured = std::log(cases_[i].step_s);
        part.points.push_back({cases_[i].where, cases_[i].group, defaults_[i] - measured, times[i] - measured, cross[i],
                               found.weights[i] == 0});
        sizes[what].push_back(s.training.layout.world());
    }
    PartFit all;  // constants are shared: they are kept or refused for all jobs together
    all.what = "steps";
    all.crossed = left_out.size() > 1;
    for (const auto& [what, part] : parts)
        all.points.insert(all.points.end(), part.points.begin(), part.points.end());
    settle(all);
    if (all.kept && std::all_of(x.begin(), x.end(), [](double one) { return one == 1; })) {
        all.kept = false;
        all.reason = fmt::format("{}: no constants explain these jobs better than the defaults (median error {:.1f} %)",
                                 all.what, 100 * all.default_median);
    }
    for (auto& [what, part] : parts) {
        settle(part);
        part.kept = all.kept;
        part.reason = all.reason;
        CalibrationFit fit;
        fit.what = what;
        fit.points = static_cast<int>(part.points.size());
        fit.median = part.fitted_median;
        fit.default_median = part.default_median;
        std::vector<double> errors;
        for (const FittedPoint& p : part.points)
            errors.push_back(part.crossed ? p.cross_error : p.fitted_error);
        fit.p10 = ratio_quantile(errors, .1);
        fit.p90 = ratio_quantile(errors, .9);
        const auto [least, most] = std::minmax_element(sizes[what].begin(), sizes[what].end());
        fit.gpus = {*least, *most};
        if (part.kept)
            out.fits.push_back(std::move(fit));
        out.parts.push_back(std::move(part));
    }
}

StepFit Fitter::fit() {
    StepFit out;
    check_one_gpu();
    read_cases(out);
    if (cases_.empty())
        return out;
    find_knobs();
    std::vector<std::size_t> all(cases_.size());
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = i;
    std::vector<double> x(knobs_.size(), 1);
    RobustFit found;
    for (int round = 0; round < kRounds; ++round) {
        linearise(x);
        if (round == 0)
            drop_knobs_not_felt();
        x = solve(all, &found);
    }
    report(x, found, out);
    const bool kept = std::all_of(out.parts.begin(), out.parts.end(), [](const PartFit& part) { return part.kept; });
    if (!kept)
        return out;
    Calibration fitted;
    for (std::size_t k = 0; k < knobs_.size(); ++k) {
        for (std::size_t i = 0; x[k] != 1 && i < knobs_[k].keys.size(); ++i)
            set(fitted.*knobs_[k].part, knobs_[k].owner, knobs_[k].keys[i], knobs_[k].starts[i] * x[k]);
    }
    out.gpus = std::move(fitted.gpus);
    out.networks = std::move(fitted.networks);
    out.software = std::move(fitted.software);
    return out;
}

}  // namespace

std::vector<StepCase> step_cases(const MeasurementFile& m) {
    std::vector<StepCase> out;
    for (const MeasuredStep& step : m.steps)
        out.push_back({fmt::format("{}: {}", m.file, step.what), step.group.empty() ? step.what : step.group,
                       step.scenario, step.scenario, step.step_s});
    return out;
}

std::vector<StepCase> step_cases(const std::vector<PublishedRun>& runs, const std::string& file) {
    std::vector<StepCase> out;
    for (const PublishedRun& run : runs)
        out.push_back({fmt::format("{}:{}: {}", file, run.line, run.id), run.model, run_scenario(run).yaml,
                       run_scenario(shortened(run)).yaml, run.step_s});
    return out;
}

std::vector<double> forecast_cases(const std::vector<StepCase>& cases,
                                   const std::shared_ptr<const Calibration>& calibration, unsigned jobs,
                                   bool shortened) {
    std::vector<double> out(cases.size(), 0);
    for_each_row(cases.size(), jobs, [&](std::size_t i) {
        try {
            const Scenario s = parse_scenario(shortened ? cases[i].shortened : cases[i].scenario, cases[i].where, {},
                                              Scope::step, calibration);
            const Result result = forecast(s, {.over_memory = true, .critical_path = false});
            out[i] = result.failure.empty() ? seconds(result.step.ps) : 0;
        } catch (const ScenarioError&) {
            out[i] = 0;
        }
    });
    return out;
}

StepFit fit_steps(const std::vector<StepCase>& cases, const Calibration& known, unsigned jobs) {
    return Fitter(cases, known, jobs).fit();
}

}  // namespace fabricast
