// `fabricast explain --observed` on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "models/compute/math.hpp"
#include "sim/report/observed_views.hpp"
#include "sim/report/sections.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kPageColumns = 160;

double share_of(double ln_ratio) { return math::exp(ln_ratio) - 1; }
std::string probability_text(double p) { return p < 0.01 ? "<1 %" : fmt::format("{:.0f} %", p * 100); }

/// Size of a pattern as the simulated fault has it, in its own unit.
std::string predicted_text(const Explained& e, const Cause& c) {
    if (c.predicted == 0)
        return "";
    switch (e.pattern.kind) {
        case PatternKind::ramp: return fmt::format("{:.3g} % an hour", c.predicted * 100);
        case PatternKind::noise: return fmt::format("{:.1f} %", c.predicted * 100);
        default: return signed_percent(share_of(c.predicted));
    }
}

void print_head(Page& page, const Diagnosis& d, const std::string& log) {
    page.heading("Forecast and log");
    Table table("ll");
    table.row({"forecast", fmt::format("{} a step; 80 % of {} lie between {} and {}", duration(d.forecast_s),
                                       d.like.empty() ? "runs" : d.like, duration(d.low_s), duration(d.high_s))});
    table.row({clean(log), fmt::format("{} rows{}: median {}, p10 {}, p90 {}; {} of them inside the interval", d.rows,
                                       d.every > 1 ? fmt::format(" of {} steps", d.every) : "", duration(d.median_s),
                                       duration(d.p10_s), duration(d.p90_s), percent(d.inside))});
    table.row({"without what was found", fmt::format("{} a step, {} against the forecast; noise {}", duration(d.base_s),
                                                     signed_percent(share_of(d.offset)), percent(d.noise))});
    table.print(page);
}

void print_stretches(Page& page, const Diagnosis& d) {
    page.heading("The series, in eighths, beside the interval");
    Table table("rrrrrl");
    table.row({"steps", "median", "p10", "p90", "inside", ""});
    double most = d.high_s;
    for (const Diagnosis::Stretch& s : d.stretches)
        most = std::max(most, s.median_s);
    for (const Diagnosis::Stretch& s : d.stretches)
        table.row({fmt::format("{}-{}", s.first, s.last), duration(s.median_s), duration(s.p10_s), duration(s.p90_s),
                   percent(s.inside), bar(s.median_s / most, 30)});
    table.row(
        {"forecast", duration(d.forecast_s), duration(d.low_s), duration(d.high_s), "", bar(d.forecast_s / most, 30)});
    table.print(page);
}

void print_explained(Page& page, const Explained& e, const Diagnosis& d, std::size_t number,
                     const std::string& scenario) {
    page.blank();
    if (number > 0)
        page.add(fmt::format("{}. ", number), Paint::bold);
    const std::string sentence = pattern_sentence(e, d);
    const std::vector<std::string> lines = wrap(sentence, kScreenColumns - 4);
    for (std::size_t i = 0; i < lines.size(); ++i)
        page.add(i == 0 ? "" : "   ").add(lines[i], Paint::bold).end();
    Table table("lrllr");
    table.row({"what looks like it", "probability", "severity", "simulated", ""});
    for (const Cause& c : e.causes)
        table.row({c.what->what, probability_text(c.probability), c.severity, predicted_text(e, c), ""});
    table.row({"something else", probability_text(e.something_else), "", "", ""});
    table.print(page);
    const bool metrics = std::any_of(e.causes.begin(), e.causes.end(), [](const Cause& c) { return c.by_metrics; });
    if (e.causes.empty())
        return;
    if (e.alike)
        page.add(metrics
                     ? "   The first two look the same here; their order is how often they happen. To tell them apart:"
                     : "   Step times alone do not tell the first two apart; their order is how often they happen. "
                       "Look at:",
                 Paint::dim)
            .end();
    else
        page.add("   Look at:", Paint::dim).end();
    for (std::size_t i = 0; i < std::min<std::size_t>(3, e.causes.size()); ++i) {
        const Cause& c = e.causes[i];
        const std::vector<std::string> look = wrap(c.what->what + ": " + c.what->look, kScreenColumns - 7);
        for (std::size_t line = 0; line < look.size(); ++line)
            page.add(line == 0 ? "   · " : "     ", Paint::dim).add(look[line], Paint::dim).end();
    }
    const auto first = std::find_if(e.causes.begin(), e.causes.end(), [](const Cause& c) { return !c.inject.empty(); });
    if (first != e.causes.end())
        page.add(fmt::format("   → fabricast run {} --inject '{}'", clean(scenario), first->inject), Paint::dim).end();
}

}  // namespace

std::string pattern_sentence(const Explained& e, const Diagnosis& d) {
    const Pattern& p = e.pattern;
    const double longer = share_of(p.size);
    const auto step = [&](std::size_t row) { return d.step[std::min(row, d.step.size() - 1)]; };
    const auto hours = [&](std::size_t row) {
        const double s = d.picture.time_s[std::min(row, d.picture.time_s.size() - 1)];
        return s < 5400 ? fmt::format("{:.0f} min", s / 60) : fmt::format("{:.1f} h", s / 3600);
    };
    if (e.against_forecast)
        return fmt::format("from the first step to the last, steps are {:.1f} % longer than forecast ({:+.3f} s)",
                           longer * 100, d.base_s - d.forecast_s);
    switch (p.kind) {
        case PatternKind::level: {
            const std::string size =
                fmt::format("steps are {:.1f} % longer ({:+.3f} s)", longer * 100, d.base_s * longer);
            if (p.bursts.size() > 1)
                return fmt::format("{} times between step {} and {}, {}", p.bursts.size(), step(p.begin),
                                   step(p.end - 1), size);
            if (p.ends)
                return fmt::format("from step {} ({}) to step {} ({}), {}", step(p.begin), hours(p.begin),
                                   step(p.end - 1), hours(p.end - 1), size);
            return fmt::format("from step {} ({}) to the end, {}", step(p.begin), hours(p.begin), size);
        }
        case PatternKind::ramp:
            return fmt::format("from step {} ({}) on, steps grow by {:.3g} % of a healthy step an hour{}",
                               step(p.begin), hours(p.begin), p.size * 3600 * 100,
                               p.resets ? ", anew after every restart" : "");
        case PatternKind::wave: {
            return fmt::format("a wave of a day: steps are up to {:.1f} % longer and shorter", longer * 100);
        }
        case PatternKind::periodic: {
            const double steps = p.period * static_cast<double>(d.every) * static_cast<double>(d.picture.group);
            const std::string where =
                p.begin > 0 || p.ends ? fmt::format("from step {} to {}, ", step(p.begin), step(p.end - 1)) : "";
            if (p.raised <= 1)
                return fmt::format("{}every {:.0f} steps one takes {:.3f} s longer ({:.1f} %)", where, steps,
                                   e.excess_s, longer * 100);
            return fmt::format("{}steps repeat every {:.0f}: {} of them take {:.3f} s longer ({:.1f} %)", where, steps,
                               p.raised, e.excess_s, longer * 100);
        }
        case PatternKind::spikes:
            if (p.rows.size() == 1)
                return fmt::format("step {} takes {:.3f} s longer ({:.1f} %)", step(p.rows[0]), e.excess_s,
                                   longer * 100);
            return fmt::format("{} single steps between {} and {} take longer, in the median by {:.3f} s ({:.1f} %){}",
                               p.rows.size(), step(p.rows.front()), step(p.rows.back()), e.excess_s, longer * 100,
                               p.grows ? "; they become more" : "");
        case PatternKind::noise:
            return fmt::format("steps scatter by {:.1f} % all the time, more than the {:.1f} % of nine in ten jobs",
                               p.size * 100, kUsualNoise * 100);
    }
    return {};
}

std::string observed_verdict(const Diagnosis& d) {
    if (d.other_scenario)
        return fmt::format(
            "the log may be of another job: a step takes {} where {} is forecast, and 80 % of runs like it lie between "
            "{} and {}; check "
            "batch, sequence, layout and GPUs",
            report::duration(d.base_s), report::duration(d.forecast_s), report::duration(d.low_s),
            report::duration(d.high_s));
    if (d.nothing_found)
        return "nothing found: steps are level, and where the forecast's interval has them";
    return fmt::format("{} thing{} found", d.findings.size(), d.findings.size() == 1 ? "" : "s");
}

std::string observed_text(const Diagnosis& d, const Result& result, const std::string& log, bool color, bool unicode) {
    Page page(color, unicode, kPageColumns);
    std::string verdict = observed_verdict(d);
    const bool level = d.base_s >= d.low_s && d.base_s <= d.high_s;
    if (d.nothing_found && !d.other_scenario && !level)
        verdict = fmt::format(
            "nothing found in the series; its level is {} the interval of the forecast, as that of one run in five",
            d.base_s > d.high_s ? "above" : "below");
    page.add(d.nothing_found && !d.other_scenario ? "✔ " : "✘ ",
             d.nothing_found && !d.other_scenario ? Paint::good : Paint::bad);
    const std::vector<std::string> lines = wrap(verdict, kScreenColumns - 2);
    for (std::size_t i = 0; i < lines.size(); ++i)
        page.add(i == 0 ? "" : "  ").add(lines[i], Paint::bold).end();
    if (d.other_scenario && d.nothing_found)
        page.add("  apart from its level, nothing is found in the series").end();
    print_head(page, d, log);
    print_stretches(page, d);
    for (std::size_t i = 0; i < d.findings.size(); ++i)
        print_explained(page, d.findings[i], d, i + 1, result.scenario->file);
    for (const Explained& e : d.from_start) {
        page.blank();
        page.add("The forecast's own error may be all of this; were it a fault, it would be:", Paint::dim).end();
        print_explained(page, e, d, 0, result.scenario->file);
    }
    if (!d.failure.empty())
        page.add("  → the log ends with: ").add(clean(d.failure), Paint::bad).end();
    for (const std::string& note : d.notes)
        page.add("  · ", Paint::dim).add(clean(note), Paint::dim).end();
    return page.text();
}

}  // namespace fabricast
