#include "sim/monitor/judge.hpp"

#include <algorithm>
#include <optional>

namespace fabricast::monitor {
namespace {

using campaign::seconds_of;
using campaign::Stretch;
using monitors::of_peers;

/// How much longer the truth makes a step at that time, as a share of it.
double effect(const MonitorReport& report, const campaign::ReplicaResult& replica, const Truth& t, Nanoseconds time) {
    const auto at = std::partition_point(replica.stretches.begin(), replica.stretches.end(),
                                         [&](const Stretch& s) { return s.end < time; });
    if (at == replica.stretches.end())
        return 0;
    const auto slower = [&](std::uint32_t bit) {
        const double healthy = (*report.pictures)({at->key, 0}).step_s;
        const double step = (*report.pictures)({at->key, 1u << bit}).step_s;
        return healthy > 0 ? step / healthy - 1 : 0;
    };
    switch (t.kind) {
        case Truth::Kind::degradation: return slower(t.which);
        case Truth::Kind::congestion:
            return slower(static_cast<std::uint32_t>(report.spec.conditions.degradations.size()));
        case Truth::Kind::leak: return at->leak;
        case Truth::Kind::flap: return seconds_of(t.end - t.begin) / seconds_of(report.interval);
        case Truth::Kind::poisoned: return 0;
        case Truth::Kind::departure: {  // together with all that lengthens the step beside it
            const double healthy = (*report.pictures)({at->key, 0}).step_s;
            return at->why == campaign::Spent::steps && healthy > 0 ? seconds_of(at->step) / healthy - 1 : 0;
        }
        case Truth::Kind::stop:
        case Truth::Kind::undone:
        case Truth::Kind::from_zero:
        case Truth::Kind::false_alarm: return 10;
    }
    return 0;
}

/// All parts at once, or the one of a degradation; peers cannot tell what all of them have. A stall that is over before
/// the next sample shows in counters only.
bool in_sight(const MonitorReport& report, const Truth& t, const monitors::Rule& rule) {
    const campaign::CampaignSpec& spec = report.spec;
    if (t.kind == Truth::Kind::flap && t.end - t.begin < report.interval &&
        rule.metric != monitors::Metric::link_downed)
        return false;
    return (!of_peers(rule) && moves(spec, t, rule.metric, -1)) ||
           (t.kind == Truth::Kind::degradation && moves(spec, t, rule.metric, static_cast<int>(t.which)));
}

/// The level is passed in a job with which nothing is wrong.
bool always_on(const MonitorReport& report, const monitors::Rule& rule) {
    if (rule.test != monitors::Test::threshold || rule.of != monitors::Of::value)
        return false;
    const std::uint32_t key = report.spec.phases.front().key;
    const double healthy = base_of(rule.metric, report.fleet, (*report.pictures)({key, 0}));
    const double level = rule.warning != monitors::kNoLevel ? rule.warning : rule.critical;
    return rule.below ? healthy < level : healthy > level;
}

std::vector<std::size_t> owners(const MonitorReport& report, const campaign::ReplicaResult& replica,
                                const monitors::Rule& rule, const Alarm& alarm) {
    const Nanoseconds grace = campaign::nanoseconds(rule.hold_s + rule.window_s) + 2 * report.interval;
    std::vector<std::size_t> all;
    if (alarm.part < 0 && of_peers(rule))
        return all;
    for (std::size_t i = 0; i < report.truths.size(); ++i) {
        const Truth& t = report.truths[i].truth;
        // Memory that fills up shows before steps do.
        if (t.begin - (rule.metric == monitors::Metric::host_memory_free ? t.ahead : 0) > alarm.begin)
            continue;
        if (alarm.begin <= t.end + grace && moves(report.spec, t, rule.metric, alarm.part))
            all.push_back(i);
    }
    if (all.size() < 2 || !follows_step(rule.metric))
        return all;
    const auto most = std::max_element(all.begin(), all.end(), [&](std::size_t a, std::size_t b) {
        return effect(report, replica, report.truths[a].truth, alarm.begin) <
               effect(report, replica, report.truths[b].truth, alarm.begin);
    });
    return {*most};
}

}  // namespace

double median_delay(std::vector<double>& delays) {
    if (delays.empty())
        return kNoDelay;
    const auto middle = delays.begin() + static_cast<std::ptrdiff_t>((delays.size() - 1) / 2);
    std::nth_element(delays.begin(), middle, delays.end());
    return *middle;
}

void judge(const std::vector<monitors::Rule>& rules, const campaign::ReplicaResult& replica, MonitorReport& report) {
    for (const Truth& t : truths_of(report.spec, replica))
        report.truths.push_back({t, truth_text(report.spec, t), {}});
    for (std::uint32_t i = 0; i < rules.size(); ++i) {
        RuleOutcome out{.rule = rules[i]};
        const bool cries = always_on(report, rules[i]);
        Nanoseconds standing = 0;
        std::vector<std::optional<double>> first(report.truths.size());
        for (const Alarm& alarm : report.alarms) {
            if (alarm.rule != i)
                continue;
            ++out.alarms;
            out.first_warning = std::min(out.first_warning, alarm.begin);
            out.first_critical = std::min(out.first_critical, alarm.critical);
            standing += std::min(alarm.end, replica.wall) - alarm.begin;
            const std::vector<std::size_t> own =
                cries ? std::vector<std::size_t>() : owners(report, replica, rules[i], alarm);
            out.false_alarms += own.empty();
            for (const std::size_t truth : own)
                if (!first[truth])
                    first[truth] = seconds_of(alarm.begin - report.truths[truth].truth.begin);
        }
        std::vector<double> delays;
        for (std::size_t t = 0; t < first.size(); ++t) {
            if (!first[t]) {
                ++out.missed;
                out.out_of_sight += !in_sight(report, report.truths[t].truth, rules[i]);
                continue;
            }
            ++out.caught;
            delays.push_back(*first[t]);
            report.truths[t].caught_by.push_back({i, *first[t]});
        }
        out.median_delay_s = median_delay(delays);
        out.standing = replica.wall > 0 ? seconds_of(standing) / seconds_of(replica.wall) : 0;
        report.rules.push_back(std::move(out));
    }
}

}  // namespace fabricast::monitor
