// faults.events with `what`, and --inject -> StepFault.
//
// A fault is the same in a file and on the command line: `where what [value] [every N] [for T] [at T]`.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "models/hardware/clock.hpp"
#include "sim/scenario/fill.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/places.hpp"

namespace fabricast {
namespace {

using Kind = StepFault::Kind;

constexpr double kLatest = 1e7;  // s

constexpr std::array<std::string_view, 18> kKinds = {
    "clock",   "slow",   "rate",      "lanes", "collision", "congestion", "loss",     "flap", "down",
    "storage", "loader", "wandering", "leak",  "allocator", "garbage",    "sequence", "hang", "crash"};

std::optional<Kind> find_kind(std::string_view word) {
    const auto at = std::find(kKinds.begin(), kKinds.end(), word);
    if (at == kKinds.end())
        return std::nullopt;
    return static_cast<Kind>(at - kKinds.begin());
}

/// What is wrong with a fault that was read; empty when it can be.
std::string wrong_fault(const Scenario& s, const StepFault& f) {
    const std::string_view what = kKinds[static_cast<std::size_t>(f.kind)];
    if (const std::string wrong = wrong_place(s, f.where); !wrong.empty())
        return wrong;
    const auto ranks = [&]() -> std::string {
        if (names_ranks(f.where))
            return {};
        return fmt::format("`{}` cannot be {}; write {}", f.where, what, kRankPlaces);
    };
    const bool above_one = f.factor >= 1;
    switch (f.kind) {
        case Kind::clock:
            if (nominal_clock_mhz(s.gpu) <= 0)
                return fmt::format("the clock of a {} is not known; write slow and a factor", s.gpu.name);
            if (!(above_one && std::isfinite(f.factor)))
                return fmt::format("a clock is above 0 and at most the {:.0f} MHz of a {}", nominal_clock_mhz(s.gpu),
                                   s.gpu.name);
            return ranks();
        case Kind::slow:
            if (!above_one)
                return "slow needs a factor of at least 1: compute takes so many times as long";
            return ranks();
        case Kind::rate:
            if (!(f.factor > 0 && f.factor < 1))
                return "rate needs the share that is left, above 0 and below 1";
            return {};
        case Kind::lanes: return f.count > 0 ? "" : "lanes needs how many are lost";
        case Kind::loss:
            return f.factor > 0 && f.factor < 0.5 ? "" : "loss needs the share of packets, above 0 and below 0.5";
        case Kind::congestion: return above_one ? "" : "congestion needs a factor of at least 1";
        case Kind::flap:
            if (f.lasts_s <= 0 || !f.timed())
                return "a flap needs a time and a length: nic 3.2 flap at 10 s for 5 s";
            return {};
        case Kind::down:
        case Kind::hang:
        case Kind::crash:
            if (!f.timed())
                return fmt::format("{} needs a time: ... {} at 10 min", what, what);
            return f.kind == Kind::down ? "" : ranks();
        case Kind::storage:
        case Kind::loader:
        case Kind::wandering:
        case Kind::leak:
            if (s.data.sample_s <= 0)
                return fmt::format("{} needs data.sample_time: without it data are always there", what);
            if (f.kind != Kind::leak && !above_one)
                return fmt::format("{} needs a factor of at least 1", what);
            if (f.timed())
                return fmt::format("{} acts from the start of the run; leave `at` out", what);
            return f.kind == Kind::loader ? ranks() : "";
        case Kind::allocator:
        case Kind::garbage:
            if (f.seconds <= 0)
                return fmt::format("{} needs the length of a stop: all {} 300 ms every 20", what, what);
            [[fallthrough]];
        case Kind::sequence:
            if (f.timed())
                return fmt::format("{} acts from the start of the run; leave `at` out", what);
            if (f.kind == Kind::sequence && !(f.factor > 0 && f.factor < 2))
                return "sequence needs the coefficient of variation of a step's compute, above 0 and below 2";
            return f.where.empty() || names_ranks(f.where) ? "" : ranks();
        case Kind::collision: return {};
    }
    return {};
}

/// MHz of "1200 MHz".
std::optional<double> megahertz(std::string_view text) {
    std::string problem;
    const bool unit = text.ends_with("MHz");
    if (unit)
        text.remove_suffix(3);
    while (text.ends_with(' '))
        text.remove_suffix(1);
    return unit ? parse_number(text, problem) : std::nullopt;
}

std::string words_of(const StepFault& f) {
    std::string text = f.where;
    text += (text.empty() ? "" : " ") + std::string(kKinds[static_cast<std::size_t>(f.kind)]);
    return text;
}

}  // namespace

void fill_faults_of_step(const Answers& answers, Scenario& s, Diagnostics& diagnostics) {
    const Answer* list = answers.given("faults.events");
    for (std::int64_t i = 0; list && i < list->integer; ++i) {
        const std::string base = fmt::format("faults.events[{}]", i);
        const auto given = [&](const char* key) { return answers.given(base + "." + key); };
        const Answer* what = given("what");
        if (given("kind"))  // of a campaign: fill_faults
            continue;
        if (!what) {
            missing(answers, base + ".what", "; what happens?", diagnostics);
            continue;
        }
        StepFault f;
        f.kind = *find_kind(what->text);
        f.place = what->place.text();
        if (const Answer* where = given("where"))
            f.where = where->text;
        else if (f.kind != Kind::storage && f.kind != Kind::wandering && f.kind != Kind::leak)
            f.where = "all";
        f.text = words_of(f);
        if (const Answer* by = given("by"))
            f.factor = by->number;
        if (const Answer* to = given("to")) {
            const std::optional<double> mhz = megahertz(to->text);
            f.factor = mhz ? nominal_clock_mhz(s.gpu) / *mhz : 0;
            f.text += " " + to->text;
            if (f.kind != Kind::clock)
                diagnostics.error(to->place, fmt::format("{}.to: only a clock is set to something; write by", base));
        } else if (f.kind == Kind::clock) {
            missing(answers, base + ".to", "; write it like 1200 MHz", diagnostics);
            continue;
        }
        if (f.kind == Kind::collision)
            f.factor = 0.5;
        if (const Answer* count = given("count"))
            f.count = count->integer;
        if (const Answer* takes = given("takes"))
            f.seconds = takes->number;
        if (const Answer* every = given("every"))
            f.every = every->integer;
        if (const Answer* together = given("synchronised"))
            f.synchronised = together->flag;
        if (const Answer* at = given("at")) {
            f.at_s = at->number;
            if (f.at_s > kLatest)
                diagnostics.error(at->place,
                                  fmt::format("{}.at: `{}` must be at most {:.0f} s", base, at->text, kLatest));
        }
        for (const char* key : {"duration", "node", "gpu", "nic", "severity"}) {
            if (const Answer* other = given(key))
                diagnostics.error(
                    other->place,
                    fmt::format("{}.{}: belongs to an event with `kind`, of a campaign; with `what` write where and "
                                "lasts",
                                base, key));
        }
        if (const Answer* lasts = given("lasts"))
            f.lasts_s = lasts->number;
        if (const std::string wrong = wrong_fault(s, f); !wrong.empty())
            diagnostics.error(what->place, fmt::format("{}: {}", base, wrong));
        else
            s.faults.push_back(std::move(f));
    }
}

namespace {

/// Cuts " at 2 h" off the end; what follows the word, or nothing.
std::optional<std::string> cut_behind(std::string& text, const std::string& word) {
    const std::size_t at = text.rfind(word);
    if (at == std::string::npos)
        return std::nullopt;
    std::string value = text.substr(at + word.size());
    text.resize(at);
    return value;
}

}  // namespace

void inject_fault(Scenario& s, const std::string& text) {
    const std::string place = "--inject '" + text + "'";
    const auto refuse = [&](const std::string& why) { throw ScenarioError(place + ": " + why); };
    StepFault f;
    f.place = place;
    f.text = text;
    std::string rest = text;
    const auto time = [&](const std::optional<std::string>& value, double& out) {
        if (!value)
            return;
        std::string problem;
        const auto quantity = parse_quantity(*value, Dimension::time, "s", problem);
        if (!quantity)
            refuse(fmt::format("`{}` {}", *value, problem));
        if (!(quantity->value >= 0))
            refuse(fmt::format("`{}` must be at least 0", *value));
        if (quantity->value > kLatest)
            refuse(fmt::format("`{}` must be at most {:.0f} s", *value, kLatest));
        out = quantity->value;
    };
    // In either order: the one further behind is cut off first.
    for (int turn = 0; turn < 2; ++turn) {
        const std::size_t at = rest.rfind(" at "), during = rest.rfind(" for ");
        if (at != std::string::npos && (during == std::string::npos || at > during))
            time(cut_behind(rest, " at "), f.at_s);
        else if (during != std::string::npos)
            time(cut_behind(rest, " for "), f.lasts_s);
    }
    if (rest.ends_with(" synchronised")) {
        f.synchronised = true;
        rest.resize(rest.size() - 13);
    }
    if (const auto every = cut_behind(rest, " every ")) {
        std::string problem;
        const auto number = parse_integer(every->substr(0, every->find(" step")), problem);
        if (!number || *number < 1)
            refuse(fmt::format("`every {}` needs a number of steps", *every));
        f.every = *number;
    }
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < rest.size();) {
        const std::size_t blank = std::min(rest.find(' ', begin), rest.size());
        if (blank > begin)
            words.push_back(rest.substr(begin, blank - begin));
        begin = blank + 1;
    }
    const auto at =
        std::find_if(words.begin(), words.end(), [](const std::string& w) { return find_kind(w).has_value(); });
    if (at == words.end()) {
        std::vector<std::string> known(kKinds.begin(), kKinds.end());
        std::string nearest = words.empty() ? "" : did_you_mean(words.back(), known);
        for (const std::string& word : words)
            if (nearest.empty())
                nearest = did_you_mean(word, known);
        refuse(
            fmt::format("says nothing that can happen; write where, what and how much, such as gpu 29.2 clock 1200 MHz "
                        "at 2 h; what is one of {}{}",
                        listed(known), nearest));
    }
    f.kind = *find_kind(*at);
    for (auto word = words.begin(); word != at; ++word)
        f.where += (f.where.empty() ? "" : " ") + *word;
    if (f.where.empty() && f.kind != Kind::storage && f.kind != Kind::wandering && f.kind != Kind::leak)
        f.where = "all";
    std::string value;
    for (auto word = at + 1; word != words.end(); ++word)
        value += (value.empty() ? "" : " ") + *word;
    std::string problem;
    if (f.kind == Kind::clock) {
        const std::optional<double> mhz = megahertz(value);
        if (!mhz)
            refuse(fmt::format("`{}` is no clock; write it like 1200 MHz", value));
        f.factor = nominal_clock_mhz(s.gpu) / *mhz;
    } else if (f.kind == Kind::allocator || f.kind == Kind::garbage) {
        time(value, f.seconds);
    } else if (f.kind == Kind::collision) {
        f.factor = 0.5;
    } else if (!value.empty()) {
        const auto number = parse_number(value, problem);
        if (!number)
            refuse(fmt::format("`{}` {}", value, problem));
        if (f.kind == Kind::lanes)
            f.count = static_cast<std::int64_t>(*number);
        else
            f.factor = *number;
    }
    if (const std::string wrong = wrong_fault(s, f); !wrong.empty())
        refuse(wrong);
    s.faults.push_back(std::move(f));
}

}  // namespace fabricast
