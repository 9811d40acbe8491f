#include "sim/step/scaled_network.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace fabricast {
namespace {

void scale_graph(HandMade& graph, double factor) {
    std::set<std::string> switches;
    for (const HandMade::Part& part : graph.parts) {
        if (part.kind == HandMade::Kind::network_switch)
            switches.insert(part.name);
    }
    for (HandMade::Link& link : graph.links) {
        if (switches.count(link.from) + switches.count(link.to) > 0)
            link.bytes_per_s *= factor;
    }
}

void scale_file(importers::FabricDescription& fabric, double factor) {
    for (importers::FabricLink& link : fabric.links) {
        const auto in_network = [&](std::uint32_t node) {
            return fabric.nodes[node].kind == importers::NodeKind::network_switch;
        };
        if (in_network(link.from) || in_network(link.to))
            link.bytes_per_s *= factor;
    }
}

}  // namespace

Scenario with_scaled_network(const Scenario& scenario, double factor) {
    Scenario s = scenario;
    s.node.nic_bits_per_s *= factor;
    if (s.machine) {
        for (importers::Nic& nic : s.machine->nics)
            nic.bits_per_s *= factor;
    }
    if (s.graph)
        scale_graph(*s.graph, factor);
    for (std::size_t d = s.inner_dimensions; d < s.grid.size(); ++d)
        s.grid[d].bytes_per_s *= factor;
    if (s.fabric_file)
        scale_file(*s.fabric_file, factor);
    return s;
}

double adapter_bits_per_s(const Scenario& s, const Cluster& cluster) {
    const bool told = s.machine && std::all_of(s.machine->nics.begin(), s.machine->nics.end(),
                                               [](const importers::Nic& nic) { return nic.bits_per_s > 0; });
    if (!s.fabric_is_listed() && !told)
        return s.node.nics * s.node.nic_bits_per_s;
    const double efficiency = s.fabric_is_listed() ? 1 : s.node.nic_efficiency;
    double most = 0;
    for (std::uint32_t node = 0; node < cluster.node_count(); ++node) {
        double sum = 0;
        for (std::uint32_t n = 0; n < cluster.nics_per_node(); ++n) {
            const LinkId up = cluster.nic_up(NicId{node * cluster.nics_per_node() + n});
            sum += bytes_per_s(cluster.links().capacity[index(up)]) * 8 / efficiency;
        }
        most = std::max(most, sum);
    }
    return most;
}

}  // namespace fabricast
