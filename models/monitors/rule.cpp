#include "models/monitors/rule.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast::monitors {
namespace {

std::string duration_text(double s) {
    if (s < 120)
        return fmt::format("{:.4g} s", s);
    return s < 7200 ? fmt::format("{:.4g} min", s / 60) : fmt::format("{:.4g} h", s / 3600);
}

}  // namespace

std::string_view of_name(Of of) {
    switch (of) {
        case Of::value: return "value";
        case Of::base: return "base";
        case Of::baseline: return "baseline";
        case Of::peers: return "peers";
        case Of::peers_difference: return "peers_difference";
    }
    return {};
}

std::string_view action_name(Action action) {
    switch (action) {
        case Action::inquire: return "inquire";
        case Action::throttle: return "throttle";
        case Action::restart: return "restart";
    }
    return {};
}

std::string rule_text(const Rule& r) {
    const MetricInfo& metric = info(r.metric);
    const std::string unit = metric.unit.empty() ? std::string() : fmt::format(" {}", metric.unit);
    const auto level = [&](double x) {
        switch (r.of) {
            case Of::value: return fmt::format("{:.4g}{}", x, unit);
            case Of::base: return fmt::format("{:.4g} x base", x);
            case Of::baseline: return fmt::format("{:.4g} x its past", x);
            case Of::peers: return fmt::format("{:.4g} x peers", x);
            case Of::peers_difference: return fmt::format("peers {:+.4g}{}", x, unit);
        }
        return std::string();
    };
    std::string text(metric.name);
    if (r.test == Test::cusum) {
        text += fmt::format(" cusum of x {} - {:.4g}", of_name(r.of), r.drift);
        if (r.warning != kNoLevel)
            text += fmt::format(" > {:.4g}", r.warning);
        if (r.critical != kNoLevel)
            text += fmt::format(", critical > {:.4g}", r.critical);
    } else {
        const char* sign = r.below ? "<" : ">";
        if (r.warning != kNoLevel)
            text += fmt::format(" {} {}", sign, level(r.warning));
        if (r.critical != kNoLevel)
            text += fmt::format("{} {} {}", r.warning != kNoLevel ? ", critical" : "", sign, level(r.critical));
    }
    if (r.window_s > 0)
        text += fmt::format(", mean of {}", duration_text(r.window_s));
    if (r.hold_s > 0)
        text += fmt::format(", for {}", duration_text(r.hold_s));
    if (r.keep_s > 0)
        text += fmt::format(", kept {}", duration_text(r.keep_s));
    return text;
}

Level RuleState::update(double time_s, double passed_s, double value, double reference) {
    double x = value;
    switch (rule_->of) {
        case Of::value: break;
        case Of::base:
        case Of::peers:
            if (reference <= 0)
                return standing_;
            x = value / reference;
            break;
        case Of::peers_difference: x = value - reference; break;
        case Of::baseline: {
            if (standing_ == Level::none) {
                ++baseline_count_;
                const double weight =
                    std::min(1.0, std::max(1.0 / static_cast<double>(baseline_count_), passed_s / rule_->memory_s));
                baseline_ = baseline_count_ == 1 ? value : baseline_ + (value - baseline_) * weight;
            }
            if (baseline_ <= 0)
                return standing_;
            x = value / baseline_;
            break;
        }
    }
    standing_ = rule_->test == Test::cusum ? cusum(x) : threshold(time_s, x);
    return standing_;
}

Level RuleState::threshold(double time_s, double x) {
    const auto stands = [&](double level, Passed& passed) {
        if (level != kNoLevel && beyond(x, level)) {
            if (passed.since < 0)
                passed.since = time_s;
            passed.last = time_s;
            passed.stands = passed.stands || time_s - passed.since >= rule_->hold_s;
        } else {
            passed.since = -1;
            passed.stands = passed.stands && time_s - passed.last < rule_->keep_s;
        }
        return passed.stands;
    };
    const bool warning = stands(rule_->warning, warning_), critical = stands(rule_->critical, critical_);
    return critical ? Level::critical : warning ? Level::warning : Level::none;
}

Level RuleState::cusum(double x) {
    sum_ = std::max(0.0, sum_ + (rule_->below ? 1 - x : x - 1) - rule_->drift);
    // What has been there for long is known well enough: the sum stays within twice the highest level.
    const double highest = rule_->critical != kNoLevel ? rule_->critical : rule_->warning;
    sum_ = std::min(sum_, 2 * highest);
    if (rule_->critical != kNoLevel && sum_ > rule_->critical)
        return Level::critical;
    if (rule_->warning != kNoLevel && sum_ > rule_->warning)
        return Level::warning;
    // An alarm stands until the change is gone, not until the sum is a little lower.
    return standing_ != Level::none && sum_ > 0 ? standing_ : Level::none;
}

void RuleState::job_started() {
    warning_ = critical_ = {};
    sum_ = 0;
    standing_ = Level::none;
}

}  // namespace fabricast::monitors
