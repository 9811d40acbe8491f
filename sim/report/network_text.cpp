// `fabricast explain --network` on a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "models/compute/math.hpp"
#include "sim/report/network_views.hpp"
#include "sim/report/sections.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using namespace report;

constexpr std::size_t kPageColumns = 160, kBarColumns = 24;

double wide(__int128 bytes) { return static_cast<double>(bytes); }

std::string gigabits(double bits_per_s) {
    const double gb = bits_per_s / 1e9;
    return gb < 99.95 ? fmt::format("{:.1f}", gb) : grouped(gb);
}

void print_notes(Page& page, const std::vector<std::string>& notes) {
    for (const std::string& note : notes) {
        const std::vector<std::string> lines = wrap(note, kScreenColumns - 4);
        for (std::size_t i = 0; i < lines.size(); ++i)
            page.add(i == 0 ? "  · " : "    ", Paint::dim).add(lines[i], Paint::dim).end();
    }
}

/// Some node sends more than the mean.
bool uneven(const NetworkNeed& need, const SentBytes& sent) {
    constexpr double kWorthSaying = 1.01;
    return wide(SentBytes::sum(sent.busiest)) > kWorthSaying * need.per_node(SentBytes::sum(sent.over_network));
}

void print_bytes(Page& page, const NetworkNeed& need, const NetworkRow& own) {
    const SentBytes& sent = own.sent;
    page.heading(fmt::format("What a step sends, on the wire, mean over {} GPUs; micro-batch {}",
                             need.nodes * need.gpus_per_node, own.micro_batch));
    const bool busiest = uneven(need, sent);
    Table table("lrrrr");
    table.row({"kind", "a GPU, in all", "a GPU, over the network", "a node, over the network",
               busiest ? fmt::format("node {}, the busiest", sent.busiest_node) : ""});
    const auto add = [&](std::string_view name, __int128 all, __int128 network, __int128 most) {
        table.row({std::string(name), decimal_bytes(need.per_gpu(all)), decimal_bytes(need.per_gpu(network)),
                   decimal_bytes(need.per_node(network)), busiest ? decimal_bytes(wide(most)) : ""});
    };
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        if (sent.from_gpus[a] + sent.over_network[a] > 0)
            add(account_text(static_cast<Account>(a)), sent.from_gpus[a], sent.over_network[a], sent.busiest[a]);
    }
    add("= step", SentBytes::sum(sent.from_gpus), SentBytes::sum(sent.over_network), SentBytes::sum(sent.busiest));
    table.print(page);
    print_notes(page, {"in all: over NVLink and PCIe, to GPUs of its own node too"});
}

std::string mark(const NetworkNeed& need, const NetworkRow& row) {
    std::string out = row.own ? "yours" : "";
    const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
    if (!row.refused.empty())
        add(clean(row.refused));
    else if (!row.fits)
        add(row.memory > need.capacity ? fmt::format("does not fit in {} GiB", gib(need.capacity)) : "does not fit");
    return out.empty() ? out : "← " + out;
}

std::string needs_text(const NetworkRow& row, double rate) {
    switch (row.bound) {
        case NetworkRow::Bound::smallest_is_enough: return "at most " + gigabits(rate);
        case NetworkRow::Bound::largest_is_short: return "never";
        case NetworkRow::Bound::between: break;
    }
    return gigabits(rate);
}

// Bars of a log scale over the rates that were looked at.
double on_log_scale(const NetworkNeed& need, double rate) {
    return rate > need.smallest ? math::log(rate / need.smallest) / math::log(need.largest / need.smallest) : 0;
}

void print_curve(Page& page, const NetworkNeed& need) {
    page.heading("Bandwidth at which communication hides behind compute, against the micro-batch; Gb/s, one direction");
    Table table("rrrrrrrrlrl");
    table.row({"micro-batch", "tokens", "GiB", "network a GPU", "step", "infinite network", "waits", "needs a node", "",
               "needs a GPU", ""});
    for (const NetworkRow& row : need.rows) {
        const std::string size = fmt::format("{} × {}", row.micro_batches, row.micro_batch),
                          tokens = grouped(static_cast<double>(row.tokens));
        if (!row.refused.empty()) {
            table.row({size, tokens, "", "", "", "", "", "-", "", "-", mark(need, row)});
            continue;
        }
        const double node = row.needs_bits_per_s;
        const double length = row.bound == NetworkRow::Bound::largest_is_short ? 1 : on_log_scale(need, node);
        table.row({size, tokens, gib(row.memory), decimal_bytes(need.per_gpu(SentBytes::sum(row.sent.over_network))),
                   duration(seconds(row.step)), duration(seconds(row.infinite)), percent(row.waits()),
                   needs_text(row, node), bar(length, kBarColumns),
                   needs_text(row, node / static_cast<double>(need.gpus_per_node)), mark(need, row)});
    }
    table.row({"", "", "", "", "", "", "", gigabits(need.has_bits_per_s),
               bar(on_log_scale(need, need.has_bits_per_s), kBarColumns),
               gigabits(need.has_bits_per_s / static_cast<double>(need.gpus_per_node)), "← what there is"});
    table.print(page);
    page.blank();
    print_notes(
        page,
        {fmt::format("hides: the step is at most {:.0f} % above the step with an infinitely fast network, same layout "
                     "and software; simulated with other adapters ({} steps in all), highest crossing, within {:.0f} %",
                     (kHiddenWithin - 1) * 100, need.steps, (kNeedResolution - 1) * 100),
         fmt::format("adapters and links between nodes are scaled together; latency, NVLink, PCIe and the global "
                     "batch stay; rates are line rates, {:.0f} % of them reached; bars: log scale, {} to {} Gb/s",
                     need.efficiency * 100, gigabits(need.smallest), gigabits(need.largest)),
         "micro-batch: micro-batches a step × sequences; waits: share of the step that an infinite network would "
         "save"});
}

}  // namespace

std::string network_text(const NetworkNeed& need, bool color, bool unicode) {
    Page page(color, unicode, kPageColumns);
    print_verdict(page, need.run);
    for (const std::string& line : wrap(clean(need.run.failure), kScreenColumns - 2))
        page.add("  ").add(line, Paint::bad).end();
    page.blank();
    print_headline(page, need.run);
    const std::vector<std::string> verdict = network_verdict(need);
    if (!verdict.empty())
        page.blank();
    for (const std::string& sentence : verdict) {
        const std::vector<std::string> lines = wrap(sentence, kScreenColumns - 4);
        for (std::size_t i = 0; i < lines.size(); ++i)
            page.add(i == 0 ? "  → " : "    ").add(lines[i], Paint::bold).end();
    }
    if (const NetworkRow* own = need.own(); own != nullptr && own->refused.empty())
        print_bytes(page, need, *own);
    if (!need.rows.empty())
        print_curve(page, need);
    return page.text();
}

}  // namespace fabricast
