#include "topologies/importers/ib_fabric.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace fabricast::importers {
namespace {

constexpr std::size_t kEnoughNeighbours = 3;

bool is_maker_default(std::string_view description) {
    return description.empty() || description.find("Mellanox Technologies") != std::string_view::npos ||
           description.find("NVIDIA Technologies") != std::string_view::npos;
}

/// What can be compared: lanes and data rate.
using Quality = std::pair<double, std::uint32_t>;

Quality quality(const FabricLink& link) { return {link.bytes_per_s, link.width}; }

/// The quality most of them have, the better of equals; nothing told: zeros.
Quality usual_quality(const FabricDescription& fabric, const std::vector<std::size_t>& links) {
    std::map<Quality, std::size_t> counts;
    for (const std::size_t index : links) {
        if (quality(fabric.links[index]).first > 0) {
            ++counts[quality(fabric.links[index])];
        }
    }
    Quality usual{0, 0};
    std::size_t most = 0;
    for (const auto& [of, count] : counts) {
        if (count >= most) {
            most = count;
            usual = of;
        }
    }
    return usual;
}

std::string end_name(const FabricDescription& fabric, std::uint32_t node, const std::string& port) {
    return fmt::format("{} port {}", fabric.nodes[node].name, port);
}

}  // namespace

std::string ib_switch_name(std::string_view description) {
    if (const std::size_t semicolon = description.find(';'); semicolon != std::string_view::npos) {
        description.remove_prefix(semicolon + 1);
        return std::string(description.substr(0, description.find(':')));
    }
    return std::string(description);
}

std::string ib_host_name(std::string_view description) {
    const std::vector<std::string_view> parts = words(description);
    return is_maker_default(description) || parts.empty() ? "" : std::string(parts.front());
}

bool is_aggregation_node(std::string_view description) {
    return description.find("Aggregation Node") != std::string_view::npos;
}

IbFabric::IbFabric(const SourceText& source, std::string format) : source_(source) {
    fabric_.source = source.name();
    fabric_.format = std::move(format);
    fabric_.notes = source.notes();
}

void IbFabric::add_switch(const std::string& key, std::string_view description, std::uint32_t line) {
    const auto [at, is_new] = devices_.try_emplace(key);
    if (is_new) {
        order_.push_back(key);
        at->second.line = line;
        at->second.is_switch = true;
    }
    if (at->second.description.empty()) {
        at->second.description = description;
    }
}

void IbFabric::add_adapter(const std::string& key, std::string_view description, std::uint32_t line) {
    const auto [at, is_new] = devices_.try_emplace(key);
    if (is_new) {
        order_.push_back(key);
        at->second.line = line;
    }
    if (at->second.description.empty()) {
        at->second.description = description;
    }
}

void IbFabric::add_report(IbReport report) {
    const auto ends = std::minmax(report.from, report.to);
    const auto [at, is_new] = links_.try_emplace({ends.first, ends.second});
    Link& link = at->second;
    if (is_new) {
        link.report = std::move(report);
        return;
    }
    ++link.reports;
    const bool both_told = link.report.bytes_per_s > 0 && report.bytes_per_s > 0;
    if (both_told && (link.report.width != report.width || link.report.rate != report.rate)) {
        link.report.remark = fmt::format("the ends disagree: {}x{} (line {}) and {}x{} (line {})", link.report.width,
                                         link.report.rate, link.report.line, report.width, report.rate, report.line);
        if (report.bytes_per_s < link.report.bytes_per_s) {
            link.report.width = report.width;
            link.report.rate = report.rate;
            link.report.bytes_per_s = report.bytes_per_s;
        }
    } else if (link.report.bytes_per_s <= 0) {
        link.report.width = report.width;
        link.report.rate = report.rate;
        link.report.bytes_per_s = report.bytes_per_s;
    }
    if (link.report.remark.empty()) {
        link.report.remark = report.remark;
    }
}

void IbFabric::place_nodes() {
    std::map<std::string, std::uint32_t> host_at;
    std::map<std::string, std::uint32_t> uses;  // switch names
    std::size_t engines = 0, nameless = 0;
    for (const std::string& key : order_) {
        Device& device = devices_.at(key);
        if (!device.is_switch && is_aggregation_node(device.description)) {
            ++engines;
            device.node = 0xFFFFFFFF;
            continue;
        }
        std::string name = device.is_switch ? ib_switch_name(device.description) : ib_host_name(device.description);
        nameless += !device.is_switch && name.empty() ? 1 : 0;
        if (name.empty() || (device.is_switch && is_maker_default(device.description))) {
            name = (device.is_switch ? "switch " : "host ") + key;
        }
        device.node = static_cast<std::uint32_t>(fabric_.nodes.size());
        if (!device.is_switch) {
            const auto [at, is_new] = host_at.emplace(name, device.node);
            device.node = at->second;
            if (!is_new) {
                continue;
            }
        } else if (++uses[name] > 1) {
            name += " " + key;
        }
        FabricNode node;
        node.name = name;
        node.kind = device.is_switch ? NodeKind::network_switch : NodeKind::host;
        node.line = device.line;
        fabric_.nodes.push_back(node);
    }
    if (engines > 0) {
        fabric_.note(NoteKind::fact, 0,
                     fmt::format("{} aggregation nodes (SHARP) inside switches were left out", engines));
    }
    if (nameless > 0) {
        fabric_.note(NoteKind::suspicious, 0,
                     fmt::format("{} adapters have their maker's default description: each counts as a host of its own",
                                 nameless));
    }
}

void IbFabric::place_links() {
    std::size_t one_sided = 0;
    bool any_two_sided = false;
    for (const auto& [ends, link] : links_) {
        const Device& from = devices_.at(link.report.from.key);
        const Device& to = devices_.at(link.report.to.key);
        if (from.node == 0xFFFFFFFF || to.node == 0xFFFFFFFF || from.node == to.node) {
            continue;
        }
        FabricLink placed;
        placed.from = from.node;
        placed.to = to.node;
        const auto port_name = [](const Device& device, std::uint32_t port) {
            const std::vector<std::string_view> parts = words(device.description);
            return device.is_switch || parts.size() < 2 ? fmt::format("{}", port)
                                                        : fmt::format("{}/{}", parts[1], port);
        };
        placed.from_port = port_name(from, link.report.from.port);
        placed.to_port = port_name(to, link.report.to.port);
        placed.width = link.report.width;
        placed.rate = link.report.rate;
        placed.bytes_per_s = link.report.bytes_per_s;
        placed.remark = link.report.remark;
        placed.line = link.report.line;
        placed.state = !placed.remark.empty()   ? LinkState::degraded
                       : placed.bytes_per_s > 0 ? LinkState::good
                                                : LinkState::not_told;
        one_sided += link.reports < 2 ? 1 : 0;
        any_two_sided = any_two_sided || link.reports >= 2;
        fabric_.links.push_back(placed);
    }
    if (any_two_sided && one_sided > 0) {
        fabric_.note(
            NoteKind::suspicious, 0,
            fmt::format("{} links are reported by one end only: the text is cut, or the other end was not asked",
                        one_sided));
    }
    if (down_ports_ > 0) {
        fabric_.note(NoteKind::fact, 0, fmt::format("{} ports are down or without a cable", down_ports_));
    }
}

void IbFabric::tell_slow_links() {
    // Neighbours: links of one kind (to hosts, or between switches) on one switch; few of them: all of the kind.
    std::map<bool, std::vector<std::size_t>> of_kind;
    std::map<std::pair<std::uint32_t, bool>, std::vector<std::size_t>> on_switch;
    const auto is_switch = [&](std::uint32_t node) { return fabric_.nodes[node].kind == NodeKind::network_switch; };
    for (std::size_t i = 0; i < fabric_.links.size(); ++i) {
        const FabricLink& link = fabric_.links[i];
        const bool between = is_switch(link.from) && is_switch(link.to);
        of_kind[between].push_back(i);
        for (const std::uint32_t end : {link.from, link.to}) {
            if (is_switch(end)) {
                on_switch[{end, between}].push_back(i);
            }
        }
    }
    std::vector<std::vector<std::size_t>> groups;
    for (const auto& [key, links] : on_switch) {
        groups.push_back(links.size() >= kEnoughNeighbours ? links : std::vector<std::size_t>());
    }
    for (const auto& [between, links] : of_kind) {
        groups.push_back(links);
    }
    for (const std::vector<std::size_t>& group : groups) {
        const auto [usual_rate, usual_width] = usual_quality(fabric_, group);
        for (const std::size_t index : group) {
            FabricLink& link = fabric_.links[index];
            const bool slower = link.bytes_per_s > 0 && link.bytes_per_s < usual_rate;
            if (slower && link.state == LinkState::good) {
                link.state = LinkState::degraded;
                link.remark = fmt::format("{}x{}, {:.0f} Gb/s; its neighbours have {:.0f} Gb/s", link.width, link.rate,
                                          link.bytes_per_s * 8e-9, usual_rate * 8e-9);
            }
        }
    }
    std::size_t told = 0;
    for (const FabricLink& link : fabric_.links) {
        if (link.state != LinkState::degraded) {
            continue;
        }
        if (++told > 50) {
            continue;
        }
        fabric_.note(NoteKind::suspicious, link.line,
                     fmt::format("{} to {}: {}", end_name(fabric_, link.from, link.from_port),
                                 end_name(fabric_, link.to, link.to_port), link.remark));
    }
    if (told > 50) {
        fabric_.note(NoteKind::suspicious, 0, fmt::format("{} more links below their neighbours", told - 50));
    }
}

FabricDescription IbFabric::finish() {
    if (devices_.empty()) {
        source_.refuse(0, "no switch or adapter in it");
    }
    place_nodes();
    place_links();
    tell_slow_links();
    complete(fabric_);
    return std::move(fabric_);
}

}  // namespace fabricast::importers
