#include "sim/report/trace_views.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/report/exact.hpp"
#include "sim/report/page.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;
using report::Page;
using report::Paint;
using report::Table;
using traces::RankClass;
using traces::TraceResult;
using traces::TraceTraffic;

/// The accounts a trace can have, in words of its own: a trace does not say what a kernel or a group is for.
struct Row {
    Account account;
    const char* key;
    const char* text;
};
constexpr std::array<Row, 10> kRows = {{{Account::gemm_ideal, "compute", "computing"},
                                        {Account::memory_bound, "compute_memory_bound", "computing, bound by memory"},
                                        {Account::host_bound, "host", "CPU operations"},
                                        {Account::comm_other, "collectives", "collectives, exposed"},
                                        {Account::comm_pp, "messages", "sends and receives, exposed"},
                                        {Account::contention, "contention", "links shared with others"},
                                        {Account::straggler, "straggler", "waiting for ranks that were late"},
                                        {Account::bubble, "bubble", "waiting for messages"},
                                        {Account::data_wait, "memory", "memory nodes"},
                                        {Account::idle, "idle", "idle"}}};

/// "0-7, 16".
std::string ranges(const std::vector<std::uint32_t>& ranks) {
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
            ++last;
        text += (text.empty() ? "" : ", ") + std::to_string(ranks[i]);
        if (last > i)
            text += '-' + std::to_string(ranks[last]);
        i = last + 1;
    }
    return text;
}

ordered_json traffic_json(const std::vector<TraceTraffic>& traffic) {
    ordered_json rows = ordered_json::array();
    for (const TraceTraffic& row : traffic) {
        rows.push_back({{"kind", row.kind},
                        {"ranks", row.ranks},
                        {"bytes", row.bytes},
                        {"algorithm", row.algorithm},
                        {"calls", row.calls},
                        {"time_s", row.time_s},
                        {"busbw_bytes_per_s", row.bus_bytes_per_s},
                        {"limiting_link", row.limiting_link}});
    }
    return rows;
}

void add_traffic(Page& page, const std::vector<TraceTraffic>& traffic, std::size_t most) {
    if (traffic.empty())
        return;
    page.heading("Communication, each alone on the network");
    Table table("lrrrlrrl");
    table.row({"what", "ranks", "bytes", "calls", "algorithm", "time", "busbw", "limited by"});
    for (std::size_t i = 0; i < std::min(most, traffic.size()); ++i) {
        const TraceTraffic& row = traffic[i];
        table.row({row.kind, std::to_string(row.ranks), report::decimal_bytes(static_cast<double>(row.bytes)),
                   report::grouped(static_cast<double>(row.calls)), row.algorithm, report::duration(row.time_s),
                   fmt::format("{:.1f} GB/s", row.bus_bytes_per_s / 1e9), row.limiting_link});
    }
    table.print(page);
    if (traffic.size() > most)
        page.add(fmt::format("  {} more; --full or --json lists them", traffic.size() - most), Paint::dim).end();
}

}  // namespace

std::string trace_json(const TraceResult& result) {
    ordered_json json;
    json["schema_version"] = 1;
    json["kind"] = "trace";
    json["program"] = "fabricast";
    json["version"] = result.version;
    json["verdict"] = result.verdict;
    json["failure"] = result.failure;
    json["trace"] = {{"files", result.source},        {"ranks", result.ranks},     {"nodes", result.nodes},
                     {"templates", result.templates}, {"network", result.network}, {"system", result.system}};
    const bool ran = result.step > 0;
    ordered_json waterfall = ordered_json::array();
    const double whole = static_cast<double>(result.step) * result.ranks;
    for (const Row& row : kRows) {
        const __int128 part = result.accounts[static_cast<std::size_t>(row.account)];
        waterfall.push_back({{"account", row.key},
                             {"rank_ps", report::exact(part)},
                             {"fraction", ran ? static_cast<double>(part) / whole : 0.0}});
    }
    json["step"] = {{"time_s", ran ? ordered_json(seconds(result.step)) : ordered_json()},
                    {"ps", result.step},
                    {"waterfall", std::move(waterfall)}};
    ordered_json classes = ordered_json::array();
    for (const RankClass& of : result.classes) {
        ordered_json accounts = ordered_json::object();
        for (const Row& row : kRows)
            accounts[row.key] = of.accounts[static_cast<std::size_t>(row.account)];
        classes.push_back({{"ranks", ranges(of.ranks)},
                           {"count", of.ranks.size()},
                           {"trace", of.trace},
                           {"finish_ps", of.finish},
                           {"finish_s", seconds(of.finish)},
                           {"accounts_ps", std::move(accounts)}});
    }
    json["ranks"] = std::move(classes);
    json["communication"] = traffic_json(result.traffic);
    json["notes"] = result.notes;
    json["definitions"] = {
        {"time", "step.time_s is when the last rank has done its trace, from an idle start; ps are picoseconds"},
        {"waterfall", "rank-picoseconds over all ranks; they sum to step.ps x trace.ranks exactly"},
        {"ranks", "ranks that do the same at the same time; accounts_ps sum to step.ps"},
        {"bytes", "as the trace says: of a rank; all_gather its shard"},
        {"calls", "of all ranks together; messages: sends"},
        {"busbw", "as nccl-tests counts it, one call alone on the network"},
        {"units", "GB is 10^9 bytes; network files mean 2^30"}};
    json["engine"] = {{"events", result.events}, {"fingerprint", fmt::format("{:016x}", result.fingerprint)}};
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string trace_text(const TraceResult& result, bool full, bool color, bool unicode) {
    Page page(color, unicode, 100);
    const bool done = result.failure.empty();
    page.add(done ? "✔ " : "✘ ", done ? Paint::good : Paint::bad)
        .add(result.verdict, done ? Paint::good : Paint::bad)
        .add(fmt::format("  {} on {} ranks, {} nodes, {} different trace{}", report::clean(result.source), result.ranks,
                         result.nodes, result.templates, result.templates == 1 ? "" : "s"))
        .end();
    page.add("  " + report::clean(result.network), Paint::dim).end();
    page.add("  " + report::clean(result.system), Paint::dim).end();
    if (!done) {
        page.blank();
        for (const std::string& line : report::wrap(report::clean(result.failure), 96))
            page.add("  " + line).end();
        return page.text();
    }
    const auto [first, last] =
        std::minmax_element(result.classes.begin(), result.classes.end(),
                            [](const RankClass& a, const RankClass& b) { return a.finish < b.finish; });
    page.blank();
    page.add("  Step time  ").add(report::duration(seconds(result.step)), Paint::bold);
    if (first->finish == last->finish) {
        page.add("  all ranks end together").end();
    } else {
        page.add(fmt::format("  rank {} ends first, after {}; rank {} last", first->ranks.front(),
                             report::duration(seconds(first->finish)), last->ranks.front()))
            .end();
    }
    page.heading(fmt::format("Where the step goes, mean over {} ranks", result.ranks));
    const double whole = static_cast<double>(result.step) * result.ranks;
    for (const Row& row : kRows) {
        const double share = static_cast<double>(result.accounts[static_cast<std::size_t>(row.account)]) / whole;
        if (share <= 0)
            continue;
        page.add("  " + report::pad_right(row.text, 34) + report::pad_left(report::percent(share), 8) + "  ")
            .add(report::bar(share, 50), Paint::ideal)
            .end();
    }
    add_traffic(page, result.traffic, full ? SIZE_MAX : 8);
    if (full && result.classes.size() > 1) {
        page.heading("Ranks that do the same");
        Table table("lrl");
        table.row({"ranks", "end", "trace"});
        for (const RankClass& of : result.classes)
            table.row({report::clip(ranges(of.ranks), 40), report::duration(seconds(of.finish)), of.trace});
        table.print(page);
    }
    page.blank();
    for (const std::string& note : result.notes) {
        for (const std::string& line : report::wrap(report::clean(note), 96))
            page.add("  " + line, Paint::dim).end();
    }
    return page.text();
}

}  // namespace fabricast
