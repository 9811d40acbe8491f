// What a network is, as its own files tell: nodes, links, and how good each link is.
//
// Filled by ns3_topology, astra_network, slurm_topology and infiniband. Plain values; what a file does not say is 0
// or empty (Slurm tells no rates, InfiniBand no latencies). A duplex link stands for one in each direction with the
// same figures. Invariants: link ends are indices into nodes and differ; rates and latencies are finite and >= 0.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "topologies/importers/import_error.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {

enum class NodeKind : std::uint8_t { gpu, host, nvswitch, network_switch };
std::string node_kind_name(NodeKind kind);

struct FabricNode {
    std::string name;
    NodeKind kind = NodeKind::host;
    std::uint32_t gpus = 0;  ///< 1 for a gpu; of a host as far as told, else 0
    int server = -1;         ///< ns-3 files with GPUs per server: the server of a GPU
    int level = -1;          ///< switches: 0 above hosts, 1 above those ...; -1: not above any host
    std::uint32_t line = 0;
};

enum class LinkState : std::uint8_t { not_told, good, degraded, down };

struct FabricLink {
    std::uint32_t from = 0, to = 0;
    bool duplex = true;
    double bytes_per_s = 0;  ///< one direction; 0: not told
    double latency_s = 0;    ///< 0: not told, or none
    double error_rate = 0;   ///< of packets, as ns-3 reads it
    std::string from_port, to_port;
    std::uint32_t width = 0;  ///< InfiniBand lanes
    std::string rate;         ///< InfiniBand lane speed, "HDR"
    LinkState state = LinkState::not_told;
    std::string remark;  ///< why it is degraded
    std::uint32_t line = 0;
};

/// A network given by dimensions: rank r has coordinate r mod count of dimension 0, then r / count of it, ...
struct GridDimension {
    enum class Kind : std::uint8_t { ring, fully_connected, network_switch } kind = Kind::ring;
    std::uint32_t count = 0;
    double bytes_per_s = 0;  ///< per link and direction
    double latency_s = 0;    ///< per link; a path through a switch pays two
};

struct FabricDescription {
    std::string source, format;
    std::vector<FabricNode> nodes;
    std::vector<FabricLink> links;
    std::vector<GridDimension> dimensions;   ///< dimension grids only; nodes and links are its expansion
    std::string gpu_model;                   ///< SimAI topologies
    std::vector<std::uint32_t> block_sizes;  ///< Slurm block topologies
    bool expanded = true;                    ///< false: a grid too large to list; dimensions alone are filled
    Notes notes;

    std::size_t count(NodeKind kind) const;
    void note(NoteKind kind, std::uint32_t line, std::string text) { notes.push_back({kind, line, std::move(text)}); }
};

/// Sets levels of switches by distance from hosts and GPUs, and notes nodes without links and separate parts.
void complete(FabricDescription& fabric);

/// Where the nodes of a job sit.
struct Placement {
    std::vector<std::string> nodes;                  ///< as listed
    std::vector<std::vector<std::uint32_t>> leaves;  ///< for each the switches it hangs on, indices into fabric.nodes
};

/// node_list: names or a Slurm list, "n[0-3,7]". Throws ImportError with the node that the fabric does not have,
/// or that is listed twice.
Placement place(const FabricDescription& fabric, std::string_view node_list);

}  // namespace fabricast::importers
