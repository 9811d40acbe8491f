#include "topologies/builders/from_fabric.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "topologies/builders/checks.hpp"
#include "topologies/builders/grid.hpp"

namespace fabricast {
namespace {

using importers::FabricDescription;
using importers::FabricLink;
using importers::NodeKind;
using VertexId = ClusterBuilder::VertexId;

constexpr std::uint32_t kNone = 0xFFFFFFFFu;

class Assembly {
public:
    Assembly(const FabricDescription& fabric, const FabricOptions& options) : fabric_(fabric), options_(options) {}

    Cluster from_gpus();
    Cluster from_hosts();

private:
    NodeKind kind(std::uint32_t node) const { return fabric_.nodes[node].kind; }
    bool is_network(std::uint32_t node) const { return kind(node) == NodeKind::network_switch; }
    std::string link_name(const FabricLink& link) const {
        return fabric_.nodes[link.from].name + " to " + fabric_.nodes[link.to].name;
    }
    /// The far end of a link.
    static std::uint32_t other(const FabricLink& link, std::uint32_t node) {
        return link.from == node ? link.to : link.from;
    }
    double rate(const FabricLink& link, double not_told) const {
        const double told = link.bytes_per_s * options_.link_efficiency;
        if (told <= 0 && not_told <= 0) {
            refuse_build("{}: link {}: its rate is not in the file and not given", fabric_.source, link_name(link));
        }
        return told > 0 ? told : not_told;
    }
    void add_switches();
    void add_trunks();
    void add_nic_link(VertexId nic, std::uint32_t network_switch, const FabricLink& link, double not_told);
    void join_nvswitches();
    void add_gpu_links(std::uint32_t node, VertexId gpu);
    std::vector<std::uint32_t> chosen_hosts() const;
    Cluster freeze() {
        builder_.set_routing(options_.routing);
        return std::move(builder_).freeze();
    }

    const FabricDescription& fabric_;
    const FabricOptions& options_;
    ClusterBuilder builder_;
    std::vector<VertexId> vertex_ = std::vector<VertexId>(fabric_.nodes.size(), 0);
    std::vector<std::vector<std::uint32_t>> links_of_;  ///< [node]: links that are up, in file order
    std::vector<std::uint32_t> domain_;                 ///< [node]: of NVSwitches, the least that shares a GPU
    std::map<std::uint32_t, VertexId> domain_vertex_;
    std::vector<std::uint32_t> server_of_;  ///< [node]: of GPUs
};

void Assembly::add_switches() {
    links_of_.resize(fabric_.nodes.size());
    for (std::uint32_t i = 0; i < fabric_.links.size(); ++i) {
        if (fabric_.links[i].state != importers::LinkState::down) {
            links_of_[fabric_.links[i].from].push_back(i);
            links_of_[fabric_.links[i].to].push_back(i);
        }
    }
    for (std::uint32_t i = 0; i < fabric_.nodes.size(); ++i) {
        if (is_network(i)) {
            const VertexKind level = fabric_.nodes[i].level > 0 ? VertexKind::spine : VertexKind::leaf;
            vertex_[i] = builder_.add_switch(level, fabric_.nodes[i].name);
        }
    }
}

void Assembly::add_trunks() {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cables;  // told apart by number
    for (const FabricLink& link : fabric_.links) {
        if (!is_network(link.from) || !is_network(link.to) || link.state == importers::LinkState::down) {
            continue;
        }
        const std::uint32_t number = cables[{link.from, link.to}]++;
        const auto add = [&](std::uint32_t from, std::uint32_t to) {
            builder_.add_link(vertex_[from], vertex_[to],
                              {.bytes_per_s = rate(link, options_.trunk_bytes_per_s),
                               .latency_s = link.latency_s + options_.switch_latency_s,
                               .name = fmt::format("{} to {}{}", fabric_.nodes[from].name, fabric_.nodes[to].name,
                                                   number > 0 ? fmt::format(" cable {}", number + 1) : std::string())});
        };
        add(link.from, link.to);
        if (link.duplex) {
            add(link.to, link.from);
        }
    }
}

void Assembly::add_nic_link(VertexId nic, std::uint32_t network_switch, const FabricLink& link, double not_told) {
    const double bytes_per_s = rate(link, not_told);
    const double latency = link.latency_s + options_.server.rates.nic_latency_s;
    builder_.add_link(nic, vertex_[network_switch], {.bytes_per_s = bytes_per_s, .latency_s = latency});
    builder_.add_link(vertex_[network_switch], nic,
                      {.bytes_per_s = bytes_per_s, .latency_s = latency + options_.switch_latency_s});
}

/// NVSwitches that share a GPU become one domain, named after the first.
void Assembly::join_nvswitches() {
    domain_.resize(fabric_.nodes.size());
    std::iota(domain_.begin(), domain_.end(), 0u);
    for (std::uint32_t node = 0; node < fabric_.nodes.size(); ++node) {
        std::uint32_t joined = kNone;
        for (std::size_t i = 0; kind(node) == NodeKind::gpu && i < links_of_[node].size(); ++i) {
            const std::uint32_t far = other(fabric_.links[links_of_[node][i]], node);
            if (kind(far) == NodeKind::nvswitch && domain_[far] != joined) {
                const std::uint32_t to = std::min(domain_[far], joined), from = std::max(domain_[far], joined);
                joined = to;
                if (from != kNone) {
                    std::replace(domain_.begin(), domain_.end(), from, to);
                }
            }
        }
    }
    for (std::uint32_t node = 0; node < fabric_.nodes.size(); ++node) {
        if (kind(node) == NodeKind::nvswitch && domain_[node] == node) {
            domain_vertex_[node] = builder_.add_nvlink_domain(fabric_.nodes[node].name);
        }
    }
}

void Assembly::add_gpu_links(std::uint32_t node, VertexId gpu) {
    struct Sum {
        double bytes_per_s = 0, latency_s = 0;
        std::uint32_t lanes = 0;
        void add(const FabricLink& link) {
            bytes_per_s += link.bytes_per_s;
            latency_s = std::max(latency_s, link.latency_s);
            ++lanes;
        }
        LinkSpec spec() const { return {.bytes_per_s = bytes_per_s, .latency_s = latency_s, .parallel = lanes}; }
    };
    Sum nvswitch;
    std::map<std::uint32_t, Sum> peers;
    std::uint32_t domain = kNone;
    std::vector<std::uint32_t> nic_links;
    double nic_rate = 0;
    for (const std::uint32_t i : links_of_[node]) {
        const FabricLink& link = fabric_.links[i];
        const std::uint32_t far = other(link, node);
        if (kind(far) == NodeKind::nvswitch) {
            nvswitch.add(link);
            domain = domain_[far];
        } else if (is_network(far)) {
            nic_links.push_back(i);
            nic_rate += rate(link, options_.server.rates.nic_bytes_per_s);
        } else if (server_of_[far] != server_of_[node]) {
            refuse_build("{}: link {} joins GPUs of servers {} and {}: put a switch between, or give the servers",
                         fabric_.source, link_name(link), server_of_[link.from], server_of_[link.to]);
        } else if (far < node) {
            peers[far].add(link);
        }
    }
    if (domain != kNone) {
        builder_.add_cable(gpu, domain_vertex_.at(domain), nvswitch.spec());
    }
    for (const auto& [peer, sum] : peers) {
        builder_.add_cable(gpu, vertex_[peer], sum.spec());
    }
    if (nic_links.empty()) {
        return;
    }
    const NodeId server{server_of_[node]};
    const double pcie = options_.server.rates.pcie_bytes_per_s;
    const VertexId pcie_switch = builder_.add_in_node(VertexKind::pcie_switch, server);
    builder_.add_cable(gpu, pcie_switch,
                       {.bytes_per_s = pcie > 0 ? pcie : nic_rate, .latency_s = options_.server.rates.pcie_latency_s});
    std::vector<VertexId> nics;
    for (const std::uint32_t i : nic_links) {
        nics.push_back(builder_.add_nic(server));
        builder_.attach(pcie_switch, nics.back());
        add_nic_link(nics.back(), other(fabric_.links[i], node), fabric_.links[i],
                     options_.server.rates.nic_bytes_per_s);
    }
    builder_.use_nics(gpu, nics);
}

Cluster Assembly::from_gpus() {
    add_switches();
    join_nvswitches();
    server_of_.assign(fabric_.nodes.size(), kNone);
    std::uint32_t gpus = 0;
    if (options_.gpus_per_server == 0) {
        refuse_build("gpus_per_server 0: at least one");
    }
    for (std::uint32_t node = 0; node < fabric_.nodes.size(); ++node) {
        if (kind(node) == NodeKind::gpu) {
            const int told = fabric_.nodes[node].server;
            server_of_[node] = told >= 0 ? static_cast<std::uint32_t>(told) : gpus / options_.gpus_per_server;
            ++gpus;
        } else if (kind(node) == NodeKind::host) {
            refuse_build("{}: {} is a host among GPUs", fabric_.source, fabric_.nodes[node].name);
        }
    }
    for (std::uint32_t node = 0; node < fabric_.nodes.size(); ++node) {
        if (kind(node) == NodeKind::gpu) {
            vertex_[node] = builder_.add_gpu(NodeId{server_of_[node]});
            add_gpu_links(node, vertex_[node]);
        }
    }
    add_trunks();
    return freeze();
}

std::vector<std::uint32_t> Assembly::chosen_hosts() const {
    std::map<std::string, std::uint32_t> by_name;
    std::vector<std::uint32_t> all;
    for (std::uint32_t node = 0; node < fabric_.nodes.size(); ++node) {
        if (kind(node) == NodeKind::host) {
            all.push_back(node);
            by_name.emplace(fabric_.nodes[node].name, node);
        }
    }
    if (options_.hosts.empty()) {
        return all;
    }
    std::vector<std::uint32_t> chosen;
    for (const std::string& name : options_.hosts) {
        const auto host = by_name.find(name);
        if (host == by_name.end()) {
            refuse_build("host '{}' is not in {}", name, fabric_.source);
        }
        if (std::find(chosen.begin(), chosen.end(), host->second) != chosen.end()) {
            refuse_build("host '{}' is listed twice", name);
        }
        chosen.push_back(host->second);
    }
    return chosen;
}

Cluster Assembly::from_hosts() {
    check_server(options_.server);
    add_switches();
    const std::vector<std::uint32_t> hosts = chosen_hosts();
    const auto nics = add_servers(builder_, options_.server, static_cast<std::uint32_t>(hosts.size()));
    for (std::size_t h = 0; h < hosts.size(); ++h) {
        const std::uint32_t host = hosts[h];
        std::vector<std::uint32_t> links = links_of_[host];
        const auto port = [&](std::uint32_t i) {
            return fabric_.links[i].from == host ? fabric_.links[i].from_port : fabric_.links[i].to_port;
        };
        std::stable_sort(links.begin(), links.end(),
                         [&](std::uint32_t a, std::uint32_t b) { return port(a) < port(b); });
        const std::size_t wanted = nics[h].size();
        if (wanted > 0 && links.size() != wanted && links.size() != 1) {
            refuse_build("{}: host {} has {} links that are up, its server has {} NICs", fabric_.source,
                         fabric_.nodes[host].name, links.size(), wanted);
        }
        for (std::size_t n = 0; n < wanted; ++n) {
            const FabricLink& link = fabric_.links[links[links.size() == 1 ? 0 : n]];
            if (!is_network(other(link, host))) {
                refuse_build("{}: link {} joins hosts: a switch is expected", fabric_.source, link_name(link));
            }
            add_nic_link(nics[h][n], other(link, host), link, options_.server.nics[n].bytes_per_s);
        }
    }
    add_trunks();
    return freeze();
}

GridAxis axis_of(const importers::GridDimension& dimension) {
    using Kind = importers::GridDimension::Kind;
    return {dimension.kind == Kind::ring              ? GridAxis::Kind::ring
            : dimension.kind == Kind::fully_connected ? GridAxis::Kind::full
                                                      : GridAxis::Kind::switched,
            dimension.count, dimension.bytes_per_s, dimension.latency_s};
}

}  // namespace

Cluster build_from_fabric(const FabricDescription& fabric, const FabricOptions& options) {
    check_positive("link_efficiency", options.link_efficiency, "(achieved / told rate)");
    check_not_negative("switch_latency_s", options.switch_latency_s);
    check_not_negative("trunk_bytes_per_s", options.trunk_bytes_per_s);
    if (!fabric.dimensions.empty()) {
        Grid grid;
        grid.inner_dimensions = options.inner_dimensions;
        for (const importers::GridDimension& dimension : fabric.dimensions) {
            grid.axes.push_back(axis_of(dimension));
        }
        return build_grid(grid);
    }
    if (options.routing.spreading == Spreading::adaptive) {
        refuse_build("adaptive routing over the listed links of {} is not modelled: ideal, static or ecmp",
                     fabric.source);
    }
    if (fabric.count(NodeKind::gpu) > 0) {
        return Assembly(fabric, options).from_gpus();
    }
    if (fabric.count(NodeKind::host) == 0) {
        refuse_build("{}: no host and no GPU in it", fabric.source);
    }
    return Assembly(fabric, options).from_hosts();
}

}  // namespace fabricast
