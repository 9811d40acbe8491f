// Whom a node talks to: its group, its peer. Holds what is known of the job while its traces are read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/traces/chakra_node.hpp"
#include "sim/traces/group_file.hpp"
#include "sim/traces/workload.hpp"

namespace fabricast::traces {

class NodeBinding {
public:
    NodeBinding(Workload& workload, std::uint32_t ranks, std::uint32_t dimensions)
        : workload_(workload), ranks_(ranks), dimensions_(dimensions) {}

    /// What follows is of this rank and file.
    void begin(std::uint32_t rank, std::string file) {
        rank_ = rank;
        file_ = std::move(file);
    }
    std::uint32_t rank() const { return rank_; }
    std::uint32_t ranks() const { return ranks_; }
    const std::string& file() const { return file_; }
    Workload& workload() { return workload_; }

    /// Throws ImportError in the name of the node.
    [[noreturn]] void refuse(const ChakraNode& node, const std::string& sentence) const;
    /// Decodes record `number` (the first node is 1) into `node`. Throws ImportError.
    void decode(std::string_view record, std::size_t number, ChakraNode& node) const;

    /// The group of a collective. Throws ImportError for an unknown one and for too short an involved_dim.
    GroupUse group_of(const ChakraNode& node, const GroupNames& names) const;
    /// The channel of a send or receive. Throws ImportError where it is not this rank's or leads nowhere.
    MessageUse message_of(const ChakraNode& node) const;
    Bytes bytes_of(const ChakraNode& node, std::uint64_t value, const char* what) const;

    bool is_member(std::uint32_t group);
    bool is_alone(const GroupUse& use) const {
        return workload_.groups[use.group].members.size() < 2 || use.dimensions == 0;
    }

private:
    Workload& workload_;
    std::uint32_t ranks_, dimensions_, rank_ = 0;
    std::string file_;
    std::vector<std::vector<bool>> member_of_;  ///< by group, filled when it is first asked for
};

}  // namespace fabricast::traces
