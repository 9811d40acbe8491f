// Communicator groups: {"1": [0,1,2,3], "2": [4,5,6,7]} - a group's id as a decimal number, its ranks in ring order.
//
// "0" and no name mean all ranks. PyTorch traces carry their groups themselves, in the inputs of metadata nodes: a JSON
// list [{"pg_name":"3","ranks":[..]}] wrapped in two more characters at each end; no ranks mean all. Ranks may use one
// name for different groups, so a rank has its own names.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// name -> index into Workload::groups.
using GroupNames = std::map<std::string, std::uint32_t, std::less<>>;

/// The index of a new group; all ranks are group 0. Throws std::runtime_error for a rank that does not
/// exist or is there twice, and for a group without ranks.
std::uint32_t enter_group(Workload& workload, std::string name, std::vector<std::uint32_t> members,
                          std::uint32_t ranks);

/// Reads a file of groups. Throws ImportError with the group.
GroupNames read_group_file(const std::string& path, Workload& workload, std::uint32_t ranks);

/// Enters the groups a metadata node tells into `names`. False when the text tells none. Throws std::runtime_error as
/// enter_group does.
bool read_process_groups(std::string_view inputs, Workload& workload, std::uint32_t ranks, GroupNames& names);

}  // namespace fabricast::traces
