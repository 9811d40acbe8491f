#include "topologies/builders/hand_made.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "topologies/graph/cluster_graph.hpp"

namespace fabricast {
namespace {

using Kind = HandMade::Kind;
using VertexId = ClusterBuilder::VertexId;

constexpr std::string_view kKinds[] = {"gpu", "nvswitch", "nic", "pcie-switch", "host", "switch"};
constexpr int kMostServers = 1 << 20;

class Assembly {
public:
    explicit Assembly(const HandMade& graph) : graph_(graph) {}

    Cluster build() {
        for (std::size_t i = 0; i < graph_.parts.size(); ++i)
            add_part(i);
        for (std::size_t i = 0; i < graph_.links.size(); ++i)
            add_link(i);
        try {
            for (std::size_t i = 0; i < graph_.parts.size(); ++i) {
                if (!adapters_[i].empty())
                    builder_.use_nics(vertex_[i], adapters_[i]);
            }
            builder_.set_routing(graph_.routing);
            return std::move(builder_).freeze();
        } catch (const std::invalid_argument& refused) {
            throw HandMadeError(refused.what(), std::nullopt, std::nullopt);
        }
    }

private:
    void add_part(std::size_t i) {
        const HandMade::Part& part = graph_.parts[i];
        const auto refuse = [&](const std::string& why) {
            throw HandMadeError(fmt::format("{} `{}`: {}", part_kind_name(part.kind), part.name, why), i, std::nullopt);
        };
        if (part.name.empty())
            refuse("every part has a name");
        if (!by_name_.emplace(part.name, i).second)
            refuse("this name is used twice");
        const bool anywhere = part.kind == Kind::network_switch || part.kind == Kind::nvswitch;
        if (part.server >= kMostServers || (part.server < 0 && !anywhere))
            refuse("it needs the number of its server, from 0");
        const NodeId server{static_cast<std::uint32_t>(std::max(part.server, 0))};
        adapters_.emplace_back();
        switch (part.kind) {
            case Kind::gpu: vertex_.push_back(builder_.add_gpu(server)); break;
            case Kind::nic: vertex_.push_back(builder_.add_nic(server)); break;
            case Kind::host: vertex_.push_back(builder_.add_host(server, part.numa)); break;
            case Kind::pcie_switch: vertex_.push_back(builder_.add_in_node(VertexKind::pcie_switch, server)); break;
            case Kind::nvswitch:
                vertex_.push_back(part.server < 0 ? builder_.add_nvlink_domain(part.name)
                                                  : builder_.add_in_node(VertexKind::nvswitch, server));
                break;
            case Kind::network_switch: vertex_.push_back(builder_.add_switch(VertexKind::leaf, part.name)); break;
        }
    }

    std::size_t end_of(const std::string& name, std::size_t link) const {
        const auto found = by_name_.find(name);
        if (found == by_name_.end())
            throw HandMadeError(fmt::format("no node is called `{}`", name), std::nullopt, link);
        return found->second;
    }

    void add_link(std::size_t i) {
        const HandMade::Link& link = graph_.links[i];
        std::size_t from = end_of(link.from, i), to = end_of(link.to, i);
        LinkSpec spec = {.bytes_per_s = link.bytes_per_s, .latency_s = link.latency_s, .parallel = link.lanes};
        const auto is = [&](std::size_t part, Kind kind) { return graph_.parts[part].kind == kind; };
        try {
            if (is(to, Kind::gpu) && is(from, Kind::network_switch))
                std::swap(from, to);
            if (is(from, Kind::gpu) && is(to, Kind::network_switch)) {
                if (link.one_way)
                    throw std::invalid_argument("a GPU and a switch are joined both ways");
                add_adapter(from, vertex_[to], spec);
            } else if (link.bytes_per_s == 0 && link.latency_s == 0 && !link.one_way) {
                builder_.attach(vertex_[from], vertex_[to]);
            } else {
                if (is(from, Kind::network_switch) && is(to, Kind::network_switch))
                    spec.name = fmt::format("{} to {}{}", link.from, link.to, number_of(from, to));
                builder_.add_link(vertex_[from], vertex_[to], spec);
                if (!link.one_way) {
                    if (!spec.name.empty())
                        spec.name = fmt::format("{} to {}{}", link.to, link.from, number_of(to, from));
                    builder_.add_link(vertex_[to], vertex_[from], spec);
                }
            }
        } catch (const HandMadeError&) {
            throw;
        } catch (const std::invalid_argument& refused) {
            throw HandMadeError(fmt::format("`{}` to `{}`: {}", link.from, link.to, refused.what()), std::nullopt, i);
        }
    }

    /// Parallel links between two switches are told apart.
    std::string number_of(std::size_t from, std::size_t to) {
        const std::uint32_t number = ++trunks_[{from, to}];
        return number > 1 ? fmt::format(" cable {}", number) : std::string();
    }

    void add_adapter(std::size_t gpu, VertexId network_switch, const LinkSpec& spec) {
        const NodeId server{static_cast<std::uint32_t>(graph_.parts[gpu].server)};
        if (adapters_[gpu].empty()) {
            const VertexId pcie = builder_.add_in_node(VertexKind::pcie_switch, server);
            double width = 0;  // all its adapters: never the limit
            for (const HandMade::Link& link : graph_.links) {
                const bool mine = link.from == graph_.parts[gpu].name || link.to == graph_.parts[gpu].name;
                width += mine ? link.bytes_per_s : 0;
            }
            builder_.add_cable(vertex_[gpu], pcie, {.bytes_per_s = width});
            pcie_of_[gpu] = pcie;
        }
        const VertexId nic = builder_.add_nic(server);
        builder_.attach(pcie_of_.at(gpu), nic);
        builder_.add_cable(nic, network_switch, spec);
        adapters_[gpu].push_back(nic);
    }

    const HandMade& graph_;
    ClusterBuilder builder_;
    std::vector<VertexId> vertex_;                 ///< [part]
    std::vector<std::vector<VertexId>> adapters_;  ///< [part]: NICs made for links of a GPU
    std::map<std::size_t, VertexId> pcie_of_;
    std::map<std::string, std::size_t> by_name_;
    std::map<std::pair<std::size_t, std::size_t>, std::uint32_t> trunks_;
};

}  // namespace

std::string_view part_kind_name(Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<Kind> find_part_kind(std::string_view name) {
    for (std::size_t i = 0; i < std::size(kKinds); ++i) {
        if (kKinds[i] == name)
            return static_cast<Kind>(i);
    }
    return std::nullopt;
}

Cluster build_hand_made(const HandMade& graph) { return Assembly(graph).build(); }

}  // namespace fabricast
