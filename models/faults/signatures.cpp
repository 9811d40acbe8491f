#include "models/faults/signatures.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "models/compute/math.hpp"

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> models_faults();
}

namespace faults {
namespace {

constexpr std::array<std::string_view, 6> kParts = {"compute", "network", "nvlink", "data", "host", "work"};
constexpr std::array<std::string_view, 3> kOnsets = {"any", "either", "start"};

[[noreturn]] void refuse(const std::string& name, std::string_view why) {
    throw std::runtime_error(fmt::format("signatures.yaml: {}: {}", name, why));
}

double value_of(const std::string& text, const std::string& name) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
        refuse(name, "`" + text + "` is no number");
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (!unit.empty() && unit.front() == ' ')
        unit.remove_prefix(1);
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"", 1}, {"s", 1}, {"min", 60}, {"h", 3600}, {"d", 86400.0}};
    for (const auto& [known, scale] : kUnits)
        if (unit == known)
            return value * scale;
    refuse(name, fmt::format("unknown unit `{}`", unit));
}

template <std::size_t N>
std::size_t word_of(const YAML::Node& node, const char* key, const std::array<std::string_view, N>& words,
                    const std::string& name) {
    if (!node[key])
        return 0;
    const auto text = node[key].as<std::string>();
    const auto at = std::find(words.begin(), words.end(), text);
    if (at == words.end())
        refuse(name, fmt::format("{}: `{}` is none of the words", key, text));
    return static_cast<std::size_t>(at - words.begin());
}

Signature read_one(const std::string& name, const YAML::Node& node) {
    constexpr std::array<std::string_view, 14> kKeys = {
        "what",        "part",           "inject",   "severity", "scale", "stop",    "per_1000_node_days",
        "per_job_day", "per_link_month", "at_start", "lasts",    "onset", "repeats", "look"};
    for (const auto& entry : node) {
        const auto key = entry.first.as<std::string>();
        if (key != "source" && std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end())
            refuse(name, "unknown key " + key);
    }
    const auto text = [&](const char* key) { return node[key] ? node[key].as<std::string>() : std::string(); };
    const auto number = [&](const char* key) { return node[key] ? value_of(node[key].as<std::string>(), name) : 0; };
    const auto range = [&](const char* key, double& low, double& high) {
        if (!node[key])
            return;
        low = value_of(node[key][0].as<std::string>(), name);
        high = value_of(node[key][1].as<std::string>(), name);
        if (!(low > 0 && high >= low))
            refuse(name, fmt::format("{}: its ends are out of order", key));
    };
    Signature s;
    s.name = name;
    s.what = text("what");
    s.inject = text("inject");
    s.look = text("look");
    s.source = text("source");
    if (s.what.empty() || s.look.empty() || s.source.empty())
        refuse(name, "needs what, look and source");
    s.part = static_cast<Part>(word_of(node, "part", kParts, name));
    s.onset = static_cast<Signature::Onset>(word_of(node, "onset", kOnsets, name));
    s.log_scale = text("scale") == "log";
    range("severity", s.low, s.high);
    range("stop", s.stop_low_s, s.stop_high_s);
    s.per_node_day = number("per_1000_node_days") / 1000;
    s.per_job_day = number("per_job_day");
    s.per_link_month = number("per_link_month");
    s.at_start = number("at_start");
    s.repeats = number("repeats");
    double shortest = 0, longest = 0;
    range("lasts", shortest, longest);
    if (longest > 0) {
        constexpr double kTwoSided = 2 * 1.959964;  // standard deviations between 2.5 and 97.5 %
        s.lasts = log_normal(std::sqrt(shortest * longest), math::log(longest / shortest) / kTwoSided);
        s.permanent = false;
    }
    return s;
}

}  // namespace

std::string_view part_name(Part part) { return kParts[static_cast<std::size_t>(part)]; }

double Signature::severity(double share) const {
    return log_scale ? low * math::pow(high / low, share) : low + (high - low) * share;
}

std::vector<Signature> parse_signatures(std::string_view yaml) {
    std::vector<Signature> out;
    for (const auto& entry : YAML::Load(std::string(yaml))["kinds"])
        out.push_back(read_one(entry.first.as<std::string>(), entry.second));
    return out;
}

const std::vector<Signature>& signatures() {
    static const std::vector<Signature> all = [] {
        for (const auto& [file, content] : embedded::models_faults())
            if (file.ends_with("signatures.yaml"))
                return parse_signatures(content);
        throw std::logic_error("signatures.yaml is not embedded");
    }();
    return all;
}

}  // namespace faults
}  // namespace fabricast
