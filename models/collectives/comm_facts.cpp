#include "models/collectives/comm_model.hpp"

namespace fabricast {

CommFacts comm_facts(const GpuSpec& gpu, const NodeSpec& node) {
    CommFacts facts;
    facts.generation = gpu.generation;
    facts.nvswitch = gpu.nvlink_achieved_bytes_per_s > 0;
    facts.nvls = gpu.nvls;
    facts.amd_cpu = node.cpu == "amd";
    facts.nvlink_nccl_bytes_per_s = gpu.nvlink_nccl_bytes_per_s;
    facts.nvlink_bytes_per_s = gpu.nvlink_achieved_bytes_per_s;
    facts.socket_nccl_bytes_per_s = node.socket_bytes_per_s;
    // PCIe x16 of the boards of a generation, as NCCL counts it: gen3, gen4, gen5 (src/graph/topo.h)
    facts.pcie_nccl_bytes_per_s = gpu.generation == GpuGeneration::volta    ? 12e9
                                  : gpu.generation == GpuGeneration::ampere ? 24e9
                                                                            : 48e9;
    facts.nic_line_bytes_per_s = node.nic_bits_per_s / 8;
    return facts;
}

}  // namespace fabricast
