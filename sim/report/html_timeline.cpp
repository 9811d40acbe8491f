// The pipeline's timeline: a still picture in SVG that needs no script, and the same states as data for the one with zoom.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/report/embedded_text.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

// "compute forward" -> k-forward; accounts and waiting by their names.
std::string kind_css(const std::string& kind) {
    if (!kind.starts_with("compute "))
        return "k-" + kind;
    const std::string phase = kind.substr(8);
    return "k-" + phase.substr(0, phase.find(' '));
}

std::string kind_title(const std::string& kind) {
    if (kind.starts_with("compute "))
        return kind.substr(8);
    if (kind == "waiting_members")
        return "waiting for members of a collective";
    if (kind == "waiting_message")
        return "pipeline bubble: waiting for a message";
    return account_words(kind);
}

std::string lane_title(const Json& lane) {
    std::string text =
        word(lane, "/place").empty() ? fmt::format("rank {}", number(lane, "/rank")) : word(lane, "/place");
    if (number(lane, "/copies") > 1)
        text += fmt::format(" × {}", number(lane, "/copies"));
    return text;
}

// Place in the legend: computing, traffic in the order of the accounts, waiting, idle.
std::size_t kind_order(const std::string& kind) {
    if (kind.starts_with("compute "))
        return kind == "compute forward" ? 0 : kind == "compute backward" ? 1 : 2;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        if (account_name(static_cast<Account>(a)) == kind)
            return static_cast<Account>(a) == Account::idle ? 1000 : 10 + a;
    }
    return 500;
}

constexpr int kColumns = 20000;  ///< of the still picture

// States of a kind as one path of rectangles.
std::string lane_picture(const Json& lane, const std::vector<std::string>& css, double span) {
    std::map<std::size_t, std::string> paths;
    double time = number(lane, "/begin_ns");
    for (const Json& state : lane["states"]) {
        const double length = state[0].get<double>();
        const int from = static_cast<int>(time / span * kColumns);
        const int to = static_cast<int>((time + length) / span * kColumns);
        time += length;
        if (to > from)
            paths[state[1].get<std::size_t>()] += fmt::format("M{} 0h{}v1h-{}z", from, to - from, to - from);
    }
    std::string out = fmt::format("<svg viewBox=\"0 0 {} 1\" preserveAspectRatio=none aria-hidden=true>", kColumns);
    for (const auto& [kind, path] : paths)
        out += fmt::format("<path class=\"{}\" d=\"{}\"/>", css.at(kind), path);
    return out + "</svg>";
}

}  // namespace

std::string timeline_section(const Json& result) {
    const Json& timeline = at(result, "/timeline");
    if (!timeline.is_object() || timeline["lanes"].empty())
        return {};
    const double span = number(timeline, "/span_ns");
    std::vector<std::string> css, kinds;
    for (const Json& kind : timeline["kinds"]) {
        kinds.push_back(kind.get<std::string>());
        css.push_back(kind_css(kinds.back()));
    }
    std::stable_sort(kinds.begin(), kinds.end(),
                     [](const auto& a, const auto& b) { return kind_order(a) < kind_order(b); });
    std::vector<std::pair<std::string, std::string>> entries;
    for (const std::string& kind : kinds)
        entries.emplace_back(kind_css(kind), kind_title(kind));
    std::string out = "<section id=timeline><h2>One step of the ranks</h2>\n";
    out += fmt::format(
        "<p class=soft>The last simulated step of {} representative ranks; {} classes of ranks do the same at the same "
        "time, "
        "\"×\" says for how many ranks a row stands.",
        timeline["lanes"].size(), number(timeline, "/classes"));
    if (number(timeline, "/resolution_ns") > 1) {
        out += fmt::format(" Pieces shorter than {} are merged, each kind keeps its total.",
                           duration(number(timeline, "/resolution_ns") / 1e9));
    }
    out += "</p>\n" + legend(entries);
    out += "<div id=zoom hidden></div>\n<div id=still class=gantt><div class=rows>\n";
    for (const Json& lane : timeline["lanes"]) {
        out += fmt::format(
            "<span class=name>{}</span><span class=bar><span class=track style=\"display:block\">{}</span>"
            "</span><span class=\"n soft\">rank {}</span>\n",
            escape(lane_title(lane)), lane_picture(lane, css, span), number(lane, "/rank"));
    }
    out += fmt::format("<span></span><span class=axis><span>0</span><span>{}</span></span><span></span>",
                       duration(span / 1e9));
    return out + "</div></div></section>\n";
}

std::string timeline_script(const Json& result) {
    const std::string_view library = embedded_text("echarts.min.js");
    const Json& timeline = at(result, "/timeline");
    if (!timeline.is_object() || library.empty())
        return {};
    Json data = timeline;
    data.erase("links");
    Json titles = Json::array(), css = Json::array();
    for (const Json& kind : timeline["kinds"]) {
        titles.push_back(kind_title(kind.get<std::string>()));
        css.push_back(kind_css(kind.get<std::string>()));
    }
    data["kind_titles"] = titles;
    data["classes_css"] = css;
    for (Json& lane : data["lanes"])
        lane["title"] = lane_title(lane);
    std::string text = data.dump(-1, ' ', true, Json::error_handler_t::replace);
    for (std::size_t i = 0; (i = text.find('<', i)) != std::string::npos;)
        text.replace(i, 1, "\\u003c");  // nothing in it can end the script
    return fmt::format(
        "<script type=\"application/json\" id=timeline-data>{}</script>\n<script>{}</script>\n<script>{}</script>\n",
        text, library, embedded_text("page.js"));
}

}  // namespace fabricast::report
