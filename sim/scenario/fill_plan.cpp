#include <fmt/format.h>

#include "models/parallel/ranks.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {
namespace {

void take(const Answers& answers, std::string_view path, std::vector<std::int64_t>& out) {
    if (const Answer* a = answers.given(path)) {
        for (const double number : a->numbers)
            out.push_back(static_cast<std::int64_t>(number));
    }
}

void take(const Answers& answers, std::string_view path, std::vector<std::string>& out) {
    if (const Answer* a = answers.given(path))
        out = a->words;
}

// "2.50", in the currency of the others, or "2.50 USD/GPU-h". One currency in all: that of run.price, else the first said.
void take_prices(const Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    bool said = answers.given("run.price") != nullptr;
    for (const auto& [name, answer] : answers.below("plan.price.")) {
        std::string problem;
        Quantity price;
        if (const auto number = parse_number(answer->text, problem)) {
            price.value = *number;
        } else if (const auto quantity = parse_quantity(answer->text, Dimension::price, "USD/GPU-h", problem)) {
            price = *quantity;
        } else {
            diagnostics.error(answer->place, fmt::format("plan.price.{}: `{}` {}", name, answer->text, problem));
            continue;
        }
        if (price.value < 0) {
            diagnostics.error(answer->place, fmt::format("plan.price.{}: `{}` is below 0", name, answer->text));
            continue;
        }
        if (!price.unit.empty() && !said)
            s.currency = price.unit;
        said = said || !price.unit.empty();
        if (!price.unit.empty() && price.unit != s.currency) {
            diagnostics.error(answer->place, fmt::format("plan.price.{}: `{}` is a second currency beside {}; a plan "
                                                         "compares prices in one",
                                                         name, answer->text, s.currency));
            continue;
        }
        s.plan.prices.emplace_back(name, price.value);
    }
}

}  // namespace

void fill_plan(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    PlanSpec& p = s.plan;
    p.by = answers.get("plan.by").text;
    p.top = answers.get("plan.top").integer;
    if (!answers.given("plan"))
        return;
    p.given = true;
    take(answers, "plan.gpus", p.gpus);
    take(answers, "plan.node", p.nodes);
    take(answers, "plan.nic", p.nics);
    take(answers, "plan.precision", p.precisions);
    take(answers, "plan.tp", p.tp);
    take(answers, "plan.cp", p.cp);
    take(answers, "plan.pp", p.pp);
    take(answers, "plan.vpp", p.vpp);
    take(answers, "plan.ep", p.ep);
    take(answers, "plan.micro_batch", p.micro_batch);
    take(answers, "plan.global_batch", p.global_batch);
    take(answers, "plan.zero", p.zero);
    take(answers, "plan.shard_group", p.shard_group);
    take(answers, "plan.overlap", p.overlap);
    take(answers, "plan.order", p.order);
    if (const Answer* a = answers.given("plan.oversubscription"))
        p.oversubscription = a->numbers;
    if (const Answer* a = answers.given("plan.sp")) {
        for (const std::string& word : a->words)
            p.sp.push_back(word == "true");
    }
    if (const Answer* a = answers.given("plan.schedule")) {
        for (const std::string& word : a->words)
            p.schedule.push_back(schedule_from(word));
    }
    if (const Answer* a = answers.given("plan.recompute")) {
        for (const std::string& word : a->words)
            p.recompute.push_back(recompute_from(word));
    }
    if (const Answer* a = answers.given("plan.cp_exchange")) {
        for (const std::string& word : a->words)
            p.context.push_back(context_from(word));
    }
    for (const std::int64_t stage : p.zero) {
        if (stage > 3)
            diagnostics.error(answers.place("plan.zero"),
                              fmt::format("plan.zero: {} is no ZeRO stage; 0 to 3 are", stage));
    }
    for (const std::string& order : p.order) {
        if (!valid_order(order))
            diagnostics.error(answers.place("plan.order"),
                              fmt::format("plan.order: '{}' is no permutation of tp-cp-ep-dp-pp", order));
    }
    if (const Answer* a = answers.given("plan.where")) {
        p.where = a->words;
        p.where_places.assign(p.where.size(), a->place.text());
    }
    take_prices(answers, s, diagnostics);
}

}  // namespace fabricast
