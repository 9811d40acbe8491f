// Reads the traces of a job, PREFIX.0.et to PREFIX.(N-1).et, into a Workload.
//
// One pass a file. A record that is byte for byte the one of an earlier rank at the same place is not decoded again, so a
// rank that differs from it only in groups and peers costs a comparison; a file equal to an earlier one costs nothing
// more. Everything else is decoded, put in order of ids, and compared with the lists that exist.
//
// Refused by file and node: missing files and files too many, damaged records, ids that occur twice with different
// content (equal ones count once), parents that do not exist, circles of dependencies, unknown types, groups and ranks,
// messages to oneself or in the name of another rank.
// Dependencies of both kinds, control and data, are kept.
#pragma once

#include <string>

#include "sim/traces/workload.hpp"

namespace fabricast::traces {

/// `groups`: file of communicator groups, may be empty. `dimensions`: how many the network has. Throws ImportError.
Workload read_traces(const std::string& prefix, const std::string& groups, std::uint32_t ranks,
                     std::uint32_t dimensions);

}  // namespace fabricast::traces
