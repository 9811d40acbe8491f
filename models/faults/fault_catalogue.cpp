#include "models/faults/fault_catalogue.hpp"

#include <charconv>
#include <span>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> models_faults();
}

namespace faults {
namespace {

[[noreturn]] void refuse(const std::string& where, std::string_view why) {
    throw std::runtime_error(fmt::format("faults.yaml: {}: {}", where, why));
}

/// Seconds, bytes per second, or a plain number, by the unit behind it.
double parse_value(const std::string& text, const std::string& where) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
        refuse(where, "`" + text + "` is no number");
    std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
    while (!unit.empty() && unit.front() == ' ')
        unit.remove_prefix(1);
    constexpr std::pair<std::string_view, double> kUnits[] = {{"", 1},     {"s", 1},       {"min", 60},
                                                              {"h", 3600}, {"d", 86400.0}, {"GB/s", 1e9}};
    for (const auto& [name, scale] : kUnits)
        if (unit == name)
            return value * scale;
    refuse(where, fmt::format("unknown unit `{}`", unit));
}

/// The values of one entry, each with its source; an entry `like` another starts from that.
class Entry {
public:
    Entry(const YAML::Node& group, const std::string& path, const std::string& name,
          const std::map<std::string, std::string, std::less<>>& sentences,
          std::map<std::string, std::string, std::less<>>& sources)
        : group_(group),
          path_(path.empty() ? name : path + "." + name),
          node_(group[name]),
          sentences_(sentences),
          sources_(sources) {
        if (node_["like"])
            base_ = group[node_["like"].as<std::string>()];
    }
    std::string what() const { return node_["what"].as<std::string>(); }
    bool has(const char* key) const { return node_[key] || (base_ && base_[key]); }
    std::string text(const char* key) const {
        const YAML::Node value = node_[key] ? node_[key] : base_ ? base_[key] : YAML::Node();
        const std::string where = path_ + "." + key;
        if (!value || !value["value"] || !value["source"])
            refuse(where, "a value with a source is needed");
        const auto sentence = sentences_.find(value["source"].as<std::string>());
        if (sentence == sentences_.end())
            refuse(where, "its source is not listed");
        sources_[where] = sentence->second;
        return value["value"].as<std::string>();
    }
    double number(const char* key) const { return parse_value(text(key), path_ + "." + key); }

private:
    YAML::Node group_;
    std::string path_;
    YAML::Node node_, base_;
    const std::map<std::string, std::string, std::less<>>& sentences_;
    std::map<std::string, std::string, std::less<>>& sources_;
};

Shows parse_shows(const std::string& text) {
    for (const Shows shows : {Shows::crash, Shows::transport, Shows::hang, Shows::silent})
        if (text == shows_name(shows))
            return shows;
    refuse(text, "is no way to show");
}

}  // namespace

std::string_view shows_name(Shows shows) {
    switch (shows) {
        case Shows::crash: return "crash";
        case Shows::transport: return "transport";
        case Shows::hang: return "hang";
        case Shows::silent: return "silent";
    }
    return {};
}

FaultCatalogue::FaultCatalogue(std::string_view yaml) {
    const YAML::Node root = YAML::Load(std::string(yaml));
    std::map<std::string, std::string, std::less<>> sentences;
    for (const auto& one : root["sources"])
        sentences[one.first.as<std::string>()] = one.second.as<std::string>();
    const auto entry = [&](const char* group, const std::string& name) {
        return Entry(root[group], group, name, sentences, sources_);
    };
    const double node_days = root["fleet"]["nodes"].as<double>() * root["fleet"]["days"].as<double>();
    for (const auto& one : root["components"]) {
        Component c;
        c.name = one.first.as<std::string>();
        const Entry e = entry("components", c.name);
        c.what = e.what();
        c.rate = e.number("stops") / node_days;
        c.shows = parse_shows(e.text("shows"));
        c.node_leaves = e.text("node") == "leaves";
        c.recurs = e.has("recurs") ? e.number("recurs") : 0;
        if (c.node_leaves)
            c.repair = log_normal_of_mean(e.number("repair_median"), e.number("repair_mean"));
        components_.push_back(std::move(c));
    }
    for (const auto& one : root["degradations"]) {
        Degradation d;
        d.name = one.first.as<std::string>();
        const Entry e = entry("degradations", d.name);
        d.what = e.what();
        d.rate = e.number("rate") / 1000;
        d.lane_bytes_per_s = e.has("lane") ? e.number("lane") : 0;
        d.keeps = e.has("keeps") ? e.number("keeps") : 1;
        d.until = log_normal_of_mean(e.number("until_median"), e.number("until_mean"));
        degradations_.push_back(std::move(d));
    }
    const Entry congestion = entry("episodes", "congestion"), flap = entry("episodes", "flap");
    episodes_ = {congestion.number("per_day"),  congestion.number("lasts_mean"), congestion.number("factor"),
                 flap.number("per_link_month"), flap.number("lasts_low"),        flap.number("lasts_high")};
    const Entry d(root, "", "defaults", sentences, sources_);
    defaults_ = {.new_fleet_rate = d.number("new_fleet_rate") / 1000,
                 .burst_cv = d.number("burst_cv"),
                 .burst_gap_s = d.number("burst_gap"),
                 .node_spread = d.number("node_spread"),
                 .spares_share = d.number("spares_share"),
                 .detect_crash_s = d.number("detect_crash"),
                 .detect_transport_s = d.number("detect_transport"),
                 .detect_hang_s = d.number("detect_hang"),
                 .locate_s = d.number("locate"),
                 .swap_s = d.number("swap"),
                 .start_s = d.number("start"),
                 .communicators_s = d.number("communicators"),
                 .restart_spread = d.number("restart_spread"),
                 .storage_bytes_per_s = d.number("storage_rate")};
}

const FaultCatalogue& FaultCatalogue::builtin() {
    static const FaultCatalogue catalogue([] {
        for (const auto& [file, content] : embedded::models_faults())
            if (file.ends_with("faults.yaml"))
                return content;
        throw std::logic_error("faults.yaml is not embedded");
    }());
    return catalogue;
}

double FaultCatalogue::total_rate() const {
    double sum = 0;
    for (const Component& c : components_)
        sum += c.rate;
    return sum;
}

std::string FaultCatalogue::source(std::string_view key) const {
    const auto found = sources_.find(key);
    return found == sources_.end() ? std::string() : found->second;
}

}  // namespace faults
}  // namespace fabricast
