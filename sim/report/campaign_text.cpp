// The campaign on a terminal: a screen behind the first, or all of it.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/campaign_view.hpp"
#include "sim/report/monitor_view.hpp"
#include "sim/report/sections.hpp"

namespace fabricast {
namespace {

using namespace report;
using namespace campaign;

constexpr double kShownFactor = 2.9;
constexpr std::size_t kBarColumns = 40, kNameColumns = 32, kShownIncidents = 8;

std::string figure_text(const CampaignFigure& figure, double value) {
    if (figure.key == "ettr")
        return fmt::format("{:.2f} %", value * 100);
    if (figure.key == "days")
        return fmt::format("{:.2f}", value);
    if (figure.key == "stops" || figure.key == "longest_run_h")
        return fmt::format("{:.4g}", value);
    return magnitude(value);
}

void print_figures(Page& page, const Result& result) {
    const CampaignReport& report = *result.campaign;
    Table table("lrrrr");
    table.row({fmt::format("{} lives, {} + {} nodes", report.spec.replicas, report.spec.fleet.nodes,
                           report.spec.fleet.spares),
               "P10", "P50", "P90", "mean"});
    for (const CampaignFigure& f : campaign_figures(report, result.scenario->price_per_gpu_hour > 0)) {
        const std::string text = f.key == "cost" ? fmt::format("cost, {}", clean(result.scenario->currency)) : f.text;
        table.row({text, figure_text(f, f.value.p10), figure_text(f, f.value.p50), figure_text(f, f.value.p90),
                   figure_text(f, f.value.mean)});
    }
    table.print(page);
}

/// Kept steps first, then losses, largest first.
void print_wall(Page& page, const CampaignReport& report) {
    std::vector<std::pair<double, Spent>> rows;
    for (std::size_t i = 1; i < kSpentCount; ++i)
        if (const double share = report.result.mean_spent(static_cast<Spent>(i)); share > 0)
            rows.emplace_back(share, static_cast<Spent>(i));
    std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    page.blank();
    page.add("Where the wall time goes, mean of all lives", Paint::bold).end();
    const double kept = report.result.mean_spent(Spent::steps);
    page.add(fmt::format("  {}{:>9}", pad_right(spent_text(Spent::steps), kNameColumns),
                         fmt::format("{:.2f} %", kept * 100)));
    const double slow = report.result
                            .of([](const ReplicaResult& x) {
                                return static_cast<double>(x.slow) / std::max(1.0, static_cast<double>(x.wall));
                            })
                            .mean;
    if (slow > 0)
        page.add(fmt::format("  of it {:.2f} % is slowness: degraded parts, congestion", slow * 100), Paint::dim);
    page.end();
    const double largest = rows.empty() ? 1 : rows.front().first;
    for (const auto& [share, spent] : rows) {
        page.add(fmt::format("  {}{:>9}  ", pad_right(spent_text(spent), kNameColumns),
                             share < 0.00005 ? "<0.01 %" : fmt::format("{:.2f} %", share * 100)));
        page.add(bar(share / largest, kBarColumns), Paint::loss).end();
    }
}

void print_stop(Page& page, const CampaignReport& report) {
    const StopTimes stop = stop_times(report);
    if (stop.stops <= 0)
        return;
    page.add(fmt::format("  A stop: noticed after {}, running again {} later, {} of steps lost, in the mean",
                         span_text(stop.detection_s), span_text(stop.restart_s), span_text(stop.lost_s)))
        .end();
}

void print_checkpoints(Page& page, const CampaignReport& report) {
    page.blank();
    for (const std::string& line : wrap("Checkpoints: " + checkpoint_text(report), kScreenColumns - 2))
        page.add("  ").add(line).end();
    for (const std::string& line : wrap(advice_text(report.result.advice), kScreenColumns - 2))
        page.add("  ").add(line, Paint::dim).end();
}

std::string goodput(double ettr) { return fmt::format("{:.2f} %", ettr * 100); }

/// Goodput against the interval; in full also against the stall of a save.
void print_intervals(Page& page, const IntervalTable& table, bool full) {
    if (table.rows.empty())
        return;
    page.blank();
    page.add("Goodput (ETTR) against the checkpoint interval", Paint::bold);
    page.add(fmt::format("; best {} {}", table.few_stops ? "by formula, stops are few," : "by simulation",
                         span_text(table.best)))
        .end();
    std::vector<std::string> heading = {"interval", "steps", fmt::format("{} lives", table.lives),
                                        "points",   "",      "restart"};
    for (const double restart : table.restarts)
        heading.push_back(span_text(restart));
    Table rows("rrrrllrrrr");
    rows.row(heading);
    for (const IntervalTable::Row& row : table.rows) {
        // On the screen those around the best, and the one that is.
        const double off = row.interval / table.best;
        if (!full && !row.as_it_is && (off < 1 / kShownFactor || off > kShownFactor))
            continue;
        std::vector<std::string> cells = {span_text(row.interval),
                                          fmt::format("{}", row.every_steps),
                                          goodput(row.simulated),
                                          row.as_it_is ? "" : fmt::format("{:+.2f}", row.gain * 100),
                                          row.as_it_is ? "as it is" : fmt::format("± {:.2f}", row.error * 100),
                                          ""};
        for (const double ettr : row.formula)
            cells.push_back(goodput(ettr));
        rows.row(cells);
    }
    rows.print(page);
    if (!full)
        return;
    page.blank();
    page.add("Goodput if a save stopped the job for so long, at the best interval then, by formula", Paint::bold).end();
    heading = {"stall", "best interval", "restart"};
    for (const double restart : table.restarts)
        heading.push_back(span_text(restart));
    Table stalls("rrlrrrr");
    stalls.row(heading);
    for (const IntervalTable::Stall& stall : table.stalls) {
        std::vector<std::string> cells = {span_text(stall.save), span_text(stall.best), ""};
        for (const double ettr : stall.formula)
            cells.push_back(goodput(ettr));
        stalls.row(cells);
    }
    stalls.print(page);
}

void print_incidents(Page& page, const CampaignReport& report, bool asked_for, bool full) {
    const ReplicaResult& shown = report.result.shown;
    page.blank();
    page.add(fmt::format("Life {}{}: {} stops in {}", report.result.shown_index,
                         asked_for ? "" : ", the one of median ETTR", shown.stops, span_text(seconds_of(shown.wall))),
             Paint::bold)
        .end();
    std::vector<const Incident*> rows;
    for (const Incident& incident : shown.incidents) {
        using Kind = Incident::Kind;
        const bool small = incident.kind == Kind::congested || incident.kind == Kind::cleared ||
                           incident.kind == Kind::spare_fault || incident.kind == Kind::mended;
        if (full || !small)
            rows.push_back(&incident);
    }
    const std::size_t count = full ? rows.size() : std::min(rows.size(), kShownIncidents);
    for (std::size_t i = 0; i < count; ++i)
        page.add(fmt::format("  day {:7.3f}  {}", seconds_of(rows[i]->time) / 86400,
                             clean(incident_text(report.spec, *rows[i]))))
            .end();
    if (count < rows.size())
        page.add(fmt::format("  {} more; see --full or result.json", rows.size() - count), Paint::dim).end();
}

void print_causes(Page& page, const CampaignReport& report) {
    page.heading("What stops the job, mean of all lives");
    Table table("lrr");
    table.row({"cause", "per 1000 node-days", "stops"});
    for (std::size_t i = 0; i < report.spec.fleet.components.size(); ++i) {
        const faults::Component& c = report.spec.fleet.components[i];
        const double mean =
            report.result.of([&](const ReplicaResult& r) { return static_cast<double>(r.stops_by[i]); }).mean;
        table.row({c.what, fmt::format("{:.3f}", c.rate * 1000), fmt::format("{:.2f}", mean)});
    }
    table.print(page);
    page.heading("Steps under the conditions that occurred");
    Table steps("rlrr");
    steps.row({"phase", "condition", "step", "against healthy"});
    double healthy = 1;
    for (const CampaignReport::ConditionRow& row : report.conditions) {
        const double step = seconds_of(row.step);
        healthy = row.what == "healthy" ? step : healthy;
        steps.row({fmt::format("{}", row.phase), row.what, duration(step),
                   fmt::format("{:+.1f} %", (step / healthy - 1) * 100)});
    }
    steps.print(page);
}

}  // namespace

std::string campaign_text(const Result& result, bool full, bool color, bool unicode) {
    if (!result.campaign)
        return {};
    const CampaignReport& report = *result.campaign;
    Page page(color, unicode, kScreenColumns);
    page.heading("Campaign");
    print_figures(page, result);
    print_wall(page, report);
    print_checkpoints(page, report);
    print_stop(page, report);
    print_intervals(page, report.intervals, full);
    if (full)
        print_causes(page, report);
    print_incidents(page, report, result.scenario->run.shown.has_value(), full);
    return page.text() + monitor_text(result, full, color, unicode);
}

}  // namespace fabricast
