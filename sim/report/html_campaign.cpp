#include "sim/report/html_campaign.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/campaign/replica_result.hpp"
#include "sim/report/campaign_view.hpp"
#include "sim/report/html_charts.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

constexpr std::size_t kShownStops = 12;
constexpr double kAlike = 1e-3;   // of the largest: lives that differ by less are alike
constexpr std::size_t kGrid = 4;  // lines of the course

const Json& campaign_of(const Json& result) { return at(result, "/campaign"); }

double quantile(const Json& result, std::string_view figure, const char* which) {
    return number(campaign_of(result), fmt::format("/{}/{}", figure, which).c_str());
}

std::vector<double> values_of(const Json& result, std::string_view figure) {
    std::vector<double> values;
    for (const Json& value : at(campaign_of(result), fmt::format("/lives/{}", figure).c_str()))
        values.push_back(value.is_number() ? value.get<double>() : 0);
    return values;
}

std::string fine_percent(double fraction) {
    return fraction > 0 && fraction < 0.00005 ? "<0.01 %" : fmt::format("{:.2f} %", fraction * 100);
}

std::string range_of(const Json& result, std::string_view figure) {
    const auto end = [&](const char* which) {
        const double value = quantile(result, figure, which);
        return figure == "cost" ? magnitude(value) : life_figure(result, figure, value);
    };
    return fmt::format("{} to {}", end("p10"), end("p90"));
}

std::string middle_and_ends(const Json& result, std::string_view figure) {
    return fmt::format("{} ({})", life_figure(result, figure, quantile(result, figure, "p50")),
                       range_of(result, figure));
}

/// From a stop until steps go on, as rows; the fault at its begin says why, not one noted before (silent corruption).
struct Stop {
    double day = 0, lasted_s = 0, lost_steps = 0, cost_s = 0;
    std::string why;
};
std::vector<Stop> stops_of(const Json& result) {
    std::vector<Stop> stops;
    std::vector<std::pair<double, std::string>> faults;  // since the recovery before
    const double step_s = number(result, "/step/time_s");
    for (const Json& incident : at(result, "/campaign/shown/incidents")) {
        const std::string kind = word(incident, "/kind");
        if (kind == "fault")
            faults.emplace_back(number(incident, "/time_s"), word(incident, "/text"));
        if (kind != "recovered")
            continue;
        Stop stop;
        stop.lasted_s = number(incident, "/lasted_s");
        stop.lost_steps = number(incident, "/lost_steps");
        const double begin_s = number(incident, "/time_s") - stop.lasted_s;
        stop.day = begin_s / 86400;
        stop.cost_s = stop.lasted_s + stop.lost_steps * step_s;
        const auto cause = std::find_if(faults.begin(), faults.end(), [&](const auto& fault) {
            return fault.first > begin_s - 1e-3;  // both were rounded
        });
        if (cause != faults.end())
            stop.why = cause->second;
        faults.clear();
        stops.push_back(std::move(stop));
    }
    return stops;
}

std::string css_of_incident(std::string_view kind) {
    if (kind == "fault" || kind == "corruption_found" || kind == "not_a_number" || kind == "from_zero" ||
        kind == "replica_left")
        return "s-fault";
    if (kind == "maintenance" || kind == "time_limit" || kind == "false_alarm")
        return "s-planned";
    return {};
}

std::string course_part(const Json& result) {
    const Json& shown = at(result, "/campaign/shown");
    const Json &times = at(shown, "/course/time_s"), &steps = at(shown, "/course/step");
    if (times.size() < 2 || steps.size() != times.size())
        return {};
    Curve c;
    c.x_most = std::max(1.0, number(shown, "/wall_s"));
    for (std::size_t i = 0; i < times.size(); ++i) {
        c.points.push_back({times[i].get<double>(), steps[i].get<double>()});
        c.y_most = std::max(c.y_most, c.points.back().y);
    }
    // Undisturbed: as many steps, each as long as the forecast one. The batch of a phase may be another: then none.
    const double step_s = number(result, "/step/time_s");
    bool phases = false;
    for (const Json& row : at(result, "/campaign/conditions"))
        phases = phases || number(row, "/phase") > 0;
    if (step_s > 0 && !phases) {
        const double reached = std::min(c.y_most, c.x_most / step_s);
        c.reference = {{0, 0}, {reached * step_s, reached}};
    }
    std::size_t faults = 0, planned = 0;
    for (const Json& incident : at(shown, "/incidents")) {
        const std::string css = css_of_incident(word(incident, "/kind"));
        if (css.empty())
            continue;
        ++(css == "s-fault" ? faults : planned);
        c.marks.push_back(
            {css, number(incident, "/time_s"),
             fmt::format("day {:.2f}: {}", number(incident, "/time_s") / 86400, word(incident, "/text"))});
    }
    for (std::size_t i = 0; i <= kGrid; ++i) {
        const double share = static_cast<double>(i) / kGrid;
        c.x_labels.push_back(i == 0 ? "0" : span_text(c.x_most * share));
        c.y_labels.push_back(i == 0 ? "0" : magnitude(c.y_most * share));
    }
    c.name = fmt::format("steps kept over time in life {:.0f}", number(shown, "/replica"));
    std::string out = fmt::format(
        "<h3>Life {:.0f}{}</h3>\n<p class=soft>Steps kept over wall time; {:.0f} stops by "
        "faults. Where a line falls, steps since the last save are done again.</p>\n",
        number(shown, "/replica"), at(shown, "/asked_for") == true ? "" : ", the one of median goodput",
        number(shown, "/stops"));
    std::vector<std::pair<std::string, std::string>> entries = {{"l-course", "steps kept"}};
    if (!c.reference.empty())
        entries.emplace_back("l-reference", "without stops and slow parts");
    if (faults > 0)
        entries.emplace_back("l-fault", "fault");
    if (planned > 0)
        entries.emplace_back("l-planned", "planned stop or false alarm");
    return out + legend(entries) + curve(c);
}

std::string stops_part(const Json& result) {
    std::vector<Stop> stops = stops_of(result);
    if (stops.empty())
        return {};
    const std::size_t all = stops.size();
    std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) { return a.cost_s > b.cost_s; });
    stops.resize(std::min(all, kShownStops));
    std::stable_sort(stops.begin(), stops.end(), [](const Stop& a, const Stop& b) { return a.day < b.day; });
    HtmlTable table({"what stopped it", "+day", "+back after", "+steps lost", "+cost"}, true);
    for (const Stop& stop : stops)
        table.row({stop.why.empty() ? "fault" : stop.why, fmt::format("{:.2f}", stop.day), span_text(stop.lasted_s),
                   fmt::format("{:.0f}", stop.lost_steps), span_text(stop.cost_s)});
    return (all > stops.size()
                ? fmt::format("<p class=soft>The {} costliest of its {} recoveries.</p>\n", stops.size(), all)
                : std::string()) +
           table.finish();
}

std::string causes_part(const Json& result) {
    const Json& causes = at(result, "/campaign/stops_by");
    struct Cause {
        std::string name;
        double stops = 0, lost = 0;
    };
    std::vector<Cause> rows;
    double most = 0;
    for (const Json& row : causes) {
        const std::string name = word(row, "/what").empty() ? word(row, "/component") : word(row, "/what");
        rows.push_back({name, number(row, "/mean"), number(row, "/lost_fraction")});
        most = std::max(most, rows.back().lost);
    }
    std::erase_if(rows, [](const Cause& row) { return row.stops <= 0; });
    if (rows.empty() || most <= 0)
        return {};
    std::stable_sort(rows.begin(), rows.end(), [](const Cause& a, const Cause& b) { return a.lost > b.lost; });
    std::string out =
        "<h3>What breaks, and what it costs</h3>\n<p class=soft>Share of the wall time from a fault until steps go on, "
        "steps thrown away included; mean of all lives.</p>\n<div class=rows>\n";
    for (const Cause& row : rows)
        out += bar_row(row.name, {{"w-lost", 0, row.lost / most, fine_percent(row.lost)}},
                       fmt::format("{} · {:.2f} stops", fine_percent(row.lost), row.stops));
    return out + "</div>\n";
}

std::string conditions_part(const Json& result) {
    const Json& rows = at(result, "/campaign/conditions");
    if (rows.size() < 2)
        return {};
    HtmlTable table({"steps while", "+phase", "+step", "+against healthy"}, true);
    double healthy = 0;
    for (const Json& row : rows) {
        const double step = number(row, "/step_s");
        healthy = word(row, "/condition") == "healthy" || healthy <= 0 ? step : healthy;
        table.row({word(row, "/condition"), fmt::format("{:.0f}", number(row, "/phase")), duration(step),
                   fmt::format("{:+.1f} %", (step / healthy - 1) * 100)});
    }
    return "<h3>Slow conditions that occurred</h3>\n" + table.finish();
}

}  // namespace

std::string wall_words(std::string_view name) {
    for (std::size_t i = 0; i < campaign::kSpentCount; ++i) {
        if (campaign::spent_name(static_cast<campaign::Spent>(i)) == name)
            return std::string(campaign::spent_text(static_cast<campaign::Spent>(i)));
    }
    return std::string(name);
}

const std::vector<std::string_view>& life_figures() {
    static const std::vector<std::string_view> figures = {"days", "cost", "tokens", "ettr", "stops"};
    return figures;
}

std::string_view life_figure_name(std::string_view key) {
    if (key == "ettr")
        return "goodput: kept steps / wall time";
    if (key == "tokens")
        return "tokens kept";
    return key == "stops" ? "stops by faults" : key;
}

std::string life_figure(const Json& result, std::string_view key, double value) {
    if (key == "ettr")
        return fmt::format("{:.1f} %", value * 100);
    if (key == "days")
        return fmt::format("{:.1f}", value);
    if (key == "stops")
        return fmt::format("{:.0f}", value);
    if (key == "cost")
        return magnitude(value) + " " + word(result, "/run/currency");
    return magnitude(value);
}

std::string life_strips(const std::vector<LetteredResult>& results) {
    std::string out;
    for (const std::string_view figure : life_figures()) {
        std::vector<std::vector<double>> values;
        double low = 0, high = 0;
        bool any = false;
        for (const auto& [letter, result] : results) {
            values.push_back(values_of(*result, figure));
            for (const double value : values.back()) {
                low = any ? std::min(low, value) : value;
                high = any ? std::max(high, value) : value;
                any = true;
            }
        }
        if (!any || high - low <= kAlike * high)
            continue;
        for (std::size_t i = 0; i < results.size(); ++i) {
            if (values[i].empty())
                continue;
            const auto& [letter, result] = results[i];
            const std::string name = letter.empty() ? std::string(life_figure_name(figure))
                                                    : fmt::format("{} {}", letter, life_figure_name(figure));
            out += fmt::format("<span class=name>{}</span><span class=bar>{}</span><span class=n>{}</span>\n",
                               escape(name), strip(values[i], low, high), escape(middle_and_ends(*result, figure)));
        }
        const Json& one = *results.front().second;
        out += fmt::format("<span></span><span class=\"bar axis\"><span>{}</span><span>{}</span></span><span></span>\n",
                           escape(life_figure(one, figure, low)), escape(life_figure(one, figure, high)));
    }
    return out.empty() ? out : "<div class=\"rows strips\">\n" + out + "</div>\n";
}

std::string badput_rows(const std::vector<LetteredResult>& results) {
    struct Badput {
        std::string what;
        std::vector<double> shares;
        double most = 0;
    };
    std::vector<Badput> parts;
    for (std::size_t r = 0; r < results.size(); ++r) {
        for (const Json& row : at(*results[r].second, "/campaign/wall")) {
            if (word(row, "/what") == "steps")
                continue;
            const std::string what = word(row, "/what");
            auto part = std::find_if(parts.begin(), parts.end(), [&](const Badput& p) { return p.what == what; });
            if (part == parts.end())
                part = parts.insert(parts.end(), {what, std::vector<double>(results.size(), 0), 0});
            part->shares[r] = number(row, "/fraction");
            part->most = std::max(part->most, part->shares[r]);
        }
    }
    std::erase_if(parts, [](const Badput& part) { return part.most <= 0; });
    std::stable_sort(parts.begin(), parts.end(), [](const Badput& a, const Badput& b) { return a.most > b.most; });
    if (parts.empty())
        return {};
    std::string out = "<div class=rows>\n";
    for (const Badput& part : parts) {
        for (std::size_t r = 0; r < results.size(); ++r) {
            const auto& [letter, result] = results[r];
            const std::string name =
                letter.empty() ? wall_words(part.what) : fmt::format("{} {}", letter, wall_words(part.what));
            out += bar_row(name,
                           {{"w-" + part.what, 0, part.shares[r] / parts.front().most, fine_percent(part.shares[r])}},
                           fmt::format("{} · {}", fine_percent(part.shares[r]),
                                       span_text(part.shares[r] * 86400 * quantile(*result, "days", "mean"))));
        }
    }
    return out + "</div>\n";
}

std::string campaign_cards(const Json& result) {
    const Json& c = campaign_of(result);
    if (!c.is_object())
        return {};
    std::string out;
    std::string days =
        fmt::format("median of {:.0f} lives, {} in 80 %", number(c, "/replicas"), range_of(result, "days"));
    if (number(result, "/run/days") > 0)
        days += fmt::format("; {:.1f} if nothing broke and nothing was saved", number(result, "/run/days"));
    out += card(life_figure(result, "days", quantile(result, "days", "p50")) + " days", days);
    if (at(c, "/cost").is_object())
        out += card(life_figure(result, "cost", quantile(result, "cost", "p50")),
                    fmt::format("{}; {} GPU-hours with spares, {:g} each", range_of(result, "cost"),
                                magnitude(quantile(result, "gpu_hours", "p50")),
                                number(result, "/scenario/price_per_gpu_hour")));
    out += card(life_figure(result, "ettr", quantile(result, "ettr", "p50")),
                fmt::format("goodput: kept steps / wall time, {}; {} stops by faults", range_of(result, "ettr"),
                            life_figure(result, "stops", quantile(result, "stops", "p50"))));
    return out;
}

std::string campaign_section(const Json& result) {
    const Json& c = campaign_of(result);
    if (!c.is_object())
        return {};
    std::string out = fmt::format(
        "<section id=campaign><h2>The run with what breaks</h2>\n<p class=soft>{:.0f} simulated lives of the job on "
        "{:.0f} "
        "nodes and {:.0f} spares. Bars: how many lives end there; band: P10 to P90; line: median.</p>\n",
        number(c, "/replicas"), number(c, "/nodes"), number(c, "/spares"));
    out += life_strips({{"", &result}});
    out += course_part(result) + stops_part(result);
    const double kept = number(at(c, "/wall/0"), "/fraction"), slow = number(c, "/slow_fraction");
    out += fmt::format(
        "<h3>Where the wall time goes</h3>\n<p class=soft>Mean of all lives: {} in steps that were kept{}.</p>\n",
        fine_percent(kept),
        slow > 0 ? fmt::format(" (of it {} is slowness: degraded parts, congestion)", fine_percent(slow))
                 : std::string());
    out += badput_rows({{"", &result}}) + causes_part(result) + conditions_part(result);
    if (!word(c, "/checkpoint/text").empty()) {
        out += "<p>Checkpoints: " + escape(word(c, "/checkpoint/text"));
        if (const double formula = number(c, "/checkpoint/best_s"); formula > 0) {
            const double simulated = at(c, "/intervals/few_stops") == true ? 0 : number(c, "/intervals/best_s");
            out += fmt::format(
                ". Best interval {}{} by formula; by formula goodput is {} at {}, {} as it is; one stop in {}",
                simulated > 0 ? span_text(simulated) + " by simulation, " : std::string(), span_text(formula),
                fine_percent(number(c, "/checkpoint/ettr_at_best")), simulated > 0 ? "the latter" : "it",
                fine_percent(number(c, "/checkpoint/ettr_by_formula")), span_text(number(c, "/checkpoint/mttf_s")));
        }
        out += ".</p>\n";
    }
    return out + "</section>\n";
}

}  // namespace fabricast::report
