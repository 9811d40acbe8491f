// What NCCL_DEBUG=INFO lines say about how a run was carried: they tell why a log is slow.
//
//     [prefix]HOST:PID:TID [cudaDev] [file.cc:line] NCCL INFO|WARN|TRACE text
// Facts are gathered over all ranks of a run. Absent lines leave a fact unset: nothing is concluded from silence.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

struct NcclFacts {
    int lines = 0;                   ///< INFO and WARN lines seen
    std::string network;             ///< "IB", "Socket", "AWS Libfabric", ... as in "Using network" or "via NET/..."
    std::string network_transport;   ///< socket | ib | ofi; empty when not said
    std::string provider;            ///< libfabric provider: efa, cxi, tcp
    bool plugin_not_found = false;   ///< libnccl-net.so was looked for and not found
    std::optional<bool> gpu_direct;  ///< every network connection by GDRDMA: true; some without: false
    int net_connections = 0, gdr_connections = 0, p2p_connections = 0, shm_connections = 0;
    std::optional<bool> nvls;  ///< NVLink SHARP multicast available
    std::optional<int> coll_channels, nvls_channels, p2p_channels;
    int ring_lines = 0, tree_lines = 0;
    std::optional<int> ranks;  ///< "nranks" of the communicator
    std::string nccl_version, cuda_version;
    std::map<std::string, std::string> environment;  ///< NCCL_... set by environment
    std::vector<std::string> warnings;               ///< texts of NCCL WARN, the first eight different ones
};

/// Where "HOST:PID:TID [d] NCCL INFO" begins in a line (0: at its start), or nothing. Text before it was printed by
/// another rank at the same moment and belongs to the table.
std::optional<std::size_t> nccl_message_start(std::string_view line);

/// Takes what a line says: a message found by nccl_message_start, or a bare "NCCL version 2.x.y+cudaA.B".
void gather_facts(std::string_view message, NcclFacts& facts);

}  // namespace fabricast
