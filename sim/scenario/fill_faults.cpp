// faults: what breaks, from the catalogue with the scenario's changes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "sim/scenario/fill.hpp"
#include "sim/scenario/nearest.hpp"

namespace fabricast {
namespace {

const faults::FaultCatalogue& catalogue() { return faults::FaultCatalogue::builtin(); }

/// Rates by name over `entries`; every name must be one of theirs, every rate a number that is not negative.
template <typename Entry>
void set_rates(const Answers& answers, const std::string& key, std::vector<Entry>& entries, Diagnostics& diagnostics) {
    std::vector<std::string> names;
    for (const Entry& entry : entries)
        names.push_back(entry.name);
    for (const auto& [name, answer] : answers.below(key + ".")) {
        std::size_t at = 0;
        while (at < names.size() && names[at] != name)
            ++at;
        std::string problem;
        const std::optional<double> rate = parse_number(answer->text, problem);
        if (at == names.size())
            diagnostics.error(answer->place, fmt::format("{}: nothing called `{}` breaks; known: {}{}", key, name,
                                                         listed(names), did_you_mean(name, names)));
        else if (!rate)
            diagnostics.error(answer->place,
                              fmt::format("{}.{}: `{}` {}; it needs a number of events per 1000 node-days", key, name,
                                          answer->text, problem));
        else if (*rate < 0 || *rate > 1e6)
            diagnostics.error(answer->place, fmt::format("{}.{}: `{}` must be at least 0 and at most 1000000", key,
                                                         name, answer->text));
        else
            entries[at].rate = *rate / 1000;
    }
}

void scale(std::vector<faults::Component>& components, double to) {
    double sum = 0;
    for (const faults::Component& c : components)
        sum += c.rate;
    for (faults::Component& c : components)
        c.rate *= sum > 0 ? to / sum : 0;
}

void fill_rates(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    RunPlan::Faults& f = s.run.faults;
    f.components = catalogue().components();
    f.degradations = catalogue().degradations();
    f.episodes = catalogue().episodes();
    const std::string rates = answers.get("faults.rates").text;
    const Answer* total = answers.given("faults.per_1000_node_days");
    if (rates == "none") {
        scale(f.components, 0);
        for (faults::Degradation& d : f.degradations)
            d.rate = 0;
        f.episodes = {};
        if (total)
            diagnostics.error(total->place, "faults.per_1000_node_days: faults.rates is none; leave one of them out");
    } else if (rates == "new") {
        scale(f.components, catalogue().defaults().new_fleet_rate);
    }
    if (total && rates != "none")
        scale(f.components, total->number / 1000);
    set_rates(answers, "faults.components", f.components, diagnostics);
    set_rates(answers, "faults.degradations", f.degradations, diagnostics);
    if (const Answer* per_day = answers.given("faults.congestions_per_day")) {
        f.episodes.congestions_per_day = per_day->number;
        f.episodes.congestion_mean_s = catalogue().episodes().congestion_mean_s;
        f.episodes.congestion_factor = catalogue().episodes().congestion_factor;
    }
    if (const Answer* flaps = answers.given("faults.flaps_per_link_month")) {
        f.episodes = {f.episodes.congestions_per_day,    f.episodes.congestion_mean_s,
                      f.episodes.congestion_factor,      flaps->number,
                      catalogue().episodes().flap_low_s, catalogue().episodes().flap_high_s};
    }
    if (s.fabric_is_listed()) {  // parts of a described network have names of their own
        for (faults::Degradation& d : f.degradations)
            d.rate = 0;
        f.episodes.congestions_per_day = 0;
        s.notes.push_back("faults: slow faults and congestion are known of servers on a built fabric only; none here");
    }
}

/// Kinds of events are words of the field table; what they are of the catalogue.
struct EventKind {
    std::string_view word, name;
    RunPlan::Faults::Event::Kind kind;
};
constexpr EventKind kEventKinds[] = {{"gpu_fail", "gpu", RunPlan::Faults::Event::Kind::stop},
                                     {"gpu_memory_error", "hbm", RunPlan::Faults::Event::Kind::stop},
                                     {"nic_down", "nic", RunPlan::Faults::Event::Kind::stop},
                                     {"switch_down", "network", RunPlan::Faults::Event::Kind::stop},
                                     {"node_down", "host", RunPlan::Faults::Event::Kind::stop},
                                     {"software", "software", RunPlan::Faults::Event::Kind::stop},
                                     {"hang", "unknown", RunPlan::Faults::Event::Kind::stop},
                                     {"gpu_slow", "slow_gpu", RunPlan::Faults::Event::Kind::slow},
                                     {"gpu_hot", "hot_gpu", RunPlan::Faults::Event::Kind::slow},
                                     {"nic_slow", "nic_half", RunPlan::Faults::Event::Kind::slow},
                                     {"link_flap", "", RunPlan::Faults::Event::Kind::stall},
                                     {"data_nan", "", RunPlan::Faults::Event::Kind::poisoned},
                                     {"from_zero", "", RunPlan::Faults::Event::Kind::from_zero}};

template <typename Entry>
std::size_t place_of(std::string_view name, const std::vector<Entry>& entries) {
    std::size_t at = 0;
    while (at < entries.size() && entries[at].name != name)
        ++at;
    return at;
}

constexpr std::string_view kCampaignKeys[] = {"kind", "at", "duration", "node", "gpu", "nic", "severity"};

/// Keys of the other sort of event, which would be read by nobody.
void check_only(const Answers& answers, const std::string& path, std::span<const std::string_view> known,
                std::string_view sort, Diagnostics& diagnostics) {
    for (const auto& [key, answer] : answers.below(path + "."))
        if (std::find(known.begin(), known.end(), key) == known.end())
            diagnostics.error(answer->place, fmt::format("{}.{}: an event with `{}` does not have it; it has {}", path,
                                                         key, sort, fmt::join(known, ", ")));
}

void fill_event(const Answers& answers, const std::string& path, Scenario& s, Diagnostics& diagnostics) {
    using Event = RunPlan::Faults::Event;
    const Answer *kind = answers.given(path + ".kind"), *at = answers.given(path + ".at");
    if (const Answer* what = answers.given(path + ".what"); what || !kind) {  // of the step: fill_job
        if (what && kind)
            diagnostics.error(what->place, fmt::format("{}: `kind` is a fault of a campaign, `what` one of the step; "
                                                       "leave one of them out",
                                                       path));
        return;
    }
    check_only(answers, path, kCampaignKeys, "kind", diagnostics);
    if (!at) {
        missing(answers, path + ".at", "", diagnostics);
        return;
    }
    const struct {
        const char* key;
        std::uint32_t count;
    } parts[] = {{"node", s.nodes}, {"gpu", s.node.gpus}, {"nic", s.node.nics}};
    for (const auto& [key, count] : parts)
        if (const Answer* part = answers.given(path + "." + key); part && part->integer >= count)
            diagnostics.error(part->place, fmt::format("{}.{}: there is no {} {}; {} are numbered from 0 to {}", path,
                                                       key, key, part->integer, count, std::int64_t{count} - 1));
    Event event;
    event.at_s = at->number;
    if (const Answer* lasts = answers.given(path + ".duration"))
        event.lasts_s = lasts->number;
    if (const Answer* node = answers.given(path + ".node"))
        event.node = static_cast<std::uint32_t>(node->integer);
    const auto known = std::find_if(std::begin(kEventKinds), std::end(kEventKinds),
                                    [&](const EventKind& one) { return one.word == kind->text; });
    if (known == std::end(kEventKinds)) {
        s.notes.push_back(fmt::format("{}: a campaign does not know {} yet", path, kind->text));
        return;
    }
    event.kind = known->kind;
    event.which = event.kind == Event::Kind::slow ? place_of(known->name, s.run.faults.degradations)
                                                  : place_of(known->name, s.run.faults.components);
    s.run.faults.events.push_back(event);
}

}  // namespace

bool faults_of_campaign(const Answers& answers) {
    if (!answers.given("faults"))
        return false;
    bool other = false, of_step = false;
    for (const auto& [key, answer] : answers.below("faults.")) {
        const bool event = key.starts_with("events");
        other |= !event || key.ends_with("].kind");
        of_step |= event && key.ends_with("].what");
    }
    return other || !of_step;
}

void fill_faults(Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    fill_rates(answers, s, diagnostics);
    RunPlan::Faults& f = s.run.faults;
    const auto number = [&](const char* key, double otherwise) {
        const Answer* answer = answers.given(key);
        return answer ? answer->number : otherwise;
    };
    f.drain = answers.get("faults.drain").flag;
    f.burst_cv = number("faults.burst_cv", catalogue().defaults().burst_cv);
    f.burst_gap_s = catalogue().defaults().burst_gap_s;
    f.node_spread = number("faults.node_spread", catalogue().defaults().node_spread);
    if (const Answer* recurs = answers.given("faults.recurs"))
        for (faults::Component& c : f.components)
            c.recurs = c.node_leaves ? c.recurs : recurs->number;
    f.lemon_share = number("faults.lemons.share", 0);
    f.lemon_factor = number("faults.lemons.factor", 1);
    f.lemon_cured = number("faults.lemons.cured", 1);
    f.life_shape = number("faults.life_shape", 1);
    f.infant = {number("faults.infant.factor", 1), number("faults.infant.decay", 1)};
    f.new_lives = answers.get("faults.new_lives").flag;
    f.while_down = answers.get("faults.while_down").flag;
    f.leak_free_s = number("faults.leak.free", 0);
    f.leak_per_day = number("faults.leak.per_day", 0);
    f.restart_when_critical = answers.get("faults.leak.restart_when_critical").flag;
    if (const Answer* events = answers.given("faults.events"))
        for (std::int64_t i = 0; i < events->integer; ++i)
            fill_event(answers, fmt::format("faults.events[{}]", i), s, diagnostics);
    std::stable_sort(f.events.begin(), f.events.end(), [](const auto& a, const auto& b) { return a.at_s < b.at_s; });
    if (f.infant.factor > 1 && f.life_shape != 1)
        diagnostics.error(answers.place("faults.infant"),
                          "faults.infant: a fleet whose rate falls has exponential lives; leave faults.life_shape out");
    if (answers.given("faults.infant") && !answers.given("faults.infant.decay"))
        missing(answers, "faults.infant.decay", "; write it like 30 d", diagnostics);
}

}  // namespace fabricast
