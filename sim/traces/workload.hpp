// What the ranks of a job do, as a trace tells it: one graph of nodes a rank, equal graphs kept once.
//
// A node is ready when all its parents are done. Nodes of a list are in ascending order of their ids, which is also the
// order in which ready ones are taken. Groups and messages are slots of the list; each rank binds them to its own groups
// and peers, so ranks that differ only in whom they talk to share a list.
//
// Collective sizes follow ASTRA-sim: the whole buffer of a rank, except for all-gather, where it is the shard of a rank
// (ring message = bytes, result members x bytes). Reduce, gather, scatter and broadcast: the whole buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast::traces {

inline constexpr std::uint32_t kNone = 0xFFFFFFFFu;
inline constexpr std::uint32_t kAllDimensions = 0xFFFFFFFFu;

/// skipped: takes no time, parents pass through it.
enum class NodeKind : std::uint8_t { skipped, compute, host, memory, collective, send, receive };
enum class CollectiveKind : std::uint8_t {
    all_reduce,
    reduce,
    all_gather,
    gather,
    scatter,
    broadcast,
    all_to_all,
    reduce_scatter,
    barrier
};
std::string_view collective_name(CollectiveKind kind);

struct TraceNode {
    std::uint64_t id = 0;
    NodeKind kind = NodeKind::skipped;
    CollectiveKind collective = CollectiveKind::all_reduce;
    std::uint32_t name = 0;          ///< index into Workload::names
    std::uint32_t first_parent = 0;  ///< into NodeList::parents
    std::uint32_t parent_count = 0;
    std::uint32_t slot = kNone;  ///< collective: group slot; send, receive: message slot
    Picoseconds duration = 0;    ///< as recorded; 0: not recorded
    double flops = 0;
    Bytes bytes = 0;  ///< moved, or touched by a computation
};

struct NodeList {
    std::vector<TraceNode> nodes;
    std::vector<std::uint32_t> parents;  ///< indices into nodes
    std::uint32_t group_slots = 0, message_slots = 0;
};

/// Group 0 is all ranks.
struct TraceGroup {
    std::string name;
    std::vector<std::uint32_t> members;  ///< in ring order
};

/// A group as a collective uses it: the dimensions of the network it runs over, where the group is all ranks.
struct GroupUse {
    std::uint32_t group = 0;
    std::uint32_t dimensions = kAllDimensions;  ///< bit mask
    bool operator==(const GroupUse&) const = default;
};

/// Messages between two ranks that meet in order: same tag, same size.
struct MessageUse {
    std::uint32_t peer = 0;
    std::uint64_t tag = 0;
    Bytes bytes = 0;
    bool is_send = false;
    bool operator==(const MessageUse&) const = default;
};

struct RankTrace {
    std::uint32_t list = 0;
    std::vector<GroupUse> groups;      ///< by group slot
    std::vector<MessageUse> messages;  ///< by message slot
};

struct Workload {
    std::vector<NodeList> lists;
    std::vector<RankTrace> ranks;
    std::vector<TraceGroup> groups;
    std::vector<std::string> names;
    std::string source;                             ///< "t.*.et"
    std::vector<std::string> notes;                 ///< what was noticed, for the report
    std::uint64_t nodes_read = 0;                   ///< of all ranks
    std::string file_of(std::uint32_t rank) const;  ///< for messages: "t.3.et"
    std::string file_stem, file_ending;             ///< around the rank; empty stem: one file for all
};

/// "node 5 'attn'".
std::string describe(const Workload& workload, const TraceNode& node);

}  // namespace fabricast::traces
