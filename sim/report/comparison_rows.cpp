// What both views of a comparison show: figures, keys, accounts.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "sim/report/comparison.hpp"
#include "sim/report/comparison_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {

namespace {

std::string change_text(double change, const char* unit) {
    if (change > -0.05 && change < 0.05)
        return "same";
    return fmt::format("{:+.1f} {}", change, unit);
}

}  // namespace

bool is_comparison(const Json& json) {
    return json.is_object() && at(json, "/a/scenario").is_object() && at(json, "/b/scenario").is_object();
}

std::vector<ComparedSide> sides_of(const Json& comparison) {
    std::vector<ComparedSide> sides = {{"A", &at(comparison, "/a"), nullptr},
                                       {"B", &at(comparison, "/b"), &comparison}};
    if (at(comparison, "/c/scenario").is_object())
        sides.push_back({"C", &at(comparison, "/c"), &at(comparison, "/c_against_a")});
    return sides;
}

std::string verdict_of(const ComparedSide& side) {
    const double ratio = side.against_a == nullptr ? 0 : number(*side.against_a, "/tokens_per_s_ratio");
    if (ratio <= 0)
        return {};
    const std::string speed = speed_words(ratio);
    const Json& overlap = at(*side.against_a, "/intervals_overlap");
    return speed + (speed == "as fast" ? " as A" : " than A") +
           std::string(interval_words(!overlap.is_boolean() ? Intervals::unknown
                                      : overlap.get<bool>() ? Intervals::overlap
                                                            : Intervals::apart));
}

std::vector<FigureRow> figure_rows(const std::vector<ComparedSide>& sides) {
    std::vector<FigureRow> rows;
    using Text = std::function<std::string(const Json&, double)>;
    const auto add = [&](const std::string& name, const std::string& path, const Text& text, bool points) {
        FigureRow row{name, {}, {}};
        bool any = false;
        const double a = number(*sides.front().result, path.c_str());
        for (const ComparedSide& side : sides) {
            const bool is = at(*side.result, path.c_str()).is_number();
            const double value = number(*side.result, path.c_str());
            any = any || is;
            row.values.push_back(is ? text(*side.result, value) : "");
            row.changes.push_back(side.against_a == nullptr || !is || a <= 0 ? ""
                                  : points                                   ? change_text((value - a) * 100, "points")
                                                                             : change_text((value / a - 1) * 100, "%"));
        }
        if (any)
            rows.push_back(std::move(row));
    };
    const auto plain = [](std::string (*text)(double)) { return [text](const Json&, double v) { return text(v); }; };
    const auto with_currency = [](const Json& result, double value) {
        return magnitude(value) + " " + word(result, "/run/currency");
    };
    add("GPUs", "/engine/ranks", plain(grouped), false);
    add("step time", "/step/time_s", plain(duration), false);
    add("tokens a step", "/step/tokens", plain(grouped), false);
    add("tokens/s", "/step/tokens_per_s", plain(grouped), false);
    add("tokens/s per GPU", "/step/tokens_per_s_per_gpu", plain(grouped), false);
    add("MFU, attention in full", "/step/mfu", plain(percent), true);
    add("HFU, recomputation counted", "/step/hfu", plain(percent), true);
    add("exposed communication", "/step/exposed_comm_fraction", plain(percent), true);
    add("bubble", "/step/bubble_fraction", plain(percent), true);
    const bool counted = std::any_of(
        sides.begin(), sides.end(), [](const ComparedSide& side) { return at(*side.result, "/campaign").is_object(); });
    const auto one_digit = [](const Json&, double v) { return fmt::format("{:.1f}", v); };
    add(counted ? "days of steps alone" : "days, no failures counted", "/run/days", one_digit, false);
    if (!counted)
        add("cost, no failures counted", "/run/cost", with_currency, false);
    for (const std::string_view figure : life_figures())
        add(
            fmt::format("{}, median of the lives", life_figure_name(figure)), fmt::format("/campaign/{}/p50", figure),
            [figure](const Json& result, double v) { return life_figure(result, figure, v); }, figure == "ettr");
    return rows;
}

std::vector<FigureRow> key_rows(const std::vector<ComparedSide>& sides) {
    std::vector<FigureRow> rows;
    for (std::size_t i = 1; i < sides.size(); ++i) {
        for (const Json& key : at(*sides[i].against_a, "/keys")) {
            const std::string name = word(key, "/key");
            auto row = std::find_if(rows.begin(), rows.end(), [&](const FigureRow& r) { return r.name == name; });
            if (row == rows.end())
                row = rows.insert(rows.end(), {name, std::vector<std::string>(sides.size()), {}});
            row->values[0] = word(key, "/a");
            row->values[i] = word(key, "/b");
        }
    }
    return rows;
}

AccountSteps account_steps(const ComparedSide& side, double least) {
    AccountSteps out;
    const Json& d = *side.against_a;
    out.by_tokens = !d.value("same_batch", true) || !d.value("same_gpus", true);
    const char* a_key = out.by_tokens ? "/a_gpu_s_per_million_tokens" : "/a_s";
    const char* b_key = out.by_tokens ? "/b_gpu_s_per_million_tokens" : "/b_s";
    for (const Json& row : at(d, "/accounts")) {
        out.rows.push_back({account_words(word(row, "/account")), number(row, a_key), number(row, b_key)});
        out.a += out.rows.back().a;
        out.b += out.rows.back().b;
    }
    std::stable_sort(out.rows.begin(), out.rows.end(),
                     [](const AccountStep& x, const AccountStep& y) { return x.b - x.a < y.b - y.a; });
    AccountStep small;
    std::size_t merged = 0;
    std::erase_if(out.rows, [&](const AccountStep& row) {
        const double difference = row.b > row.a ? row.b - row.a : row.a - row.b;
        if (difference >= least * out.a)
            return false;
        small.a += row.a;
        small.b += row.b;
        merged += difference > 0;
        return true;
    });
    if (merged > 0) {
        small.name = fmt::format("{} smaller one{}", merged, merged > 1 ? "s" : "");
        out.rows.push_back(small);
    }
    return out;
}

}  // namespace fabricast::report
