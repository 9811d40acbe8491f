// The catalogue of GPUs, nodes and fabrics: YAML files in this folder, embedded in the binary at build.
//
// Every number in the YAML sits beside a `source:` (FieldValue keeps it for the list of assumptions).
// Rates are decimal bytes/s per direction, peaks are dense FLOP/s (1 FMA = 2 FLOP), memory is the
// driver-reported MiB.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast {

enum class GpuGeneration : std::uint8_t { volta, ampere, hopper, blackwell };

/// Constants of the reference GEMM model (models/compute/gemm.hpp), fitted per GPU.
struct GemmConstants {
    double t0_s, c_pro_s;   ///< kernel floor; prologue + epilogue of one tile wave
    double emax, fall;      ///< efficiency ceiling and tile-intensity fall-off
    double bandwidth, hot;  ///< fraction of HBM, gain when operands sit in L2
    double p;               ///< exponent of the smooth maximum of compute and memory time
    double cap;             ///< clock / power ceiling as a fraction of peak (burst)
    double wave;            ///< wave weight q
    double split_cost;      ///< m2
    double sustained;       ///< burst time is divided by this in a long training run
    double expert_reads;    ///< share of further experts' weights whose passing to or from memory nothing hides
};

/// Constants of one attention implementation on one GPU (models/compute/attention.hpp).
struct AttentionConstants {
    double t0_s, e128, e64, s0, bandwidth;
    double backward_rate;  ///< backward FLOP rate / forward FLOP rate
};

struct MemoryConstants {  ///< fraction of HBM peak reached by memory-bound kernels
    double fused, compiled, eager, copy;
    double floor_s;  ///< shortest kernel
};

struct GpuSpec {
    std::string name;  ///< "H100-SXM-80G"
    GpuGeneration generation;
    std::uint32_t sms;
    double peak_fp32, peak_tf32, peak_bf16, peak_fp8;  ///< dense FLOP/s; 0 = not supported
    std::int64_t memory_mib;                           ///< as the driver reports it
    std::int64_t driver_memory_mib = 0;                ///< of it, kept by the driver; 0 = the report leaves it out
    double hbm_bytes_per_s;
    double l2_bytes;
    double nvlink_nominal_bytes_per_s;       ///< per direction, sum of links; 0 = none
    double nvlink_achieved_bytes_per_s;      ///< what collectives reach on the wire
    double nvlink_nccl_bytes_per_s;          ///< what NCCL's topology search assumes
    double pcie_bytes_per_s;                 ///< achieved
    double network_channel_bytes_per_s = 0;  ///< one channel of a ring over nodes, achieved; 0 = not known to bind
    bool nvls;                               ///< NVLink SHARP on an NVSwitch node
    double power_w;
    GemmConstants gemm;
    std::map<std::string, AttentionConstants, std::less<>> attention;  ///< "fa2", "fa3", "cudnn", "fa1"
    MemoryConstants memory;
    std::map<std::string, std::string, std::less<>> sources;  ///< field -> source sentence
};

/// What joins the GPUs of a node besides PCIe (topologies/builders/server_shape.hpp).
enum class Board : std::uint8_t { nvswitch, cube_mesh, pairs, full_mesh, pcie };
/// Where GPUs of one NUMA node meet over PCIe, in the words of nvidia-smi: in groups on a switch (pix), the switches of a
/// NUMA node under one more (pxb), on one host bridge (phb), each on a host bridge (node), each on a NUMA node (sys).
enum class PcieLayout : std::uint8_t { pix, pxb, phb, node, sys };

std::string_view board_name(Board board);  ///< "cube-mesh"
std::optional<Board> find_board(std::string_view name);
std::string_view pcie_layout_name(PcieLayout layout);  ///< "pix"
std::optional<PcieLayout> find_pcie_layout(std::string_view name);

/// NVLinks of a GPU: nominal rate / that of a link (25 GB/s from NVLink 2 to 4, 50 GB/s on Blackwell; data sheets).
std::uint32_t nvlink_lanes(const GpuSpec& gpu);

struct NodeSpec {
    std::string name;  ///< "hgx-h800"
    std::string gpu;   ///< key into the catalogue
    std::uint32_t gpus, nics;
    double nic_bits_per_s;  ///< line rate of one NIC
    double nic_efficiency;  ///< achieved / line rate
    double nvlink_latency_s, pcie_latency_s, nic_latency_s;
    std::string cpu;             ///< "intel", "amd" or "arm": NCCL's tables depend on it
    std::string network = "ib";  ///< transport of its adapters, key into the networks
    bool network_named = false;  ///< the entry says so; else it is usual
    Board board = Board::nvswitch;
    std::uint32_t nvlink_domain = 1;  ///< nodes on one NVSwitch
    // PCIe; read of boards other than one NVSwitch a node
    PcieLayout pcie_layout = PcieLayout::pix;
    std::uint32_t numa_nodes = 2, gpus_per_switch = 2;
    double socket_bytes_per_s = 0;       ///< between NUMA nodes, each pair and direction; 0 = no limit
    double uplink_bytes_per_s = 0;       ///< PCIe switch upwards; 0 = as a GPU's PCIe
    double host_bytes_per_s = 0;         ///< a host bridge passes on, shared; 0 = no limit
    double host_memory_bytes = 0;        ///< of the server
    double host_memory_bytes_per_s = 0;  ///< nominal, all channels of all sockets
    std::map<std::string, std::string, std::less<>> sources;
};

struct FabricSpec {
    std::string name;  ///< "rail-fat-tree"
    std::uint32_t nodes_per_pod;
    double switch_latency_s;
    std::map<std::string, std::string, std::less<>> sources;
};

/// What NCCL reaches over one kind of transport, fitted on logs (networks.yaml).
struct NetworkSpec {
    std::string name;                               ///< "ib", "roce", "efa" ...
    double efficiency;                              ///< achieved / line rate of large messages
    double ll_hop_us, ll128_hop_us, simple_hop_us;  ///< on top of NCCL's network hop
    double slot_us;                                 ///< each of the first 8 chunks of a channel of a tree (Simple)
    bool ll;     ///< NCCL may use LL; where the plugin or the cloud's recipe switches it off, Simple alone is left
    bool ll128;  ///< likewise LL128: GPU and adapter are close enough (PXB or better) and writes keep their order
    std::map<std::string, std::string, std::less<>> sources;
};

/// All presets, in name order. Parsed once from the embedded YAML; a malformed entry is our bug and throws
/// std::logic_error with file and key.
class Catalogue {
public:
    static const Catalogue& builtin();
    const GpuSpec* find_gpu(std::string_view name) const;  ///< nullptr when unknown
    const NodeSpec* find_node(std::string_view name) const;
    const FabricSpec* find_fabric(std::string_view name) const;
    const NetworkSpec* find_network(std::string_view name) const;
    const std::vector<GpuSpec>& gpus() const { return gpus_; }
    const std::vector<NodeSpec>& nodes() const { return nodes_; }
    const std::vector<FabricSpec>& fabrics() const { return fabrics_; }
    const std::vector<NetworkSpec>& networks() const { return networks_; }

private:
    std::vector<GpuSpec> gpus_;
    std::vector<NodeSpec> nodes_;
    std::vector<FabricSpec> fabrics_;
    std::vector<NetworkSpec> networks_;
};

}  // namespace fabricast
