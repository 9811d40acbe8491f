// The page: what a reader sees in ten seconds first, where everything came from last. Sections without data are absent.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/report/embedded_text.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using namespace report;

std::string count_of(double value) { return fmt::format("{:.0f}", value); }
std::string per_second(double bytes) { return fmt::format("{:.1f} GB/s", bytes / 1e9); }

std::string card(const std::string& figure, const std::string& what) {
    return fmt::format("<div class=card><b>{}</b><span>{}</span></div>\n", escape(figure), escape(what));
}

std::string layout_words(const Json& scenario) {
    std::string text;
    for (const char* key : {"tp", "cp", "ep", "pp", "vpp", "dp"}) {
        const double size = number(scenario, fmt::format("/layout/{}", key).c_str());
        if (size > 1)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, count_of(size));
    }
    if (number(scenario, "/layout/zero") > 0)
        text += fmt::format("{}zero {}", text.empty() ? "" : ", ", count_of(number(scenario, "/layout/zero")));
    return text;
}

// What the weeks come to, faults and all; text and Markdown hold the whole campaign.
std::string campaign_cards(const Json& result) {
    const auto spread = [&](const char* what, auto text) {
        const std::string at_what = fmt::format("/campaign/{}/", what);
        const auto quantile = [&](const char* q) { return text(number(result, (at_what + q).c_str())); };
        return std::pair{quantile("p50"), fmt::format("{} to {}", quantile("p10"), quantile("p90"))};
    };
    const auto [days, days_spread] = spread("days", [](double d) { return fmt::format("{:.1f}", d); });
    std::string out = card(days + " days", fmt::format("with failures, {} in 80 % of {} lives; goodput {}", days_spread,
                                                       count_of(number(result, "/campaign/replicas")),
                                                       percent(number(result, "/campaign/ettr/p50"))));
    if (at(result, "/campaign/cost").is_object()) {
        const auto [cost, cost_spread] = spread("cost", [](double c) { return magnitude(c); });
        out += card(fmt::format("{} {}", cost, word(result, "/run/currency")),
                    fmt::format("with failures, {} in 80 % of lives", cost_spread));
    }
    return out;
}

std::string head_section(const Json& result) {
    const Json& scenario = at(result, "/scenario");
    const Json& step = at(result, "/step");
    const std::string verdict = word(result, "/verdict");
    const char* css = verdict == "fits" ? "" : verdict == "tight" ? " warn" : " bad";
    std::string out =
        fmt::format("<header><h1>{}</h1>\n<p><span class=\"verdict{}\">{}</span> {} on {} × {}, {}; {}</p>\n",
                    escape(word(scenario, "/name")), css, escape(verdict), escape(word(scenario, "/model")),
                    count_of(number(result, "/engine/ranks")), escape(word(scenario, "/gpu")),
                    escape(fmt::format("{} × {}, {}", count_of(number(scenario, "/nodes")), word(scenario, "/node"),
                                       word(scenario, "/fabric"))),
                    escape(layout_words(scenario)));
    out += fmt::format("<p class=soft>{} × {} tokens a step, micro-batch {}, {}, schedule {}, recompute {}, {}</p>\n",
                       count_of(number(scenario, "/global_batch")), count_of(number(scenario, "/sequence")),
                       count_of(number(scenario, "/micro_batch")), escape(word(scenario, "/precision")),
                       escape(word(scenario, "/schedule")), escape(word(scenario, "/recompute")),
                       escape(word(scenario, "/software")));
    if (!word(result, "/failure").empty())
        out += "<p class=bad>" + escape(word(result, "/failure")) + "</p>\n";
    out += "<div class=cards>\n";
    if (at(step, "/mfu").is_number()) {
        out += card(percent(number(step, "/mfu")),
                    fmt::format("MFU of {:.1f} TFLOP/s dense; HFU {}", number(step, "/peak_tflops"),
                                percent(number(step, "/hfu"))));
        std::string like = "step time";
        if (at(step, "/interval/low_s").is_number())
            like += fmt::format(", {} to {} in {:.0f} % of {} {}", duration(number(step, "/interval/low_s")),
                                duration(number(step, "/interval/high_s")), number(step, "/interval/share") * 100,
                                count_of(number(step, "/interval/runs")), word(step, "/interval/like"));
        out += card(duration(number(step, "/time_s")), like);
        out += card(grouped(number(step, "/tokens_per_s")),
                    fmt::format("tokens/s, {} per GPU", grouped(number(step, "/tokens_per_s_per_gpu"))));
        out += card(percent(number(step, "/exposed_comm_fraction")),
                    fmt::format("exposed communication; bubble {}", percent(number(step, "/bubble_fraction"))));
    }
    double most = 0, capacity = 0;
    for (const Json& stage : at(result, "/memory")) {
        if (number(stage, "/total_bytes") >= most) {
            most = number(stage, "/total_bytes");
            capacity = number(stage, "/capacity_bytes");
        }
    }
    if (capacity > 0)
        out += card(gib(static_cast<std::int64_t>(most)) + " GiB",
                    fmt::format("of {} GiB per GPU on the fullest stage, {}", gib(static_cast<std::int64_t>(capacity)),
                                percent(most / capacity)));
    const bool campaign = at(result, "/campaign").is_object();
    if (at(result, "/run/days").is_number()) {
        out += card(fmt::format("{:.1f} days", number(result, "/run/days")),
                    fmt::format("for {} tokens, {} GPU-hours; {}", magnitude(number(scenario, "/tokens")),
                                magnitude(number(result, "/run/gpu_hours")),
                                campaign ? "without failures" : "no failures counted"));
    }
    if (at(result, "/run/cost").is_number())
        out += card(fmt::format("{} {}", magnitude(number(result, "/run/cost")), word(result, "/run/currency")),
                    fmt::format("at {:g} per GPU-hour{}", number(scenario, "/price_per_gpu_hour"),
                                campaign ? ", without failures" : ""));
    if (campaign)
        out += campaign_cards(result);
    out += "</div>\n";
    for (const Json& expected : at(result, "/expect")) {
        const bool met = expected.value("met", false);
        const std::string wanted =
            at(expected, "/expected").is_string()
                ? word(expected, "/expected")
                : fmt::format("{:g} to {:g}", number(expected, "/low"), number(expected, "/high"));
        const std::string is = at(expected, "/value").is_string() ? word(expected, "/value")
                                                                  : fmt::format("{:.6g}", number(expected, "/value"));
        out += fmt::format("<p class={}>{} {} {}; expected {}</p>\n", met ? "good" : "bad", met ? "✔" : "✘",
                           escape(word(expected, "/what")), escape(is), escape(wanted));
    }
    for (const Json& hint : at(result, "/hints"))
        out += "<p>" + escape(hint.get<std::string>()) + "</p>\n";
    for (const Json& note : at(result, "/notes"))
        out += "<p class=soft>" + escape(note.get<std::string>()) + "</p>\n";
    return out + "</header>\n";
}

struct Share {
    std::string account;
    double fraction = 0;
};

std::vector<Share> shares_of(const Json& waterfall) {
    std::vector<Share> shares;
    for (const Json& row : waterfall) {
        if (number(row, "/fraction") > 0)
            shares.push_back({word(row, "/account"), number(row, "/fraction")});
    }
    return shares;
}

// From the whole step at the top down to the matrix products at peak: each bar hangs where the one above it ended.
std::string waterfall_section(const Json& result) {
    std::vector<Share> losses = shares_of(at(result, "/step/waterfall"));
    const double step_s = number(result, "/step/time_s");
    if (losses.empty() || step_s <= 0)
        return {};
    std::stable_sort(losses.begin(), losses.end(), [](const Share& a, const Share& b) {
        const bool useful_a = a.account == "gemm_ideal", useful_b = b.account == "gemm_ideal";
        return useful_a != useful_b ? useful_b : a.fraction > b.fraction;
    });
    std::string out = fmt::format(
        "<section id=waterfall><h2>From peak to MFU</h2>\n<p class=soft>Mean over all GPUs, shares of the step; they "
        "sum to "
        "100 %. MFU {} also counts the FLOPs of attention, which are not in the last bar, and none of "
        "recomputation.</p>\n"
        "<div class=rows>\n",
        percent(number(result, "/step/mfu")));
    double left = 1;
    for (const Share& loss : losses) {
        left = std::max(0.0, left - loss.fraction);
        const double begin = loss.account == "gemm_ideal" ? 0 : left;
        out +=
            bar_row(account_words(loss.account), {{"k-" + loss.account, begin, loss.fraction, percent(loss.fraction)}},
                    fmt::format("{} · {}", percent(loss.fraction), duration(loss.fraction * step_s)));
    }
    return out + "</div></section>\n";
}

std::string stages_section(const Json& result) {
    const Json& stages = at(result, "/step/stages");
    if (stages.size() < 2)
        return {};
    std::string rows;
    std::map<std::string, bool> used;
    for (const Json& stage : stages) {
        std::vector<Part> parts;
        double begin = 0, bubble = 0;
        for (const Share& share : shares_of(at(stage, "/waterfall"))) {
            used[share.account] = used[share.account] || share.fraction >= 0.002;
            parts.push_back({"k-" + share.account, begin, share.fraction,
                             account_words(share.account) + " " + percent(share.fraction)});
            begin += share.fraction;
            if (share.account == "bubble")
                bubble = share.fraction;
        }
        rows += bar_row(fmt::format("stage {}", count_of(number(stage, "/stage"))), parts, "bubble " + percent(bubble));
    }
    std::vector<std::pair<std::string, std::string>> entries;
    for (const Json& row : at(result, "/step/waterfall")) {
        if (used[word(row, "/account")])
            entries.emplace_back("k-" + word(row, "/account"), account_words(word(row, "/account")));
    }
    return "<section id=stages><h2>Where the step goes, per pipeline stage</h2>\n" + legend(entries) +
           "<div class=rows>\n" + rows + "</div></section>\n";
}

std::string memory_section(const Json& result) {
    const Json& memory = at(result, "/memory");
    if (memory.empty())
        return {};
    double scale = 0;
    for (const Json& stage : memory)
        scale = std::max({scale, number(stage, "/total_bytes"), number(stage, "/capacity_bytes")});
    std::string rows;
    std::vector<std::pair<std::string, std::string>> entries;
    for (const Json& stage : memory) {
        std::vector<Part> parts;
        double begin = 0;
        for (const auto& [cause, bytes] : stage["parts"].items()) {
            const double length = bytes.get<double>() / scale;
            const std::string css = cause == "optimizer" ? "m-optimizer" : "k-" + cause;
            if (bytes.get<double>() <= 0)
                continue;
            if (std::none_of(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == css; }))
                entries.emplace_back(css, cause_words(cause));
            parts.push_back({css, begin, length, cause_words(cause) + " " + gib(bytes.get<std::int64_t>()) + " GiB"});
            begin += length;
        }
        rows += bar_row(fmt::format("stage {}", count_of(number(stage, "/stage"))), parts,
                        gib(static_cast<std::int64_t>(number(stage, "/total_bytes"))) + " GiB",
                        number(stage, "/capacity_bytes") / scale);
    }
    std::string out = fmt::format(
        "<section id=memory><h2>Memory per GPU, by stage and cause</h2>\n<p class=soft>Peak of a step; "
        "the line at the right is the capacity, {} GiB.</p>\n",
        gib(static_cast<std::int64_t>(number(memory[0], "/capacity_bytes"))));
    out += legend(entries) + "<div class=rows>\n" + rows + "</div>\n";
    if (number(result, "/host_memory/bytes") > 0)
        out += fmt::format("<p>Host memory of the fullest server: {} GiB of {} GiB.</p>\n",
                           gib(static_cast<std::int64_t>(number(result, "/host_memory/bytes"))),
                           gib(static_cast<std::int64_t>(number(result, "/host_memory/capacity_bytes"))));
    return out + "</section>\n";
}

std::string communication_section(const Json& result) {
    const Json& rows = at(result, "/communication");
    if (rows.empty())
        return {};
    std::map<std::string, double> exposed;
    for (const Json& row : at(result, "/step/waterfall"))
        exposed[word(row, "/account")] = number(row, "/fraction");
    HtmlTable table(
        {"collective", "group", "+calls", "+size", "algorithm", "+alone", "+busbw", "limited by", "+kind exposed"},
        true);
    for (const Json& row : rows) {
        std::string algorithm = word(row, "/algorithm");
        if (!word(row, "/protocol").empty())
            algorithm += " " + word(row, "/protocol");
        if (number(row, "/channels") > 0)
            algorithm += fmt::format(", {} channels", count_of(number(row, "/channels")));
        const auto share = exposed.find(word(row, "/account"));
        table.row({word(row, "/what"), word(row, "/group"), count_of(number(row, "/calls_per_rank")),
                   decimal_bytes(number(row, "/bytes")), algorithm, duration(number(row, "/time_s")),
                   per_second(number(row, "/busbw_bytes_per_s")), word(row, "/limiting_link"),
                   share == exposed.end() ? "" : percent(share->second)});
    }
    return "<section id=communication><h2>Communication</h2>\n<p class=soft>Calls per rank and step; time and bus "
           "bandwidth of "
           "one call alone on the network. The last column is what all traffic of the row's kind costs of the step, "
           "beyond "
           "what compute hides.</p>\n" +
           table.finish() + "</section>\n";
}

// "node 0 gpu 3 nvlink up" -> "nvlink up": the words after the last number.
std::string link_kind(const std::string& name) {
    const std::size_t digit = name.find_last_of("0123456789");
    const std::size_t from = digit == std::string::npos ? 0 : name.find_first_not_of(" ", digit + 1);
    std::string kind = from == std::string::npos ? name : name.substr(from);
    const std::size_t nic = name.find(" nic ");
    return nic != std::string::npos ? "nic " + kind : kind;
}

std::string links_section(const Json& result) {
    const Json& links = at(result, "/timeline/links");
    if (links.empty())
        return {};
    std::vector<std::string> kinds;
    std::map<std::int64_t, std::map<std::string, double>> use;
    std::map<std::string, double> capacity;
    for (const Json& link : links) {
        const std::string kind = link_kind(word(link, "/name"));
        if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
            kinds.push_back(kind);
        double& most = use[static_cast<std::int64_t>(number(link, "/rank"))][kind];
        most = std::max(most, number(link, "/mean_use"));
        capacity[kind] = number(link, "/capacity_bytes_per_s");
    }
    std::string out =
        "<section id=links><h2>Use of links</h2>\n<p class=soft>Mean over the step, as a share of what the link "
        "achieves, for the links of representative ranks.</p>\n<div class=wide><table><thead><tr><th>rank";
    for (const std::string& kind : kinds)
        out +=
            fmt::format("<th class=heat>{}<br><span class=small>{}</span>", escape(kind), per_second(capacity[kind]));
    out += "</thead><tbody>\n";
    for (const auto& [rank, row] : use) {
        out += fmt::format("<tr><td>{}", rank);
        for (const std::string& kind : kinds) {
            const auto cell = row.find(kind);
            if (cell == row.end())
                out += "<td>";
            else
                out += fmt::format(
                    "<td class=heat style=\"background:color-mix(in srgb,var(--net-2) {:.0f}%,transparent)\">{}",
                    std::min(cell->second, 1.0) * 90, percent(cell->second));
        }
        out += "\n";
    }
    return out + "</tbody></table></div></section>\n";
}

std::string measured_section(const Json& result) {
    const Json& rows = at(result, "/measured");
    if (rows.empty())
        return {};
    const double forecast_s = number(result, "/step/time_s");
    HtmlTable table({"measured figure", "+value", "+its step", "+forecast", "+forecast / measured", "+MFU", ""}, true);
    for (const Json& row : rows) {
        const double ratio = number(row, "/forecast_over_measured");
        table.row({word(row, "/figure"), fmt::format("{:g}", number(row, "/value")), duration(number(row, "/step_s")),
                   forecast_s > 0 ? duration(forecast_s) : "", ratio > 0 ? fmt::format("{:.3f}", ratio) : "",
                   percent(number(row, "/mfu")),
                   row.value("suspicious", false) ? "above what such a GPU sustains" : ""});
    }
    return "<section id=measured><h2>Predicted against measured</h2>\n" + table.finish() + "</section>\n";
}

std::string path_section(const Json& result) {
    const Json& rows = at(result, "/critical_path");
    if (rows.empty())
        return {};
    std::string out =
        "<section id=path><h2>Critical path</h2>\n<p class=soft>The chain of operations the step's end waited "
        "for.</p>\n<div class=rows>\n";
    // Parts of one name (of several phases) are one bar.
    std::vector<std::pair<std::string, std::pair<double, double>>> sums;
    for (const Json& row : rows) {
        const std::string what = word(row, "/what");
        auto same = std::find_if(sums.begin(), sums.end(), [&](const auto& sum) { return sum.first == what; });
        if (same == sums.end())
            same = sums.insert(sums.end(), {what, {0, 0}});
        same->second.first += number(row, "/fraction");
        same->second.second += number(row, "/ps") / 1e12;
    }
    for (const auto& [what, sum] : sums)
        out += bar_row(what, {{"k-comm_tp", 0, sum.first, percent(sum.first)}},
                       fmt::format("{} · {}", percent(sum.first), duration(sum.second)));
    return out + "</div></section>\n";
}

std::string assumptions_section(const Json& result) {
    const Json& rows = at(result, "/assumptions");
    if (rows.empty())
        return {};
    std::map<std::string, int> origins;
    HtmlTable table({"what", "value", "origin", "source"}, true);
    for (const Json& row : rows) {
        ++origins[word(row, "/origin")];
        table.row({word(row, "/what"), word(row, "/value"), word(row, "/origin"), word(row, "/source")});
    }
    std::string counts;
    for (const auto& [origin, count] : origins)
        counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, origin);
    return "<section id=assumptions><h2>Assumptions</h2>\n<p class=soft>What the scenario does not say and the "
           "forecast takes: " +
           escape(counts) + ".</p>\n" + table.finish() + "</section>\n";
}

std::string reproduce_section(const Json& result) {
    const std::string command =
        word(result, "/command").empty() ? "fabricast run " + word(result, "/scenario/file") : word(result, "/command");
    return fmt::format(
        "<section id=reproduce><h2>How to reproduce</h2>\n<pre>{}</pre>\n<p>fabricast {}, seed {}. The same scenario "
        "gives "
        "fingerprint <code>{}</code> on any machine ({} events, {} of {} ranks simulated; the others do the "
        "same).</p>\n"
        "</section>\n",
        escape(command), escape(word(result, "/version")), count_of(number(result, "/scenario/seed")),
        escape(word(result, "/engine/fingerprint")), count_of(number(result, "/engine/events")),
        count_of(number(result, "/engine/ranks_simulated")), count_of(number(result, "/engine/ranks")));
}

}  // namespace

std::string html_report(const std::string& text) {
    const Json result = Json::parse(text, nullptr, false);
    if (!result.is_object() || word(result, "/program") != "fabricast" || number(result, "/schema_version") != 1 ||
        !at(result, "/scenario").is_object())
        throw std::invalid_argument("not a result of fabricast in schema version 1");
    std::string out = fmt::format(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
        "<meta name=viewport content=\"width=device-width,initial-scale=1\">\n<link rel=icon href=\"data:,\">\n"
        "<title>{} · fabricast</title>\n<style>\n{}</style></head>\n<body><main>\n",
        escape(word(result, "/scenario/name")), embedded_text("page.css"));
    for (const auto section :
         {head_section, waterfall_section, stages_section, timeline_section, memory_section, communication_section,
          links_section, measured_section, path_section, assumptions_section, reproduce_section})
        out += section(result);
    out += "<footer>Made by fabricast " + escape(word(result, "/version")) +
           ". No network is used by this page.</footer>\n";
    return out + "</main>\n" + timeline_script(result) + "</body></html>\n";
}

}  // namespace fabricast
