#include "sim/traces/node_binding.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "topologies/importers/import_error.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 50;  ///< of one operation

}  // namespace

void NodeBinding::refuse(const ChakraNode& node, const std::string& sentence) const {
    throw ImportError(file_, 0, fmt::format("node {} {}: {}", node.id, importers::in_quotes(node.name), sentence));
}

void NodeBinding::decode(std::string_view record, std::size_t number, ChakraNode& node) const {
    try {
        decode_chakra_node(record, node);
    } catch (const std::runtime_error& error) {
        throw ImportError(
            file_, 0,
            fmt::format("record {}, node {} {}: {}", number, node.id, importers::in_quotes(node.name), error.what()));
    }
}

GroupUse NodeBinding::group_of(const ChakraNode& node, const GroupNames& names) const {
    GroupUse use;
    std::string name(node.group);
    if (name.empty() && (node.has & ChakraNode::kGroupNumber) != 0)
        name = std::to_string(node.group_number);
    if (!name.empty() && name != "0") {
        auto at = names.find(name);
        if (at == names.end()) {
            if (const auto number = importers::to_unsigned(name))
                at = names.find(std::to_string(*number));
        }
        if (at == names.end()) {
            refuse(node, names.empty() ? fmt::format("group {} (pg_name): no groups are known, give them with --groups",
                                                     importers::in_quotes(name))
                                       : fmt::format("group {} (pg_name) is not among the {} known ones",
                                                     importers::in_quotes(name), names.size()));
        }
        use.group = at->second;
    }
    if (use.group == 0 && (node.has & ChakraNode::kInvolved) != 0) {
        if (node.involved_count < dimensions_) {
            refuse(node, fmt::format("involved_dim has {} entries, the network has {} dimensions", node.involved_count,
                                     dimensions_));
        }
        const std::uint32_t all = (1u << dimensions_) - 1;
        use.dimensions = (node.involved & all) == all ? kAllDimensions : node.involved & all;
    }
    return use;
}

MessageUse NodeBinding::message_of(const ChakraNode& node) const {
    const bool is_send = node.type == ChakraType::send;
    const std::uint64_t source = (node.has & ChakraNode::kSource) != 0 ? node.source : rank_;
    const std::uint64_t target = (node.has & ChakraNode::kDestination) != 0 ? node.destination : rank_;
    const std::uint64_t peer = is_send ? target : source, self = is_send ? source : target;
    if (self != rank_)
        refuse(node, fmt::format("rank {} {} in the name of rank {}", rank_, is_send ? "sends" : "receives", self));
    if (peer >= ranks_)
        refuse(node, fmt::format("rank {} does not exist, the network has {}", peer, ranks_));
    if (peer == rank_)
        refuse(node, is_send ? "sends to itself (comm_dst)" : "receives from itself (comm_src)");
    if ((node.has & ChakraNode::kCommSize) == 0)
        refuse(node, "a message without comm_size");
    return {static_cast<std::uint32_t>(peer), node.tag, bytes_of(node, node.comm_size, "comm_size"), is_send};
}

Bytes NodeBinding::bytes_of(const ChakraNode& node, std::uint64_t value, const char* what) const {
    if (value > kMostBytes)
        refuse(node, fmt::format("{} of {} bytes: more than 1 PiB", what, value));
    return static_cast<Bytes>(value);
}

bool NodeBinding::is_member(std::uint32_t group) {
    if (group == 0)
        return true;
    if (member_of_.size() <= group)
        member_of_.resize(workload_.groups.size());
    std::vector<bool>& members = member_of_[group];
    if (members.empty()) {
        members.resize(ranks_);
        for (const std::uint32_t member : workload_.groups[group].members)
            members[member] = true;
    }
    return members[rank_];
}

}  // namespace fabricast::traces
