// A decoded trace file as a NodeList: nodes in order of ids, parents as indices, groups and messages as slots.
//
// Equal lists are kept once. Ids are names only: lists that differ in nothing else are equal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/traces/node_binding.hpp"

namespace fabricast::traces {

/// Where a record lies in its file.
struct RecordPlace {
    std::size_t at = 0, length = 0;
    std::string_view in(std::string_view bytes) const { return bytes.substr(at, length); }
};

class ListBuilder {
public:
    explicit ListBuilder(NodeBinding& binding) : binding_(binding) {}

    struct Built {
        RankTrace bound;
        std::vector<std::uint32_t> node_of;  ///< record -> index into the list's nodes
        bool own_groups = false;             ///< metadata of the file names groups
        bool own_rank = false;               ///< a message says which rank the file is of
    };
    /// Enters the file's list into the workload. `names`: groups known to all ranks. Throws ImportError.
    Built build(std::string_view bytes, const std::vector<RecordPlace>& records, const GroupNames& names);

    std::uint64_t equal_nodes() const { return equal_nodes_; }
    std::uint64_t cpu_communication() const { return cpu_communication_; }

private:
    using Ids = std::vector<std::pair<std::uint64_t, std::uint32_t>>;  ///< id, record

    void decode_all(std::string_view bytes, const std::vector<RecordPlace>& records, const GroupNames& names,
                    Built& built);
    void fill(TraceNode& node, const GroupNames& names, Built& built);
    void fill_collective(TraceNode& node, const GroupNames& names, Built& built);
    bool read_own_groups(GroupNames& names);
    void sort_by_id(std::string_view bytes, const std::vector<RecordPlace>& records, Built& built);
    void resolve_parents();
    std::uint32_t name_index(const std::string& name);
    std::uint32_t message_slot(RankTrace& bound, const MessageUse& use);
    std::uint32_t enter();

    NodeBinding& binding_;
    std::unordered_map<std::string, std::uint32_t> name_of_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> lists_of_;  ///< by hash
    std::uint64_t equal_nodes_ = 0, cpu_communication_ = 0;
    // of the file being built
    ChakraNode raw_;
    NodeList list_;
    Ids ids_;
    std::vector<std::uint64_t> parents_;
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> slots_of_;  ///< message slots by hash
};

}  // namespace fabricast::traces
