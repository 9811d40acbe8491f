// From a workload to a Program: what each rank does, in the order its trace allows.
//
// Streams of a rank: kernels; CPU operations; memory nodes; one a dimension for collectives of all ranks; one a group;
// one a message channel, as far as 32 streams reach - beyond, groups and channels share streams, and one may wait behind
// another. Operations of a stream run in the order of node_order.hpp; dependencies on other streams become waits.
// Communication of different groups runs at once and shares the links. ASTRA-sim lets a rank have one communication node
// under way at a time, receives excepted: `serial_communication` does that.
//
// A kernel takes its recorded duration (0 counts as 1 ns, as in ASTRA-sim), or with the roofline
//   max(FLOP / peak-perf, bytes / local-mem-bw).
// A memory node takes its place in the remote memory: latency + bytes / bandwidth, shared by those who use one at once.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/program/program.hpp"
#include "sim/traces/grid_network.hpp"
#include "sim/traces/system_file.hpp"
#include "sim/traces/workload.hpp"

namespace fabricast::traces {

struct TraceInputs {
    const Workload& workload;
    const GridNetwork& network;
    const SystemConfig& system;
    const RemoteMemory& memory;
    bool serial_communication = false;
};

/// A class of collectives or messages, for the communication table.
struct TraceTraffic {
    std::string kind;         ///< "all_reduce", "send"
    std::uint32_t ranks = 0;  ///< of the group; messages: 2
    Bytes bytes = 0;          ///< as the trace says
    std::string algorithm;    ///< "ring", "ring x direct"
    std::uint64_t calls = 0;  ///< of all ranks; messages: sends
    double time_s = 0;        ///< alone on the network
    double bus_bytes_per_s = 0;
    std::string limiting_link;
};

/// How a template came about, by template of the program.
struct TemplateOrder {
    std::uint32_t rank = 0;            ///< whose groups and peers it was made with
    std::vector<std::uint32_t> order;  ///< nodes as they are issued
    std::vector<std::uint32_t> end;    ///< by node: the operation that ends it; kNone for what takes no time
};

struct CompiledTrace {
    program::Program program;
    std::vector<TemplateOrder> orders;
    std::vector<Rate> capacity;
    std::vector<TraceTraffic> traffic;
    std::vector<std::string> notes;
};

/// ends: by template and node, when collectives and receives ended in an earlier run; may be empty. Throws ImportError
/// for what the inputs do not allow, with file and node.
CompiledTrace compile_trace(const TraceInputs& inputs, const std::vector<std::vector<Picoseconds>>& ends = {});

}  // namespace fabricast::traces
