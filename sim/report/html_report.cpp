// The page: what a reader sees in ten seconds first, where everything came from last. Sections without data are absent.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "sim/report/comparison_views.hpp"
#include "sim/report/html_campaign.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/plan_views.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using namespace report;

std::string count_of(double value) { return fmt::format("{:.0f}", value); }
std::string per_second(double bytes) { return fmt::format("{:.1f} GB/s", bytes / 1e9); }

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
        const std::vector<Part> parts = memory_parts(stage, scale, entries);
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
    const Json result = checked_result(text);
    if (is_comparison(result))
        return comparison_page(result);
    if (is_plan(result))
        return plan_page(result);
    if (!at(result, "/scenario").is_object())
        throw std::invalid_argument("not a result of fabricast in schema version 1");
    std::string out = page_begin(word(result, "/scenario/name"));
    for (const auto section : {head_section, campaign_section, monitor_section, waterfall_section, stages_section,
                               timeline_section, memory_section, communication_section, links_section, measured_section,
                               path_section, assumptions_section, reproduce_section})
        out += section(result);
    return out + page_end(word(result, "/version"), timeline_script(result));
}

}  // namespace fabricast
