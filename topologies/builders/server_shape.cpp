#include "topologies/builders/server_shape.hpp"

#include <algorithm>
#include <string>

#include "topologies/builders/checks.hpp"

namespace fabricast {
namespace {

using Vertices = std::vector<ClusterBuilder::VertexId>;

void check_place(const ServerShape& shape, const ServerShape::Place& place, const char* what, std::size_t number,
                 std::size_t switches) {
    const bool known = place.switch_index < 0 ? place.host < shape.hosts.size()
                                              : static_cast<std::size_t>(place.switch_index) < switches;
    if (!known) {
        refuse_build("{} {}: hangs on {} {}, which the server does not have{}", what, number,
                     place.switch_index < 0 ? "host" : "pcie switch",
                     place.switch_index < 0 ? static_cast<int>(place.host) : place.switch_index,
                     switches < shape.switches.size() ? " before it" : "");
    }
}

void check_rates(const ServerShape& shape) {
    const ServerRates& rates = shape.rates;
    for (const auto& [field, value] : {std::pair{"nvlink_bytes_per_s", rates.nvlink_bytes_per_s},
                                       {"nvlink_latency_s", rates.nvlink_latency_s},
                                       {"pcie_latency_s", rates.pcie_latency_s},
                                       {"host_bytes_per_s", rates.host_bytes_per_s},
                                       {"socket_bytes_per_s", rates.socket_bytes_per_s},
                                       {"socket_latency_s", rates.socket_latency_s},
                                       {"nic_latency_s", rates.nic_latency_s}}) {
        check_not_negative(field, value);
    }
    if (!shape.pairs.empty() || (shape.nvswitch && shape.nvswitch_bytes_per_s.empty())) {
        check_positive("nvlink_bytes_per_s", rates.nvlink_bytes_per_s, "where a server has NVLink");
    }
    for (const ServerShape::PcieSwitch& part : shape.switches) {
        check_not_negative("uplink_bytes_per_s", part.uplink_bytes_per_s);
    }
    for (const ServerShape::GpuPart& gpu : shape.gpus) {
        check_positive("pcie_bytes_per_s", gpu.pcie_bytes_per_s, "for every GPU");
    }
    for (const ServerShape::NicPart& nic : shape.nics) {
        check_positive("nic_bytes_per_s", nic.bytes_per_s, "where a node has NICs");
    }
}

/// Joins a and b: by a shared link where there is a rate, else without limit.
void join(ClusterBuilder& builder, ClusterBuilder::VertexId a, ClusterBuilder::VertexId b, double bytes_per_s,
          double latency_s) {
    if (bytes_per_s > 0) {
        builder.add_cable(a, b, {.bytes_per_s = bytes_per_s, .latency_s = latency_s});
    } else {
        builder.attach(a, b);
    }
}

void join_hosts(ClusterBuilder& builder, const ServerShape& shape, const Vertices& hosts) {
    for (std::size_t a = 0; a < hosts.size(); ++a) {
        if (shape.rates.host_bytes_per_s > 0) {
            builder.limit(hosts[a], {.bytes_per_s = shape.rates.host_bytes_per_s});
        }
        for (std::size_t b = a + 1; b < hosts.size(); ++b) {
            const std::uint32_t numa_a = shape.hosts[a].numa, numa_b = shape.hosts[b].numa;
            const auto first_of_its_numa = [&](std::size_t host) {
                for (std::size_t i = 0; i < host; ++i) {
                    if (shape.hosts[i].numa == shape.hosts[host].numa) {
                        return false;
                    }
                }
                return true;
            };
            if (numa_a == numa_b) {
                builder.attach(hosts[a], hosts[b]);
            } else if (first_of_its_numa(a) && first_of_its_numa(b)) {
                join(builder, hosts[a], hosts[b], shape.rates.socket_bytes_per_s, shape.rates.socket_latency_s);
            }
        }
    }
}

Vertices add_server(ClusterBuilder& builder, const ServerShape& shape, NodeId node,
                    ClusterBuilder::VertexId nvlink_domain) {
    const ServerRates& rates = shape.rates;
    Vertices gpus, nics, switches, hosts;
    for (std::size_t g = 0; g < shape.gpus.size(); ++g) {
        gpus.push_back(builder.add_gpu(node));
    }
    if (shape.nvswitch) {
        const auto nvswitch =
            shape.nodes_per_nvlink_domain > 1 ? nvlink_domain : builder.add_in_node(VertexKind::nvswitch, node);
        for (std::size_t g = 0; g < gpus.size(); ++g) {
            const double rate =
                shape.nvswitch_bytes_per_s.empty() ? rates.nvlink_bytes_per_s : shape.nvswitch_bytes_per_s[g];
            builder.add_link(gpus[g], nvswitch, {.bytes_per_s = rate});
            builder.add_link(nvswitch, gpus[g], {.bytes_per_s = rate, .latency_s = rates.nvlink_latency_s});
        }
    }
    for (const ServerShape::NvlinkPair& pair : shape.pairs) {
        builder.add_cable(gpus[pair.a], gpus[pair.b],
                          {.bytes_per_s = pair.lanes * rates.nvlink_bytes_per_s,
                           .latency_s = rates.nvlink_latency_s,
                           .parallel = pair.lanes});
    }
    for (const ServerShape::Host& host : shape.hosts) {
        hosts.push_back(builder.add_host(node, host.numa));
    }
    const auto vertex_at = [&](const ServerShape::Place& place) {
        return place.switch_index < 0 ? hosts[place.host] : switches[static_cast<std::size_t>(place.switch_index)];
    };
    for (const ServerShape::PcieSwitch& part : shape.switches) {
        const auto pcie_switch = builder.add_in_node(VertexKind::pcie_switch, node);
        join(builder, pcie_switch, vertex_at(part.above), part.uplink_bytes_per_s, 0);
        switches.push_back(pcie_switch);
    }
    join_hosts(builder, shape, hosts);
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        const ServerShape::GpuPart& gpu = shape.gpus[g];
        builder.add_cable(gpus[g], vertex_at(gpu.place),
                          {.bytes_per_s = gpu.pcie_bytes_per_s,
                           .latency_s = rates.pcie_latency_s,
                           .c2c = shape.c2c && gpu.place.switch_index < 0});
    }
    for (const ServerShape::NicPart& nic : shape.nics) {
        nics.push_back(builder.add_nic(node));
        builder.attach(vertex_at(nic.place), nics.back());
    }
    for (std::size_t g = 0; g < gpus.size(); ++g) {
        Vertices used;
        for (const std::uint32_t nic : shape.gpus[g].nics) {
            used.push_back(nics[nic]);
        }
        if (!used.empty()) {
            builder.use_nics(gpus[g], used);
        }
    }
    return nics;
}

}  // namespace

void check_server(const ServerShape& shape) {
    if (shape.gpus.empty()) {
        refuse_build("gpus 0: a node needs at least one");
    }
    if (shape.hosts.empty()) {
        refuse_build("hosts 0: a server needs at least one host bridge");
    }
    if (shape.nodes_per_nvlink_domain == 0 || (shape.nodes_per_nvlink_domain > 1 && !shape.nvswitch)) {
        refuse_build("nodes_per_nvlink_domain {}: 1, or more with an NVSwitch", shape.nodes_per_nvlink_domain);
    }
    if (!shape.nvswitch_bytes_per_s.empty() && shape.nvswitch_bytes_per_s.size() != shape.gpus.size()) {
        refuse_build("nvswitch_bytes_per_s: {} rates for {} GPUs", shape.nvswitch_bytes_per_s.size(),
                     shape.gpus.size());
    }
    for (std::size_t i = 0; i < shape.switches.size(); ++i) {
        check_place(shape, shape.switches[i].above, "pcie switch", i, i);
    }
    for (std::size_t g = 0; g < shape.gpus.size(); ++g) {
        check_place(shape, shape.gpus[g].place, "gpu", g, shape.switches.size());
        for (const std::uint32_t nic : shape.gpus[g].nics) {
            if (nic >= shape.nics.size()) {
                refuse_build("gpu {}: uses nic {}, the server has {}", g, nic, shape.nics.size());
            }
        }
    }
    for (std::size_t n = 0; n < shape.nics.size(); ++n) {
        check_place(shape, shape.nics[n].place, "nic", n, shape.switches.size());
    }
    for (const ServerShape::NvlinkPair& pair : shape.pairs) {
        const auto same = [&](const ServerShape::NvlinkPair& other) {
            return std::minmax(other.a, other.b) == std::minmax(pair.a, pair.b);
        };
        if (pair.a >= shape.gpus.size() || pair.b >= shape.gpus.size() || pair.a == pair.b || pair.lanes == 0 ||
            std::count_if(shape.pairs.begin(), shape.pairs.end(), same) > 1) {
            refuse_build("nvlink of gpu {} and gpu {}, {} lanes: two GPUs of the server, once, and at least one lane",
                         pair.a, pair.b, pair.lanes);
        }
    }
    check_rates(shape);
}

std::vector<Vertices> add_servers(ClusterBuilder& builder, const ServerShape& shape, std::uint32_t nodes) {
    std::vector<Vertices> nics;
    nics.reserve(nodes);
    ClusterBuilder::VertexId nvlink_domain = 0;
    for (std::uint32_t n = 0; n < nodes; ++n) {
        if (shape.nodes_per_nvlink_domain > 1 && n % shape.nodes_per_nvlink_domain == 0) {
            nvlink_domain =
                builder.add_nvlink_domain(fmt::format("nvlink domain {}", n / shape.nodes_per_nvlink_domain));
        }
        nics.push_back(add_server(builder, shape, NodeId{n}, nvlink_domain));
    }
    return nics;
}

}  // namespace fabricast
