#include "sim/step/build_server.hpp"

#include <algorithm>

#include "topologies/builders/from_machine.hpp"

namespace fabricast {
namespace {

ServerRates rates_of(const GpuSpec& gpu, const NodeSpec& node) {
    ServerRates rates;
    rates.nvlink_bytes_per_s = gpu.nvlink_achieved_bytes_per_s;
    rates.nvlink_latency_s = node.nvlink_latency_s;
    rates.pcie_bytes_per_s = gpu.pcie_bytes_per_s;
    rates.pcie_latency_s = node.pcie_latency_s;
    rates.uplink_bytes_per_s = node.uplink_bytes_per_s > 0 ? node.uplink_bytes_per_s : gpu.pcie_bytes_per_s;
    rates.host_bytes_per_s = node.host_bytes_per_s;
    rates.socket_bytes_per_s = node.socket_bytes_per_s;
    rates.socket_latency_s = node.pcie_latency_s;
    rates.nic_bytes_per_s = node.nic_bits_per_s / 8 * node.nic_efficiency;
    rates.nic_latency_s = node.nic_latency_s;
    return rates;
}

/// Rates of one NVLink instead of a whole GPU's.
ServerRates by_lane(ServerRates rates, const GpuSpec& gpu) {
    rates.nvlink_bytes_per_s /= std::max(1u, nvlink_lanes(gpu));
    return rates;
}

ServerShape from_file(const Scenario& s) {
    MachineRates rates;
    rates.rates = by_lane(rates_of(s.gpu, s.node), s.gpu);
    rates.nic_efficiency = s.node.nic_efficiency;
    rates.nvswitch_links = s.gpu.nvlink_achieved_bytes_per_s > 0 ? nvlink_lanes(s.gpu) : 0;
    const bool told = std::all_of(s.machine->nics.begin(), s.machine->nics.end(),
                                  [](const importers::Nic& nic) { return nic.bits_per_s > 0; });
    if (told)
        rates.rates.nic_bytes_per_s = 0;  // the file's own rates hold
    return server_from_machine(*s.machine, rates);
}

ServerShape pcie_board(const NodeSpec& node, const ServerRates& rates) {
    switch (node.pcie_layout) {
        case PcieLayout::pix: return pcie_server(node.gpus, node.gpus_per_switch, node.numa_nodes, node.nics, rates);
        case PcieLayout::pxb:
            return cascaded_pcie_server(node.gpus, node.gpus_per_switch, node.numa_nodes, node.nics, rates);
        case PcieLayout::phb: return pcie_server(node.gpus, 0, node.numa_nodes, node.nics, rates);
        case PcieLayout::node: return pcie_server(node.gpus, 1, node.numa_nodes, node.nics, rates);
        case PcieLayout::sys: break;
    }
    return pcie_server(node.gpus, 0, node.gpus, node.nics, rates);
}

}  // namespace

bool is_plain_node(const NodeSpec& node) { return node.board == Board::nvswitch && node.nvlink_domain == 1; }

bool is_plain_node(const Scenario& s) { return !s.machine && is_plain_node(s.node); }

ServerShape server_shape(const Scenario& s) { return s.machine ? from_file(s) : server_shape(s.gpu, s.node); }

ServerShape server_shape(const GpuSpec& gpu, const NodeSpec& node) {
    const ServerRates rates = rates_of(gpu, node), lane = by_lane(rates, gpu);
    const std::uint32_t lanes = nvlink_lanes(gpu);
    switch (node.board) {
        case Board::cube_mesh: return hybrid_cube_mesh_server(node.nics, lane);
        case Board::pairs: {
            ServerShape shape = pcie_board(node, lane);
            shape.pairs = nvlink_pairs_server(node.gpus, lanes, node.numa_nodes, node.nics, lane).pairs;
            return shape;
        }
        case Board::full_mesh:
            return full_mesh_server(node.gpus, lanes / std::max(1u, node.gpus - 1), node.numa_nodes, node.nics, lane);
        case Board::pcie: return pcie_board(node, rates);
        case Board::nvswitch: break;
    }
    ServerShape shape = nvswitch_server(node.gpus, node.nics, rates);
    shape.nvswitch = gpu.nvlink_achieved_bytes_per_s > 0;
    shape.nodes_per_nvlink_domain = shape.nvswitch ? node.nvlink_domain : 1;
    return shape;
}

}  // namespace fabricast
