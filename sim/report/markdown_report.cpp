// Markdown from result.json.
#include <fmt/format.h>

#include "sim/report/campaign_view.hpp"
#include "sim/report/comparison_views.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/markdown.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace report {

std::string markdown_cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|')
            out += "\\|";
        else
            out += c == '\n' ? ' ' : c;
    }
    return out;
}

}  // namespace report

namespace {

using namespace report;

std::string campaign_part(const Json& result) {
    const Json& campaign = at(result, "/campaign");
    std::string out = fmt::format(
        "\n## The run with what breaks\n\n{:.0f} lives on {:.0f} nodes and {:.0f} spares.\n\n| figure | P10 | P50 | "
        "P90 "
        "|\n|---|---:|---:|---:|\n",
        number(campaign, "/replicas"), number(campaign, "/nodes"), number(campaign, "/spares"));
    for (const std::string_view figure : life_figures()) {
        const Json& quantiles = at(campaign, fmt::format("/{}", figure).c_str());
        if (!quantiles.is_object())
            continue;
        out += fmt::format("| {} |", life_figure_name(figure));
        for (const char* which : {"/p10", "/p50", "/p90"})
            out += " " + life_figure(result, figure, number(quantiles, which)) + " |";
        out += "\n";
    }
    out += "\n| wall time, mean of the lives | share |\n|---|---:|\n";
    for (const Json& row : at(campaign, "/wall")) {
        if (number(row, "/fraction") > 0)
            out += fmt::format("| {} | {:.2f} % |\n", wall_words(word(row, "/what")), number(row, "/fraction") * 100);
    }
    out += "\n| cause | stops | wall time lost to it |\n|---|---:|---:|\n";
    for (const Json& row : at(campaign, "/stops_by")) {
        if (number(row, "/mean") > 0)
            out += fmt::format("| {} | {:.2f} | {:.2f} % |\n", markdown_cell(word(row, "/what")), number(row, "/mean"),
                               number(row, "/lost_fraction") * 100);
    }
    return out;
}

}  // namespace

std::string markdown_report(const std::string& text) {
    const Json result = checked_result(text);
    if (is_comparison(result))
        return comparison_markdown(result);
    const Json& step = at(result, "/step");
    std::string out =
        fmt::format("# {}\n\n**{}**: {} on {} × {}, forecast by fabricast {}\n\n", word(result, "/scenario/name"),
                    word(result, "/verdict"), word(result, "/scenario/model"), number(result, "/engine/ranks"),
                    word(result, "/scenario/gpu"), word(result, "/version"));
    if (!word(result, "/failure").empty())
        out += word(result, "/failure") + "\n\n";
    out += "| figure | value |\n|---|---:|\n";
    const auto row = [&](const char* name, const std::string& value) {
        out += fmt::format("| {} | {} |\n", name, markdown_cell(value));
    };
    if (at(step, "/mfu").is_number()) {
        row("MFU", percent(number(step, "/mfu")));
        row("HFU", percent(number(step, "/hfu")));
        row("step time", duration(number(step, "/time_s")));
        if (at(step, "/interval/low_s").is_number())
            row("80 % of runs like it",
                duration(number(step, "/interval/low_s")) + " to " + duration(number(step, "/interval/high_s")));
        row("tokens/s", grouped(number(step, "/tokens_per_s")));
        row("tokens/s per GPU", grouped(number(step, "/tokens_per_s_per_gpu")));
        row("exposed communication", percent(number(step, "/exposed_comm_fraction")));
        row("bubble", percent(number(step, "/bubble_fraction")));
    }
    const bool counted = at(result, "/campaign").is_object();
    if (at(result, "/run/days").is_number())
        row(counted ? "days of steps alone" : "days, no failures counted",
            fmt::format("{:.1f}", number(result, "/run/days")));
    if (at(result, "/run/cost").is_number())
        row(counted ? "cost of steps alone" : "cost, no failures counted",
            magnitude(number(result, "/run/cost")) + " " + word(result, "/run/currency"));
    if (counted)
        out += campaign_part(result);
    if (number(step, "/time_s") > 0) {
        out += "\n## Where the step goes\n\n| account | share | time |\n|---|---:|---:|\n";
        for (const Json& part : at(step, "/waterfall")) {
            const double share = number(part, "/fraction");
            if (share > 0)
                out += fmt::format("| {} | {} | {} |\n", account_words(word(part, "/account")), percent(share),
                                   duration(share * number(step, "/time_s")));
        }
    }
    if (!at(result, "/memory").empty()) {
        out += "\n## Memory per GPU\n\n| stage | GiB | of GiB |\n|---:|---:|---:|\n";
        for (const Json& stage : at(result, "/memory"))
            out += fmt::format("| {} | {} | {} |\n", number(stage, "/stage"),
                               gib(static_cast<std::int64_t>(number(stage, "/total_bytes"))),
                               gib(static_cast<std::int64_t>(number(stage, "/capacity_bytes"))));
    }
    if (!at(result, "/communication").empty()) {
        out +=
            "\n## Communication\n\n| collective | group | calls | size | algorithm | alone | busbw GB/s |\n"
            "|---|---|---:|---:|---|---:|---:|\n";
        for (const Json& call : at(result, "/communication"))
            out += fmt::format("| {} | {} | {} | {} | {} {} | {} | {:.1f} |\n", markdown_cell(word(call, "/what")),
                               markdown_cell(word(call, "/group")), number(call, "/calls_per_rank"),
                               decimal_bytes(number(call, "/bytes")), word(call, "/algorithm"), word(call, "/protocol"),
                               duration(number(call, "/time_s")), number(call, "/busbw_bytes_per_s") / 1e9);
    }
    return out + fmt::format("\n`{}`, fingerprint `{}`\n",
                             word(result, "/command").empty() ? "fabricast run " + word(result, "/scenario/file")
                                                              : word(result, "/command"),
                             word(result, "/engine/fingerprint"));
}

}  // namespace fabricast
