// `fabricast compare --json`: both results, and what differs.
#include <nlohmann/json.hpp>

#include "sim/report/comparison.hpp"
#include "sim/report/exact.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

ordered_json number_or_null(double value) { return value > 0 ? ordered_json(value) : ordered_json(); }

ordered_json token_cost(const TokenCost& cost) {
    return {{"gpu_hours", number_or_null(cost.gpu_hours)},
            {"cost", number_or_null(cost.cost)},
            {"billed_gpu_hours", number_or_null(cost.billed_gpu_hours)},
            {"billed_cost", number_or_null(cost.billed_cost)}};
}

ordered_json intervals_json(const Comparison& c) {
    return c.intervals == Intervals::unknown ? ordered_json() : ordered_json(c.intervals == Intervals::overlap);
}

ordered_json difference_json(const Comparison& c) {
    ordered_json keys = ordered_json::array(), accounts = ordered_json::array();
    for (const KeyDifference& key : c.keys)
        keys.push_back({{"key", key.key}, {"a", key.a}, {"b", key.b}});
    for (const AccountDifference& d : c.accounts) {
        accounts.push_back({{"account", account_name(d.account)},
                            {"a_rank_ps", report::exact(d.a_rank_ps)},
                            {"b_rank_ps", report::exact(d.b_rank_ps)},
                            {"a_s", d.a_s},
                            {"b_s", d.b_s},
                            {"difference_s", d.b_s - d.a_s},
                            {"points", d.points},
                            {"a_gpu_s_per_million_tokens", d.a_per_token},
                            {"b_gpu_s_per_million_tokens", d.b_per_token}});
    }
    ordered_json json;
    json["keys"] = std::move(keys);
    json["same_batch"] = c.same_batch;
    json["same_gpus"] = c.same_gpus;
    const double a = static_cast<double>(c.a->step.ps), b = static_cast<double>(c.b->step.ps);
    json["step_ratio"] = c.ran ? ordered_json(b / a) : ordered_json();
    json["step_difference_ps"] = c.ran ? ordered_json(c.b->step.ps - c.a->step.ps) : ordered_json();
    json["tokens_per_s_ratio"] = number_or_null(c.speed_ratio);
    json["intervals_overlap"] = intervals_json(c);
    json["gpu_time_per_token_ratio"] = number_or_null(c.gpu_s_per_token_ratio);
    json["cost_per_token_ratio"] = number_or_null(c.cost_ratio);
    json["break_even_price_ratio"] = number_or_null(c.break_even);
    json["break_even_price_ratio_billed"] = number_or_null(c.billed_break_even);
    json["trillion_tokens"] = {{"a", token_cost(c.tokens_a)}, {"b", token_cost(c.tokens_b)}};
    json["accounts"] = std::move(accounts);
    return json;
}

}  // namespace

std::string comparison_json(const Comparison& c, const Comparison* third) {
    ordered_json json;
    json["schema_version"] = 1;
    json["program"] = "fabricast";
    json["version"] = c.a->version;
    json.update(difference_json(c));
    if (third != nullptr)
        json["c_against_a"] = difference_json(*third);
    json["a"] = ordered_json::parse(with_measurements(result_json(*c.a), c.measured_a, *c.a));
    json["b"] = ordered_json::parse(with_measurements(result_json(*c.b), c.measured_b, *c.b));
    if (third != nullptr)
        json["c"] = ordered_json::parse(with_measurements(result_json(*third->b), third->measured_b, *third->b));
    json["definitions"] = {
        {"accounts",
         "mean over the GPUs of each; difference_s sums to the difference of the steps, points (100 x difference / "
         "step of a) to its percentage, exactly in rank_ps / ranks"},
        {"ratios", "of b over a"},
        {"c_against_a", "the same of c over a; there `b` is c"},
        {"same_batch", "false: compare by tokens, not by iteration time"},
        {"intervals_overlap",
         "of tokens a second, from step.interval of both; each is of one forecast alone, what errors both share "
         "cancels in "
         "the ratio; null without them"},
        {"cost_per_token_ratio", "GPU-time a token x run.price; null without two prices in one currency"},
        {"break_even_price_ratio",
         "price of a GPU-hour of b over one of a at which a token costs the same: GPU-hours a token of a over those of "
         "b, "
         "of the steps alone; billed: of the runs with faults, spares and stops included, medians"},
        {"trillion_tokens",
         "GPU-hours and money of 1e12 tokens: of the steps alone, and as billed in a run with faults"}};
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
