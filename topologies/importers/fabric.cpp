#include "topologies/importers/fabric.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "topologies/importers/node_list.hpp"

namespace fabricast::importers {
namespace {

bool is_switch(const FabricNode& node) {
    return node.kind == NodeKind::network_switch || node.kind == NodeKind::nvswitch;
}

std::vector<std::vector<std::uint32_t>> neighbours_of(const FabricDescription& fabric) {
    std::vector<std::vector<std::uint32_t>> neighbours(fabric.nodes.size());
    for (const FabricLink& link : fabric.links) {
        if (link.state != LinkState::down) {
            neighbours[link.from].push_back(link.to);
            neighbours[link.to].push_back(link.from);
        }
    }
    return neighbours;
}

}  // namespace

std::string node_kind_name(NodeKind kind) {
    constexpr const char* names[] = {"GPU", "host", "NVSwitch", "switch"};
    return names[static_cast<std::size_t>(kind)];
}

std::size_t FabricDescription::count(NodeKind kind) const {
    return static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(), [kind](const FabricNode& node) { return node.kind == kind; }));
}

void complete(FabricDescription& fabric) {
    const auto neighbours = neighbours_of(fabric);
    std::deque<std::uint32_t> queue;
    for (std::uint32_t i = 0; i < fabric.nodes.size(); ++i) {
        if (!is_switch(fabric.nodes[i])) {
            queue.push_back(i);
        }
    }
    while (!queue.empty()) {
        const std::uint32_t at = queue.front();
        queue.pop_front();
        for (const std::uint32_t next : neighbours[at]) {
            FabricNode& node = fabric.nodes[next];
            if (is_switch(node) && node.level < 0) {
                node.level = fabric.nodes[at].level + 1;  // hosts have -1
                queue.push_back(next);
            }
        }
    }
    std::vector<std::string> lonely;
    std::vector<bool> seen(fabric.nodes.size());
    std::size_t parts = 0;
    for (std::uint32_t start = 0; start < fabric.nodes.size(); ++start) {
        if (neighbours[start].empty()) {
            lonely.push_back(fabric.nodes[start].name);
            continue;
        }
        if (seen[start]) {
            continue;
        }
        ++parts;
        std::vector<std::uint32_t> stack = {start};
        seen[start] = true;
        while (!stack.empty()) {
            const std::uint32_t at = stack.back();
            stack.pop_back();
            for (const std::uint32_t next : neighbours[at]) {
                if (!seen[next]) {
                    seen[next] = true;
                    stack.push_back(next);
                }
            }
        }
    }
    if (!lonely.empty()) {
        fabric.note(NoteKind::suspicious, 0, "no link at " + listed(lonely));
    }
    if (parts > 1) {
        fabric.note(NoteKind::suspicious, 0, fmt::format("the fabric falls into {} parts that no link joins", parts));
    }
}

Placement place(const FabricDescription& fabric, std::string_view node_list) {
    Placement placement;
    placement.nodes = expand_node_list(node_list, "node list");
    std::map<std::string_view, std::uint32_t> index_of;
    std::vector<std::string_view> hosts;
    for (std::uint32_t i = 0; i < fabric.nodes.size(); ++i) {
        if (!is_switch(fabric.nodes[i])) {
            index_of.emplace(fabric.nodes[i].name, i);
            hosts.push_back(fabric.nodes[i].name);
        }
    }
    std::vector<std::vector<std::uint32_t>> leaves(fabric.nodes.size());
    for (const FabricLink& link : fabric.links) {
        for (const auto& [host, leaf] : {std::pair{link.from, link.to}, std::pair{link.to, link.from}}) {
            if (!is_switch(fabric.nodes[host]) && is_switch(fabric.nodes[leaf]) && link.state != LinkState::down) {
                leaves[host].push_back(leaf);
            }
        }
    }
    std::set<std::string_view> listed_nodes;
    for (const std::string& name : placement.nodes) {
        if (!listed_nodes.insert(name).second) {
            throw ImportError("node list", 0, fmt::format("node {} is listed twice", in_quotes(name)));
        }
        const auto node = index_of.find(name);
        if (node == index_of.end()) {
            throw ImportError(
                "node list", 0,
                fmt::format("node {} is not in {}{}", in_quotes(name), fabric.source, did_you_mean(name, hosts)));
        }
        placement.leaves.push_back(leaves[node->second]);
    }
    return placement;
}

}  // namespace fabricast::importers
