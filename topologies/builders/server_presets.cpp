// The usual boards as ServerShape lists.
#include <algorithm>

#include "topologies/builders/checks.hpp"
#include "topologies/builders/server_shape.hpp"

namespace fabricast {
namespace {

/// Which of `parts` equal parts item i of n belongs to.
std::uint32_t part_of(std::uint32_t i, std::uint32_t n, std::uint32_t parts) {
    return static_cast<std::uint32_t>(std::uint64_t{i} * parts / n);
}

void check_counts(std::uint32_t gpus, std::uint32_t numas, std::uint32_t nics) {
    if (gpus == 0) {
        refuse_build("gpus 0: a node needs at least one");
    }
    if (numas == 0 || numas > gpus) {
        refuse_build("numas {}: from 1 to the {} GPUs", numas, gpus);
    }
    if (nics > 0 && gpus % nics != 0 && nics % gpus != 0) {
        refuse_build("nics {}: gpus {} is not a multiple of it, nor it of gpus", nics, gpus);
    }
}

/// GPU g's NICs: with more NICs than GPUs the ones of its rail, else it shares one.
void give_nics(ServerShape& shape) {
    const auto gpus = static_cast<std::uint32_t>(shape.gpus.size());
    const auto nics = static_cast<std::uint32_t>(shape.nics.size());
    for (std::uint32_t g = 0; nics > gpus && g < gpus; ++g) {
        for (std::uint32_t n = g * (nics / gpus); n < (g + 1) * (nics / gpus); ++n) {
            shape.gpus[g].nics.push_back(n);
        }
    }
}

/// GPUs on host bridges of `numas` NUMA nodes; per_switch as in pcie_server.
ServerShape pcie_tree(std::uint32_t gpus, std::uint32_t per_switch, std::uint32_t numas, std::uint32_t nics,
                      const ServerRates& rates) {
    check_counts(gpus, numas, nics);
    ServerShape shape;
    shape.rates = rates;
    if (per_switch != 1) {
        for (std::uint32_t n = 0; n < numas; ++n) {
            shape.hosts.push_back({n});
        }
    }
    for (std::uint32_t g = 0; g < gpus; ++g) {
        const std::uint32_t numa = part_of(g, gpus, numas);
        ServerShape::GpuPart gpu;
        gpu.pcie_bytes_per_s = rates.pcie_bytes_per_s;
        if (per_switch == 1) {
            gpu.place.host = g;
            shape.hosts.push_back({numa});
        } else if (per_switch == 0) {
            gpu.place.host = numa;
        } else {
            const std::uint32_t number = g - (numa * gpus + numas - 1) / numas;  // among the GPUs of the NUMA node
            if (number % per_switch == 0) {
                shape.switches.push_back({{-1, numa}, rates.uplink_bytes_per_s});
            }
            gpu.place.switch_index = static_cast<int>(shape.switches.size()) - 1;
        }
        shape.gpus.push_back(gpu);
    }
    for (std::uint32_t n = 0; n < nics; ++n) {
        // Beside the first GPU that uses it: NIC n serves GPUs n, n + nics, ... or is one of GPU n / (nics / gpus).
        const std::uint32_t gpu = nics > gpus ? n / (nics / gpus) : n;
        shape.nics.push_back({shape.gpus[gpu].place, rates.nic_bytes_per_s});
    }
    give_nics(shape);
    return shape;
}

/// GPUs in groups share NICs with their neighbours: NIC n beside GPUs n * k .. n * k + k - 1.
void share_nics_with_neighbours(ServerShape& shape) {
    const auto gpus = static_cast<std::uint32_t>(shape.gpus.size());
    const auto nics = static_cast<std::uint32_t>(shape.nics.size());
    for (std::uint32_t n = 0; nics > 0 && nics <= gpus && n < nics; ++n) {
        shape.nics[n].place = shape.gpus[n * (gpus / nics)].place;
    }
    for (std::uint32_t g = 0; nics > 0 && nics < gpus && g < gpus; ++g) {
        shape.gpus[g].nics = {part_of(g, gpus, nics)};
    }
}

}  // namespace

ServerShape nvswitch_server(std::uint32_t gpus, std::uint32_t nics, const ServerRates& rates) {
    check_counts(gpus, 1, nics);
    ServerShape shape = pcie_tree(gpus, std::max(2u, gpus), 1, 0, rates);
    shape.nvswitch = true;
    shape.hosts = {{0}, {1}};
    shape.switches.clear();
    const std::uint32_t switches = nics == 0 ? gpus : std::min(gpus, nics);
    for (std::uint32_t i = 0; i < switches; ++i) {
        shape.switches.push_back({{-1, part_of(i, switches, 2)}, rates.uplink_bytes_per_s});
    }
    for (std::uint32_t g = 0; g < gpus; ++g) {
        shape.gpus[g].place = {static_cast<int>(g % switches), 0};
    }
    for (std::uint32_t n = 0; n < nics; ++n) {
        const std::uint32_t at = nics > gpus ? n / (nics / gpus) : n;
        shape.nics.push_back({{static_cast<int>(at), 0}, rates.nic_bytes_per_s});
    }
    give_nics(shape);
    return shape;
}

ServerShape hybrid_cube_mesh_server(std::uint32_t nics, const ServerRates& rates) {
    ServerShape shape = pcie_tree(8, 2, 2, nics, rates);
    share_nics_with_neighbours(shape);
    // Two quads, each all to all, and the cube's edges between them; 6 lanes a GPU (as nvidia-smi lists a DGX-1).
    for (const std::uint32_t quad : {0u, 4u}) {
        for (const auto& [a, b, lanes] :
             {std::array{0u, 1u, 1u}, {0u, 2u, 1u}, {0u, 3u, 2u}, {1u, 2u, 2u}, {1u, 3u, 1u}, {2u, 3u, 2u}}) {
            shape.pairs.push_back({quad + a, quad + b, lanes});
        }
    }
    shape.pairs.insert(shape.pairs.end(), {{0, 4, 2}, {1, 5, 2}, {2, 6, 1}, {3, 7, 1}});
    return shape;
}

ServerShape nvlink_pairs_server(std::uint32_t gpus, std::uint32_t lanes, std::uint32_t numas, std::uint32_t nics,
                                const ServerRates& rates) {
    if (gpus % 2 != 0) {
        refuse_build("gpus {}: NVLink pairs need an even number", gpus);
    }
    ServerShape shape = pcie_tree(gpus, 0, numas, nics, rates);
    share_nics_with_neighbours(shape);
    for (std::uint32_t g = 0; g < gpus; g += 2) {
        shape.pairs.push_back({g, g + 1, lanes});
    }
    return shape;
}

ServerShape full_mesh_server(std::uint32_t gpus, std::uint32_t lanes, std::uint32_t numas, std::uint32_t nics,
                             const ServerRates& rates) {
    ServerShape shape = pcie_tree(gpus, 2, numas, nics, rates);
    share_nics_with_neighbours(shape);
    for (std::uint32_t a = 0; a < gpus; ++a) {
        for (std::uint32_t b = a + 1; b < gpus; ++b) {
            shape.pairs.push_back({a, b, lanes});
        }
    }
    return shape;
}

ServerShape pcie_server(std::uint32_t gpus, std::uint32_t gpus_per_switch, std::uint32_t numas, std::uint32_t nics,
                        const ServerRates& rates) {
    ServerShape shape = pcie_tree(gpus, gpus_per_switch, numas, nics, rates);
    share_nics_with_neighbours(shape);
    return shape;
}

ServerShape cascaded_pcie_server(std::uint32_t gpus, std::uint32_t gpus_per_switch, std::uint32_t numas,
                                 std::uint32_t nics, const ServerRates& rates) {
    if (gpus_per_switch < 2) {
        refuse_build("gpus_per_switch {}: at least 2 on the lower switches", gpus_per_switch);
    }
    ServerShape shape = pcie_server(gpus, gpus_per_switch, numas, nics, rates);
    std::vector<ServerShape::PcieSwitch> switches;
    for (std::uint32_t numa = 0; numa < numas; ++numa) {
        switches.push_back({{-1, numa}, rates.uplink_bytes_per_s});
    }
    for (const ServerShape::PcieSwitch& lower : shape.switches) {
        switches.push_back({{static_cast<int>(lower.above.host), 0}, lower.uplink_bytes_per_s});
    }
    shape.switches = std::move(switches);
    const auto one_down = [&](ServerShape::Place& place) { place.switch_index += static_cast<int>(numas); };
    for (ServerShape::GpuPart& gpu : shape.gpus) {
        one_down(gpu.place);
    }
    for (ServerShape::NicPart& nic : shape.nics) {
        one_down(nic.place);
    }
    return shape;
}

ServerShape nvlink_rack_server(std::uint32_t gpus_per_host, std::uint32_t hosts_per_rack, const ServerRates& rates) {
    ServerShape shape = pcie_tree(gpus_per_host, 0, std::min(2u, gpus_per_host), gpus_per_host, rates);
    shape.nvswitch = true;
    shape.c2c = true;
    shape.nodes_per_nvlink_domain = hosts_per_rack;
    return shape;
}

}  // namespace fabricast
