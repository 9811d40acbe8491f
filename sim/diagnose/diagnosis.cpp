#include "sim/diagnose/diagnosis.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/compute/math.hpp"
#include "sim/diagnose/evidence.hpp"
#include "sim/diagnose/metrics.hpp"

namespace fabricast {
namespace {

constexpr double kTenToNinety = 2.5631;  // standard deviations between 10 and 90 %
constexpr double kMostBehind = 12;       // nats, of a family that fits worse
constexpr double kAlike = 1;             // nats of fit
constexpr double kScatters = 3;          // nats for lengths that differ, where steps scatter too
constexpr double kLeastProbability = 0.003;
constexpr std::size_t kMostCauses = 6, kStretches = 8;

/// Probabilities from scores, and what is too unlikely or too far down goes.
void settle(Explained& out, double something_else) {
    std::stable_sort(out.causes.begin(), out.causes.end(),
                     [](const Cause& a, const Cause& b) { return a.score > b.score; });
    double top = something_else, sum = 0;
    for (const Cause& c : out.causes)
        top = std::max(top, c.score);
    for (const Cause& c : out.causes)
        sum += math::exp(c.score - top);
    sum += math::exp(something_else - top);
    for (Cause& c : out.causes)
        c.probability = math::exp(c.score - top) / sum;
    out.something_else = math::exp(something_else - top) / sum;
    if (out.causes.size() > kMostCauses)
        out.causes.resize(kMostCauses);
    while (out.causes.size() > 3 && out.causes.back().probability < kLeastProbability)
        out.causes.pop_back();
    out.alike = out.causes.size() > 1 && std::abs(out.causes[0].fit - out.causes[1].fit) < kAlike &&
                out.causes[1].probability > 0.02;
}

class Diagnoser {
public:
    Diagnoser(const Scenario& s, const Result& healthy, const ForecastInterval& interval, const StepSeries& series,
              FaultSteps& steps, Diagnosis& out)
        : s_(s), series_(series), out_(out), steps_(steps) {
        out_.forecast_s = seconds(healthy.step.ps);
        out_.low_s = interval.low_s > 0 ? interval.low_s : out_.forecast_s / 1.15;
        out_.high_s = interval.high_s > 0 ? interval.high_s : out_.forecast_s * 1.15;
        out_.like = interval.like;
        spread_ = math::log(out_.high_s / out_.low_s) / kTenToNinety;
        bias_ = math::log(out_.low_s * out_.high_s / (out_.forecast_s * out_.forecast_s)) / 2;
    }

    void run() {
        describe();
        EvidenceMaker maker(s_, steps_, out_.picture, series_, spread_, out_.base_s);
        for (const Finding& finding : out_.picture.found)
            out_.findings.push_back(explain(maker, finding));
        std::stable_sort(out_.findings.begin(), out_.findings.end(),
                         [](const Explained& a, const Explained& b) { return costs(a.pattern) > costs(b.pattern); });
        level_of_all(maker);
        out_.nothing_found = out_.findings.empty();
        out_.events = steps_.events();
        out_.simulated = steps_.simulated();
    }

private:
    static double costs(const Pattern& p) {
        double sum = 0;
        for (const double add : p.adds)
            sum += add;
        return sum;
    }

    void describe() {
        const std::vector<double>& all = series_.step_s;
        out_.rows = static_cast<std::int64_t>(all.size());
        out_.every = series_.every;
        out_.failed = series_.failed;
        out_.failure = series_.failure;
        out_.notes = series_.notes;
        out_.median_s = robust::median(all);
        out_.p10_s = robust::quantile(all, .1);
        out_.p90_s = robust::quantile(all, .9);
        const auto in =
            std::count_if(all.begin(), all.end(), [&](double s) { return s >= out_.low_s && s <= out_.high_s; });
        out_.inside = static_cast<double>(in) / static_cast<double>(all.size());
        for (std::size_t part = 0; part < kStretches; ++part) {
            const std::size_t begin = all.size() * part / kStretches, end = all.size() * (part + 1) / kStretches;
            const std::vector<double> some(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                           all.begin() + static_cast<std::ptrdiff_t>(end));
            const auto within =
                std::count_if(some.begin(), some.end(), [&](double s) { return s >= out_.low_s && s <= out_.high_s; });
            out_.stretches.push_back({series_.step[begin], series_.step[end - 1], robust::median(some),
                                      robust::quantile(some, .1), robust::quantile(some, .9),
                                      static_cast<double>(within) / static_cast<double>(some.size())});
        }
        for (const std::size_t row : out_.picture.row)
            out_.step.push_back(series_.step[row]);
        out_.gpus = s_.training.layout.world();
        out_.base_s = math::exp(out_.picture.base);
        out_.noise = out_.picture.noise.sigma;
        out_.offset = out_.picture.base - math::log(out_.forecast_s);
        out_.other_scenario = out_.base_s > kFarOff * out_.high_s || out_.base_s < out_.low_s / kFarOff;
        if (s_.training.global_batch > 0 && series_.global_batch && *series_.global_batch != s_.training.global_batch) {
            out_.notes.push_back(fmt::format("the log has a global batch of {}, the scenario one of {}",
                                             *series_.global_batch, s_.training.global_batch));
            out_.other_scenario = true;
        }
        if (steps_.loader_is_assumed())
            out_.notes.push_back(
                fmt::format("data.sample_time is not stated: faults of the loader are simulated with one that "
                            "needs {:.0f} % of a step",
                            100 * kAssumedLoad));
    }

    Explained explain(EvidenceMaker& maker, const Finding& finding) {
        Explained out;
        out.pattern = finding.pattern;
        const Pattern& p = out.pattern;
        out.seen = p.kind == PatternKind::ramp ? p.size * 3600 : p.size;
        out.excess_s = maker.excess_s(p);
        const MetricEvidence metrics(series_, out_.picture, p, out_.base_s,
                                     static_cast<double>(s_.training.layout.world()));
        double priors = 0;
        const auto is_level = [&](const Pattern& one) {
            return one.kind == PatternKind::level && p.gain - one.gain < kMostBehind;
        };
        if (is_level(p) || std::any_of(finding.others.begin(), finding.others.end(), is_level))
            maker.prepare_levels();
        for (const faults::Signature& what : faults::signatures()) {
            std::optional<Cause> best;
            const auto consider = [&](const Pattern& pattern, double behind) {
                const std::optional<Evidence> evidence = maker.of(what, pattern);
                if (!evidence)
                    return;
                Cause c;
                c.what = &what;
                const double by_metrics = metrics.speaks() ? metrics.of(what, evidence->keeps, evidence->slower) : 0;
                c.fit = evidence->fit + by_metrics - behind;
                const double prior = maker.prior(what, pattern);
                c.score = c.fit + math::log(std::max(prior, 1e-9));
                c.severity = evidence->severity;
                c.inject = evidence->inject;
                c.predicted = evidence->predicted;
                c.by_metrics = metrics.speaks();
                if (!best || c.score > best->score)
                    best = std::move(c);
            };
            consider(p, 0);
            for (const Pattern& other : finding.others)
                if (p.gain - other.gain < kMostBehind)
                    consider(other, p.gain - other.gain);
            if (!best)
                continue;
            priors += maker.prior(what, p);
            out.causes.push_back(std::move(*best));
        }
        // Columns say nothing against what is not known.
        double unknown_metrics = 0;
        if (metrics.speaks() && !out.causes.empty()) {
            faults::Signature none;
            none.part = faults::Part::host;
            unknown_metrics = metrics.of(none, 0, 0) - 1;
        }
        settle(out, maker.something_else(p) + unknown_metrics + math::log(std::max(kUnknown * priors, 1e-9)));
        return out;
    }

    /// What lasts from the first step to the last shows against the forecast alone.
    void level_of_all(EvidenceMaker& maker) {
        if (out_.other_scenario || out_.offset - bias_ < spread_)
            return;
        Explained out;
        out.against_forecast = true;
        out.seen = out_.offset;
        out.pattern.kind = PatternKind::level;
        out.pattern.size = out_.offset;
        out.pattern.end = out_.picture.size();
        maker.prepare_levels();
        const bool scatters = std::any_of(out_.findings.begin(), out_.findings.end(),
                                          [](const Explained& e) { return e.pattern.kind == PatternKind::noise; });
        double fault = 0, priors = 0;
        for (const faults::Signature& what : faults::signatures()) {
            const std::optional<Evidence> evidence = maker.from_start(what, out_.offset - bias_, spread_);
            if (!evidence)
                continue;
            Cause c;
            c.what = &what;
            c.fit = evidence->fit + (scatters && what.name == "sequence" ? kScatters : 0);
            const double prior = maker.prior_at_start(what);
            priors += prior;
            c.score = c.fit + math::log(std::max(prior, 1e-9));
            c.severity = evidence->severity;
            c.inject = evidence->inject;
            c.predicted = evidence->predicted;
            fault += math::exp(c.score);
            out.causes.push_back(std::move(c));
        }
        settle(out, maker.something_else(out.pattern) + math::log(std::max(kUnknown * priors, 1e-9)));
        const double z = (out_.offset - bias_) / spread_;
        const double nothing = math::exp(-z * z / 2) / (spread_ * 2.5066283);
        // Outside the interval, and likelier a fault than the forecast's own error.
        if (out_.base_s > out_.high_s && fault > nothing)
            out_.findings.push_back(std::move(out));
        else
            out_.from_start.push_back(std::move(out));
    }

    const Scenario& s_;
    const StepSeries& series_;
    Diagnosis& out_;
    FaultSteps& steps_;
    double spread_ = 0.05, bias_ = 0;
};

}  // namespace

Diagnosis diagnose(const Scenario& scenario, const Result& healthy, const ForecastInterval& interval,
                   const StepSeries& series, const std::string& file, FaultSteps& steps) {
    Diagnosis out;
    out.picture = look_at(series, file);
    Diagnoser(scenario, healthy, interval, series, steps, out).run();
    return out;
}

Diagnosis diagnose(const Scenario& scenario, const Result& healthy, const ForecastInterval& interval,
                   const StepSeries& series, const std::string& file) {
    FaultSteps steps(scenario, healthy);
    return diagnose(scenario, healthy, interval, series, file, steps);
}

}  // namespace fabricast
