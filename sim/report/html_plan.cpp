// The page of a plan: the first layout, days against cost, the ranking, why the rest lost, what the first hangs on.
#include <fmt/format.h>

#include <algorithm>

#include "sim/report/html_charts.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/plan_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

std::string money(const Json& plan, double value) { return magnitude(value) + " " + word(plan, "/currency"); }
bool priced(const Json& plan) { return at(plan, "/currency").is_string(); }
double cost_of(const Json& plan, const Json& row) { return number(row, priced(plan) ? "/cost" : "/gpu_hours"); }
std::string cost_text(const Json& plan, double value) {
    return priced(plan) ? money(plan, value) : magnitude(value) + " GPU-hours";
}

/// Days of 80 % of runs like it.
std::string days_range(const Json& row) {
    const double step = number(row, "/step_s"), low = number(row, "/step_interval_s/low"),
                 high = number(row, "/step_interval_s/high"), days = number(row, "/days");
    return step > 0 && low > 0 ? fmt::format("{:.1f} to {:.1f}", days * low / step, days * high / step) : std::string();
}

std::string head(const Json& plan) {
    std::string out = fmt::format(
        "<header><h1>{}</h1>\n<p class=soft>{} layouts looked at, {} simulated; days and cost "
        "of {} tokens, ranked by {}</p>\n",
        escape(word(plan, "/name")), grouped(number(plan, "/space/looked_at")),
        grouped(number(plan, "/space/simulated")), magnitude(number(plan, "/tokens")),
        escape(word(plan, "/ranked_by")));
    if (!word(plan, "/prices").empty())
        out += "<p class=soft>" + escape(word(plan, "/prices")) + "</p>\n";
    if (!word(plan, "/nothing_left").empty())
        out += "<p class=bad>" + escape(word(plan, "/nothing_left")) + "</p>\n";
    const Json& first = at(plan, "/ranking/0");
    if (!first.is_object())
        return out + "</header>\n";
    std::size_t ties = 0;
    for (const Json& row : at(plan, "/ranking"))
        ties += at(row, "/tie_with_first").is_boolean() && at(row, "/tie_with_first").get<bool>();
    out += fmt::format("<p><b>{}</b> on {}</p>\n<div class=cards>\n", escape(word(first, "/layout")),
                       escape(word(first, "/cluster")));
    const std::string range = days_range(first);
    out += card(fmt::format("{:.1f} days", number(first, "/days")),
                range.empty() ? "without failures" : range + ", 80 % of published runs like it; no failures counted");
    out += card(cost_text(plan, cost_of(plan, first)), magnitude(number(first, "/gpu_hours")) + " GPU-hours");
    out += card(percent(number(first, "/mfu")) + " MFU",
                fmt::format("step {}, {} tokens/s, {:.1f} GiB a GPU", duration(number(first, "/step_s")),
                            grouped(number(first, "/tokens_per_s")), number(first, "/memory_gib")));
    out += "</div>\n";
    if (ties > 1)
        out += fmt::format(
            "<p class=soft>The intervals of the first {} overlap: published runs do not tell which of them "
            "is faster; the order is the forecast's.</p>\n",
            ties);
    return out + "</header>\n";
}

/// From 0, or from near the least value where all lie in the upper half.
struct Axis {
    double low = 0, high = 0;
    bool any = false;

    void take(double value) {
        low = any ? std::min(low, value) : value;
        high = any ? std::max(high, value) : value;
        any = true;
    }
    void pad() {
        const double margin = std::max((high - low) / 8, high / 50);
        low = 2 * low > high ? low - margin : 0;
        high += margin;
    }
    double percent(double value) const { return (value - low) / (high - low) * 100; }
};

// Dots are placed by percent, so that they stay round whatever the width; words stand beside them.
std::string front(const Json& plan) {
    struct Dot {
        double days = 0, cost = 0;
        bool best = false;
        std::string title;
    };
    std::vector<Dot> dots;
    const auto add = [&](const Json& row, bool best) {
        dots.push_back(
            {number(row, "/days"), cost_of(plan, row), best, word(row, "/layout") + " on " + word(row, "/cluster")});
    };
    for (const Json& row : at(plan, "/ranking"))
        add(row, false);
    for (const Json& row : at(plan, "/front"))
        add(row, true);
    Axis days, cost;
    for (const Dot& dot : dots) {
        days.take(dot.days);
        cost.take(dot.cost);
    }
    if (days.high <= 0 || cost.high <= 0)
        return {};
    days.pad();
    cost.pad();
    std::string out =
        "<section id=front><h2>Days against cost</h2>\n<p class=soft>Dark: what no other layout beats in "
        "both. Light: the rest of the ranking.";
    if (days.low > 0 || cost.low > 0)
        out += " Axes begin near the least.";
    out += "</p>\n<div class=plot><div class=\"y\">";
    out += "<span>" + escape(cost_text(plan, cost.high)) + "</span><span>" +
           (cost.low > 0 ? escape(cost_text(plan, cost.low)) : "0") + "</span></div><div class=\"area dots\">";
    for (const Dot& dot : dots)
        out += fmt::format("<i class=\"{}\" style=\"left:{:.2f}%;bottom:{:.2f}%\" title=\"{}: {:.1f} days, {}\"></i>",
                           dot.best ? "d-at" : "d-range", days.percent(dot.days), cost.percent(dot.cost),
                           escape(dot.title), dot.days, escape(cost_text(plan, dot.cost)));
    out += fmt::format("</div><div class=\"axis x\"><span>{:.3g}</span><span>{:.3g} days</span></div></div>\n",
                       days.low, days.high);
    HtmlTable table({"layout", "cluster", "+days", "+cost", "+MFU"}, true);
    for (const Json& row : at(plan, "/front"))
        table.row({word(row, "/layout"), word(row, "/cluster"), fmt::format("{:.1f}", number(row, "/days")),
                   cost_text(plan, cost_of(plan, row)), percent(number(row, "/mfu"))});
    return out + table.finish() + "</section>\n";
}

std::string ranking(const Json& plan) {
    if (at(plan, "/ranking").empty())
        return {};
    HtmlTable table(
        {"layout", "cluster", "+GiB", "+MFU", "+step", "+tokens/s", "+days", "+80 % of runs", "+cost", "+behind", ""},
        true);
    const auto ranked_by = [&](const Json& row) {
        return word(plan, "/ranked_by") == "cost" ? cost_of(plan, row) : number(row, "/days");
    };
    const double first = ranked_by(at(plan, "/ranking/0"));
    std::size_t rank = 0;
    for (const Json& row : at(plan, "/ranking")) {
        const double mine = ranked_by(row);
        const bool tie = at(row, "/tie_with_first").is_boolean() && at(row, "/tie_with_first").get<bool>();
        ++rank;
        table.row({fmt::format("{}. {}", rank, word(row, "/layout")), word(row, "/cluster"),
                   fmt::format("{:.1f}", number(row, "/memory_gib")), percent(number(row, "/mfu")),
                   duration(number(row, "/step_s")), grouped(number(row, "/tokens_per_s")),
                   fmt::format("{:.1f}", number(row, "/days")), days_range(row), cost_text(plan, cost_of(plan, row)),
                   rank > 1 && first > 0 ? signed_percent(mine / first - 1) : "", tie && rank > 1 ? "tie" : ""});
    }
    return "<section id=ranking><h2>Ranked by " + escape(word(plan, "/ranked_by")) + "</h2>\n" + table.finish() +
           "</section>\n";
}

std::string yours(const Json& plan) {
    const Json& y = at(plan, "/yours");
    if (!y.is_object())
        return {};
    std::string out = "<section id=yours><h2>The layout of the scenario</h2>\n<p>";
    if (!word(y, "/refused").empty())
        return out + escape(word(y, "/refused")) + "</p></section>\n";
    out += escape(word(y, "/layout")) + " on " + escape(word(y, "/cluster"));
    if (at(y, "/fits").is_boolean() && !at(y, "/fits").get<bool>())
        out +=
            fmt::format(": does not fit, stage {:.0f} needs {:.1f} GiB", number(y, "/stage"), number(y, "/memory_gib"));
    else if (!word(y, "/failure").empty())
        out += ": does not run, " + escape(word(y, "/failure"));
    else if (number(y, "/step_s") > 0)
        out += fmt::format(": step {}, MFU {}, {:.1f} days, {}", duration(number(y, "/step_s")),
                           percent(number(y, "/mfu")), number(y, "/days"), escape(cost_text(plan, cost_of(plan, y))));
    out += ".";
    const double less = number(y, "/helps_most/less_time");
    if (at(y, "/helps_most").is_object())
        out += less > 0 ? fmt::format(" The single change that helps most: <b>{}</b>, {} less time.",
                                      escape(word(y, "/helps_most/change")), percent(less))
                        : fmt::format(" The single change that makes it run best: <b>{}</b>.",
                                      escape(word(y, "/helps_most/change")));
    else if (at(y, "/listed").is_boolean() && !at(y, "/listed").get<bool>())
        out += " The scenario's <code>plan:</code> does not list it: no single change of it was tried.";
    return out + "</p></section>\n";
}

std::string sensitivity(const Json& plan) {
    double most = 0;
    for (const Json& row : at(plan, "/sensitivity"))
        for (const char* end : {"/step_change_low", "/step_change_high"})
            most = std::max({most, number(row, end), -number(row, end)});
    if (most <= 0)
        return {};
    std::string out =
        "<section id=sensitivity><h2>What the first hangs on</h2>\n<p class=soft>Its step time with one "
        "figure of the machine lower and higher.</p>\n" +
        legend({{"d-more", "longer"}, {"d-less", "shorter"}}) + "<div class=rows>\n";
    for (const Json& row : at(plan, "/sensitivity")) {
        std::vector<Part> parts;
        std::string figure;
        const auto add = [&](const std::string& what, double change) {
            const double length = (change < 0 ? -change : change) / most / 2;
            parts.push_back({change > 0 ? "d-more" : "d-less", change > 0 ? 0.5 : 0.5 - length, length,
                             what + ": " + signed_percent(change)});
            figure += (figure.empty() ? "" : " · ") + what + " " + signed_percent(change);
        };
        add(word(row, "/low"), number(row, "/step_change_low"));
        if (!word(row, "/high").empty())
            add(word(row, "/high"), number(row, "/step_change_high"));
        out += bar_row(word(row, "/what"), parts, figure);
    }
    return out + "</div></section>\n";
}

std::string what_ifs(const Json& plan) {
    std::string out;
    for (const Json& one : at(plan, "/what_ifs")) {
        HtmlTable table({"layout", "+step", "+change", "+days", "+cost", "+MFU"}, true);
        for (const Json& row : at(one, "/ranking")) {
            std::string layout;
            for (const Json& known : at(plan, "/ranking"))
                if (number(known, "/index") == number(row, "/index"))
                    layout = word(known, "/layout");
            table.row({layout, duration(number(row, "/step_s")), signed_percent(number(row, "/step_change")),
                       fmt::format("{:.1f}", number(row, "/days")), cost_text(plan, cost_of(plan, row)),
                       percent(number(row, "/mfu"))});
        }
        out += "<h3>" + escape(word(one, "/what_if")) + "</h3>\n";
        std::string skipped;
        for (const Json& cluster : at(one, "/not_asked_of"))
            if (cluster.is_string())
                skipped += (skipped.empty() ? "" : "; ") + cluster.get<std::string>();
        if (!skipped.empty())
            out += "<p class=soft>Not asked of what has another value: " + escape(skipped) + "</p>\n";
        out += table.finish();
    }
    return out.empty() ? out : "<section id=what_ifs><h2>What if</h2>\n" + out + "</section>\n";
}

std::string loss_text(const Json& c) {
    if (number(c, "/best_index") > 0 || at(c, "/slower").is_number()) {
        std::string text = signed_percent(number(c, "/slower"));
        if (at(c, "/cause").is_object())
            text += fmt::format(", most of it {} ({})", account_words(word(c, "/cause/account")),
                                signed_percent(number(c, "/cause/share")));
        return text;
    }
    if (number(c, "/cut_slower_at_least") > 0)
        return fmt::format("at least {}, by the lower bound of its best",
                           signed_percent(number(c, "/cut_slower_at_least")));
    return {};
}

std::string classes(const Json& plan) {
    HtmlTable table({"dimension", "value", "+layouts", "behind the first"}, true);
    bool any = false;
    for (const Json& c : at(plan, "/classes")) {
        const std::string loss = loss_text(c);
        if (loss.empty())
            continue;
        any = true;
        table.row({word(c, "/dimension"), word(c, "/value"), grouped(number(c, "/layouts")), loss});
    }
    return any ? "<section id=classes><h2>Why the others lost</h2>\n<p class=soft>The best of each class against the "
                 "first.</p>\n" +
                     table.finish() + "</section>\n"
               : std::string();
}

std::string space(const Json& plan) {
    HtmlTable table({"+layouts", "what became of them", "for example"}, true);
    table.row({grouped(number(plan, "/space/meet")), "simulated, meet all conditions", ""});
    if (number(plan, "/space/cut_by_lower_bound") > 0)
        table.row({grouped(number(plan, "/space/cut_by_lower_bound")),
                   "slower than the ranking by their lower bound, not simulated", ""});
    for (const Json& rule : at(plan, "/space/removed"))
        table.row({grouped(number(rule, "/layouts")), word(rule, "/means"), word(rule, "/example")});
    std::string assumed;
    for (const Json& sentence : at(plan, "/space/lower_bound_assumes"))
        if (sentence.is_string())
            assumed += (assumed.empty() ? "" : "; ") + sentence.get<std::string>();
    if (!assumed.empty())
        assumed =
            "<p class=soft>Assumed of the lower bound, by experience and not by proof (--no-prune simulates all): " +
            escape(assumed) + ".</p>\n";
    return "<section id=space><h2>What became of all layouts</h2>\n" + table.finish() + assumed + "</section>\n";
}

std::string reproduce(const Json& plan) {
    std::string keys;
    for (const Json& key : at(plan, "/ranking/0/set"))
        if (key.is_string())
            keys += " --set " + shell_word(key.get<std::string>());
    if (keys.empty())
        return {};
    const std::string file = word(plan, "/scenario"), calibration = word(plan, "/calibration");
    std::string command = "fabricast run " + (file.empty() ? "SCENARIO" : shell_word(file));
    if (!calibration.empty())
        command += " --calibration " + shell_word(calibration);
    return "<section id=reproduce><h2>The first again</h2>\n<pre>" + escape(command + keys) + "</pre></section>\n";
}

}  // namespace

bool is_plan(const Json& json) { return at(json, "/ranking").is_array() && at(json, "/space").is_object(); }

std::string plan_page(const Json& plan) {
    std::string out = page_begin(word(plan, "/name"));
    for (const auto section : {head, front, ranking, yours, sensitivity, what_ifs, classes, space, reproduce})
        out += section(plan);
    return out + page_end(word(plan, "/version"), {});
}

}  // namespace fabricast::report
