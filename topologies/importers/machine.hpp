// What one server is, as its own files tell: GPUs, NICs, how near any two of them are, sockets, the PCIe tree.
//
// Filled by nvidia_smi_topo and nccl_xml, completed by machine_checks. Plain values: no bandwidth is assumed here,
// only what the file says or what follows from it. Invariants: paths holds (gpus + nics)^2 entries, symmetric, loc on
// the diagonal; GPUs come first, in the order of their numbers; every pci index and parent is in range, parents
// before children. What a file does not say is empty, 0 where 0 cannot be a value, or -1 for numbers that may be 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "topologies/importers/import_error.hpp"

namespace fabricast::importers {

/// Best to worst. node (between host bridges of one NUMA node) is told by nvidia-smi only; NCCL calls it phb.
enum class PathType : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, node, sys, dis };
std::string path_name(PathType type);

struct Path {
    PathType type = PathType::dis;
    std::uint16_t nvlinks = 0;  ///< links of the pair when type is nvl; behind an NVSwitch those of the lesser GPU
    bool operator==(const Path&) const = default;
};

struct Gpu {
    std::uint32_t number = 0;  ///< as the file numbers it
    std::string model;         ///< from the PCI device id; empty: unknown
    int sm = 0;                ///< NVIDIA compute capability times ten, 90 for Hopper; 0: unknown
    int gfx = 0;               ///< AMD gfx number, 908 for MI100; 0: unknown
    int numa = -1;
    std::string bus_id;
    std::string cpus;                      ///< CPU affinity as printed
    std::optional<std::uint32_t> nvlinks;  ///< links out of the GPU in all, to GPUs not listed too; empty: not told
    std::uint32_t c2c_links = 0;           ///< chip-to-chip links to the CPU (Grace)
    int pci = -1;                          ///< index in Machine::pci
};

struct Nic {
    std::string name;  ///< "mlx5_0"; for a bare PCI device its bus id
    std::string bus_id;
    double bits_per_s = 0;        ///< port rate told by the file; 0: not told
    double rated_bits_per_s = 0;  ///< most the card can do, from its PCI device id; 0: unknown card
    int port = -1;
    std::uint32_t card = 0;  ///< NICs with the same value are ports of one card
    std::uint32_t ports_on_card = 1;
    int plane = -1;  ///< port's place on a card with several: ports 1 of all cards are one plane; -1: one port
    int numa = -1;
    bool listed = true;  ///< false: a network-class PCI device of a file that lists no network at all
    int pci = -1;
};

struct NumaNode {
    int id = -1;
    std::string cpus;  ///< affinity as printed
    std::string arch, vendor;
    int family = -1, model = -1;
    std::string cpu;  ///< "Intel Sapphire Rapids"; empty: unknown
};

enum class PciKind : std::uint8_t { bridge, gpu, network, nvswitch, other, unknown };

struct PciDevice {
    std::string bus_id;
    PciKind kind = PciKind::unknown;
    std::uint32_t vendor = 0, device = 0, subsystem_vendor = 0, subsystem_device = 0;
    int parent = -1;                 ///< index in Machine::pci; -1: on the root complex
    int numa = 0;                    ///< index in Machine::numa
    double gigatransfers_per_s = 0;  ///< of the link upwards; 0: unknown
    std::uint32_t width = 0;         ///< lanes; 0: unknown
    std::uint32_t line = 0;
    bool fused = false;  ///< second level of a two-level switch that NCCL takes as one with its parent
};

enum class MachineKind : std::uint8_t {
    nvswitch,
    hybrid_cube_mesh,  ///< 8 GPUs, 4 NVLink neighbours each (DGX-1)
    nvlink_mesh,       ///< direct links, more than one neighbour
    nvlink_pairs,      ///< bridges: one neighbour each
    pcie_only,
    not_told  ///< the file has no place for NVLink (static NCCL files), or no two GPUs
};
std::string machine_kind_name(MachineKind kind);

enum class NvSwitch : std::uint8_t { absent, told, inferred, not_told };

struct Machine {
    std::string source;  ///< file
    std::string format;  ///< "nvidia-smi topo -m", "NCCL topology XML"
    std::vector<Gpu> gpus;
    std::vector<Nic> nics;
    std::vector<NumaNode> numa;
    std::vector<PciDevice> pci;
    std::vector<Path> paths;
    bool numa_known = false;  ///< the file has a place for NUMA ids; otherwise they follow from CPU affinity, or not
    NvSwitch nvswitch = NvSwitch::not_told;
    MachineKind kind = MachineKind::not_told;
    std::string link_name = "NVLink";              ///< "xGMI" on AMD
    std::optional<std::uint32_t> nvlinks_per_gpu;  ///< the most any GPU has; empty: not told
    std::string looks_like;   ///< "H100, H200 or B200 board": from link counts alone; empty: no guess
    std::uint32_t hosts = 1;  ///< servers in the file; the first is described
    Notes notes;

    std::size_t ends() const { return gpus.size() + nics.size(); }
    Path gpu_path(std::size_t a, std::size_t b) const { return paths[a * ends() + b]; }
    Path gpu_nic_path(std::size_t gpu, std::size_t nic) const { return paths[gpu * ends() + gpus.size() + nic]; }
    Path nic_path(std::size_t a, std::size_t b) const { return paths[(gpus.size() + a) * ends() + gpus.size() + b]; }
    void note(NoteKind kind_of_note, std::uint32_t line, std::string text) {
        notes.push_back({kind_of_note, line, std::move(text)});
    }
};

std::string gpu_name(const Gpu& gpu);  ///< "GPU3"

/// Pairs of GPUs by class, "NV12", "PIX", "SYS" ..., best first.
std::vector<std::pair<std::string, std::uint32_t>> link_classes(const Machine& machine);

/// NICs that the file lists as networks, and bare network-class PCI devices.
std::size_t listed_nics(const Machine& machine);
std::size_t bare_nics(const Machine& machine);

/// For each GPU the NICs at its best path, in order; empty without NICs.
std::vector<std::vector<std::uint32_t>> nearest_nics(const Machine& machine);

/// For each GPU the NICs it should use: GPUs that share the same nearest NICs divide them in order; with fewer NICs
/// than GPUs they share. No entry is empty when the machine has a NIC.
std::vector<std::vector<std::uint32_t>> nics_of_gpus(const Machine& machine);

/// Least raw bytes/s of the PCIe links from the device up to the root complex; 0 when none is known.
double pcie_bytes_per_s(const Machine& machine, int pci);
/// One link: transfers x lanes x encoding (8b/10b to 5 GT/s, 128b/130b to 32, flits above); 0 when unknown.
double pcie_link_bytes_per_s(const PciDevice& device);

}  // namespace fabricast::importers
