// The page of a comparison: which is faster and by how much, then where the difference lies.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/report/comparison_views.hpp"
#include "sim/report/html_charts.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

constexpr double kLeast = 0.002;  // of A's step: differences below it are one row

std::vector<LetteredResult> with_campaign(const std::vector<ComparedSide>& sides) {
    std::vector<LetteredResult> results;
    for (const ComparedSide& side : sides) {
        if (at(*side.result, "/campaign").is_object())
            results.emplace_back(side.letter, side.result);
    }
    return results;
}

std::string head(const std::vector<ComparedSide>& sides) {
    std::string names;
    for (const ComparedSide& side : sides)
        names += (names.empty() ? "" : " · ") + side.letter + " " + word(*side.result, "/scenario/name");
    std::string out = "<header><h1>" + escape(names) + "</h1>\n";
    for (const ComparedSide& side : sides) {
        const Json& r = *side.result;
        const std::string verdict = word(r, "/verdict");
        const char* css = verdict == "fits" ? "" : verdict == "tight" ? " warn" : " bad";
        out += fmt::format(
            "<p><b>{}</b> <span class=\"verdict{}\">{}</span> {} on {:.0f} × {}, {:.0f} × {} tokens a step, "
            "micro-batch {:.0f}, recompute {}</p>\n",
            side.letter, css, escape(verdict), escape(word(r, "/scenario/model")), number(r, "/engine/ranks"),
            escape(word(r, "/scenario/gpu")), number(r, "/scenario/global_batch"),
            grouped(number(r, "/scenario/sequence")), number(r, "/scenario/micro_batch"),
            escape(word(r, "/scenario/recompute")));
        if (!word(r, "/failure").empty())
            out += "<p class=bad>" + escape(word(r, "/failure")) + "</p>\n";
    }
    std::string cards;
    for (const ComparedSide& side : sides) {
        const std::string verdict = verdict_of(side);
        if (verdict.empty())
            continue;
        const std::size_t cut = verdict.find(" than A");
        std::string more = fmt::format("{}{}; {:.3f} × the GPU-time a token", cut == std::string::npos ? "" : "than A",
                                       cut == std::string::npos ? "" : verdict.substr(cut + 7),
                                       number(*side.against_a, "/gpu_time_per_token_ratio"));
        if (number(*side.against_a, "/cost_per_token_ratio") > 0)
            more += fmt::format(", {:.3f} × the money", number(*side.against_a, "/cost_per_token_ratio"));
        cards += card(side.letter + " is " + verdict.substr(0, cut), more);
    }
    if (!cards.empty())
        out += "<div class=\"cards two\">\n" + cards + "</div>\n";
    return out + "</header>\n";
}

std::string intervals(const std::vector<ComparedSide>& sides) {
    struct Range {
        double low = 0, at = 0, high = 0;
    };
    std::vector<Range> ranges;
    double most = 0;
    for (const ComparedSide& side : sides) {
        const Json& step = at(*side.result, "/step");
        Range range;
        range.at = number(step, "/tokens_per_s");
        if (number(step, "/interval/low_s") > 0) {
            range.low = number(step, "/tokens") / number(step, "/interval/high_s");
            range.high = number(step, "/tokens") / number(step, "/interval/low_s");
        }
        most = std::max({most, range.high, range.at});
        ranges.push_back(range);
    }
    if (std::none_of(ranges.begin(), ranges.end(), [](const Range& r) { return r.high > 0; }))
        return {};
    std::string out =
        "<section id=intervals><h2>Tokens a second</h2>\n<p class=soft>Bar: the forecast; dark: where 80 % of "
        "published "
        "runs like it lie. Each interval is that of one forecast alone; errors both share cancel in the ratio.</p>\n"
        "<div class=rows>\n";
    for (std::size_t i = 0; i < sides.size(); ++i) {
        const Range& r = ranges[i];
        if (r.at <= 0)
            continue;
        out += bar_row(
            sides[i].letter,
            {{"d-light", 0, r.at / most, grouped(r.at)},
             {"d-range", r.low / most, (r.high - r.low) / most, grouped(r.low) + " to " + grouped(r.high)},
             {"d-at", r.at / most - 0.002, 0.004, grouped(r.at)}},
            r.high > 0 ? fmt::format("{} ({} to {})", grouped(r.at), grouped(r.low), grouped(r.high)) : grouped(r.at));
    }
    return out + "</div></section>\n";
}

std::string keys(const std::vector<ComparedSide>& sides) {
    const std::vector<FigureRow> rows = key_rows(sides);
    std::vector<std::string> columns = {"key"};
    for (const ComparedSide& side : sides)
        columns.push_back(side.letter);
    HtmlTable table(columns, true);
    for (const FigureRow& row : rows) {
        std::vector<std::string> cells = {row.name, row.values[0]};
        for (std::size_t i = 1; i < sides.size(); ++i)
            cells.push_back(row.values[i].empty() ? "as A" : row.values[i]);
        table.row(cells);
    }
    return rows.empty()
               ? "<section id=keys><h2>The scenarios say the same</h2></section>\n"
               : "<section id=keys><h2>What the scenarios say differently</h2>\n" + table.finish() + "</section>\n";
}

std::string figures(const std::vector<ComparedSide>& sides) {
    std::vector<std::string> columns = {"figure"};
    for (const ComparedSide& side : sides) {
        columns.push_back("+" + side.letter);
        if (side.against_a != nullptr)
            columns.push_back("+" + side.letter + " against A");
    }
    HtmlTable table(columns, true);
    for (const FigureRow& row : figure_rows(sides)) {
        std::vector<std::string> cells = {row.name};
        for (std::size_t i = 0; i < sides.size(); ++i) {
            cells.push_back(row.values[i]);
            if (i > 0)
                cells.push_back(row.changes[i]);
        }
        table.row(cells);
    }
    return "<section id=figures><h2>Figures</h2>\n" + table.finish() + "</section>\n";
}

// From the whole of A down (or up) to the whole of the other: each bar hangs where the one before ended.
std::string differences(const std::vector<ComparedSide>& sides) {
    std::string out;
    for (const ComparedSide& side : sides) {
        if (side.against_a == nullptr)
            continue;
        const AccountSteps steps = account_steps(side, kLeast);
        if (steps.rows.empty() || steps.a <= 0 || steps.b <= 0)
            continue;
        const auto figure = [&](double value) {
            return steps.by_tokens ? fmt::format("{:.3f}", value) : duration(value);
        };
        const auto signed_figure = [&](double value) {
            const std::string size = figure(value < 0 ? -value : value);
            return (value < 0 ? "-" : "+") + size + fmt::format(" · {:+.1f} points", 100 * value / steps.a);
        };
        std::vector<Hanging> rows = {{"A", figure(steps.a), 0, steps.a, "d-whole"}};
        double level = steps.a, most = std::max(steps.a, steps.b);
        for (const AccountStep& row : steps.rows) {
            const double next = level + row.b - row.a;
            rows.push_back({row.name, signed_figure(row.b - row.a), level, next, row.b > row.a ? "d-more" : "d-less"});
            level = next;
            most = std::max(most, level);
        }
        rows.push_back({side.letter, figure(steps.b), 0, steps.b, "d-whole"});
        out +=
            fmt::format("<h3>From A to {}: {}</h3>\n<p class=soft>{}; points are of A's, and sum to {:+.1f} %.</p>\n",
                        side.letter, escape(verdict_of(side)),
                        steps.by_tokens
                            ? "GPU-seconds per million tokens, since batches or GPU counts differ: a longer step need "
                              "not be slower"
                            : "Time of a step, mean over the GPUs",
                        100 * (steps.b / steps.a - 1)) +
            hanging_rows(rows, most);
    }
    return out.empty() ? out
                       : "<section id=difference><h2>Where the difference lies</h2>\n" +
                             legend({{"d-less", "less than A"}, {"d-more", "more than A"}}) + out + "</section>\n";
}

std::string steps_beside(const std::vector<ComparedSide>& sides) {
    // Per token where a side has another batch or number of GPUs.
    bool by_tokens = false;
    for (const ComparedSide& side : sides)
        by_tokens = by_tokens || (side.against_a != nullptr && account_steps(side, 0).by_tokens);
    const auto whole = [&](const Json& r) {
        const double tokens = number(r, "/step/tokens");
        return by_tokens && tokens > 0 ? number(r, "/step/time_s") * number(r, "/engine/ranks") / tokens * 1e6
                                       : number(r, "/step/time_s");
    };
    double most = 0;
    for (const ComparedSide& side : sides)
        most = std::max(most, whole(*side.result));
    if (most <= 0)
        return {};
    std::map<std::string, bool> used;
    std::string rows;
    for (const ComparedSide& side : sides) {
        if (whole(*side.result) <= 0)
            continue;
        std::vector<Part> parts;
        double begin = 0;
        const double scale = whole(*side.result) / most;
        for (const Json& row : at(*side.result, "/step/waterfall")) {
            const double share = number(row, "/fraction");
            if (share <= 0)
                continue;
            const std::string account = word(row, "/account");
            used[account] = used[account] || share >= 0.005;
            parts.push_back({"k-" + account, begin, share * scale, account_words(account) + " " + percent(share)});
            begin += share * scale;
        }
        rows += bar_row(side.letter, parts,
                        by_tokens ? fmt::format("{:.3f} GPU-s a million tokens", whole(*side.result))
                                  : duration(whole(*side.result)));
    }
    std::vector<std::pair<std::string, std::string>> entries;
    for (const Json& row : at(*sides.front().result, "/step/waterfall")) {
        if (used[word(row, "/account")])
            entries.emplace_back("k-" + word(row, "/account"), account_words(word(row, "/account")));
    }
    return "<section id=steps><h2>Where the steps go</h2>\n" + legend(entries) + "<div class=rows>\n" + rows +
           "</div></section>\n";
}

const Json* fullest(const Json& result) {
    const Json* stage = nullptr;
    for (const Json& one : at(result, "/memory")) {
        if (stage == nullptr || number(one, "/total_bytes") > number(*stage, "/total_bytes"))
            stage = &one;
    }
    return stage;
}

std::string memory(const std::vector<ComparedSide>& sides) {
    double scale = 0;
    for (const ComparedSide& side : sides) {
        if (const Json* stage = fullest(*side.result))
            scale = std::max({scale, number(*stage, "/total_bytes"), number(*stage, "/capacity_bytes")});
    }
    if (scale <= 0)
        return {};
    std::vector<std::pair<std::string, std::string>> entries;
    std::string rows;
    for (const ComparedSide& side : sides) {
        if (const Json* stage = fullest(*side.result)) {
            const std::vector<Part> parts = memory_parts(*stage, scale, entries);
            rows += bar_row(fmt::format("{}, stage {:.0f}", side.letter, number(*stage, "/stage")), parts,
                            fmt::format("{} of {} GiB", gib(static_cast<std::int64_t>(number(*stage, "/total_bytes"))),
                                        gib(static_cast<std::int64_t>(number(*stage, "/capacity_bytes")))),
                            number(*stage, "/capacity_bytes") / scale);
        }
    }
    return "<section id=memory><h2>Memory per GPU of the fullest stage</h2>\n" + legend(entries) +
           "<div class=rows>\n" + rows + "</div></section>\n";
}

std::string campaigns(const std::vector<ComparedSide>& sides) {
    const std::vector<LetteredResult> results = with_campaign(sides);
    if (results.empty())
        return {};
    return "<section id=campaign><h2>The runs with what breaks</h2>\n<p class=soft>Bars: how many simulated lives end "
           "there; band: P10 to P90; line: median. Figures: median (P10 to P90).</p>\n" +
           life_strips(results) +
           "<h3>Where wall time without kept steps goes</h3>\n<p class=soft>Share of the wall time, mean of all "
           "lives.</p>\n" +
           badput_rows(results) + "</section>\n";
}

std::string reproduce(const Json& comparison, const std::vector<ComparedSide>& sides) {
    std::string prints;
    for (const ComparedSide& side : sides) {
        if (number(*side.result, "/step/time_s") <= 0)
            continue;
        prints += fmt::format("{} {} <code>{}</code>", prints.empty() ? "" : ",", side.letter,
                              escape(word(*side.result, "/engine/fingerprint")));
    }
    return "<section id=reproduce><h2>How to reproduce</h2>\n" +
           (word(comparison, "/command").empty() ? std::string()
                                                 : "<pre>" + escape(word(comparison, "/command")) + "</pre>\n") +
           fmt::format("<p>fabricast {}, {}.</p>\n</section>\n", escape(word(comparison, "/version")), prints);
}

}  // namespace

std::string comparison_page(const Json& comparison) {
    const std::vector<ComparedSide> sides = sides_of(comparison);
    return page_begin(word(*sides[0].result, "/scenario/name") + " against " +
                      word(*sides[1].result, "/scenario/name")) +
           head(sides) + intervals(sides) + keys(sides) + figures(sides) + differences(sides) + steps_beside(sides) +
           memory(sides) + campaigns(sides) + reproduce(comparison, sides) + page_end(word(comparison, "/version"), "");
}

}  // namespace fabricast::report
