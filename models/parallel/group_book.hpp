// The communicators of a program: shapes, plans of the calls on them, and the demands of every group.
//
// Groups of one shape share plans (comm_model.hpp). Of groups inside a server that are built alike, on an NVSwitch each, one
// is worked out and the others are the same with other link numbers: thousands of tensor-parallel groups cost one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/parallel/stage_builder.hpp"
#include "models/program/program.hpp"

namespace fabricast {

class GroupBook {
public:
    /// Keeps references to all three.
    GroupBook(program::Program& program, const Cluster& cluster, const CommModel& comm)
        : p_(program), cluster_(cluster), comm_(comm) {}

    /// Adds a group to the program; rank r sits on GPU r. Returns its index.
    std::uint32_t add(std::string name, std::vector<std::uint32_t> members);

    /// After all groups: plans of every (call, shape) pair that occurs, and the demands they need.
    void plan(const std::vector<CallInfo>& calls, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& used);

    const CollectivePlan& chosen(std::uint32_t call, std::uint32_t shape) const { return chosen_[call][shape]; }

private:
    /// A group as worked out for the first of its kind.
    struct Twin {
        std::uint32_t first = 0;  ///< index into comm_groups_
        std::int64_t shift = 0;   ///< of link numbers
        bool unique = true;       ///< no other group may be of its kind
    };
    const CommGroup& known(const std::vector<GpuId>& gpus);
    std::vector<std::uint64_t> look_of(const std::vector<GpuId>& gpus) const;
    PlannedExchange exchange(const CommGroup& group, const CallInfo& info) const;

    program::Program& p_;
    const Cluster& cluster_;
    const CommModel& comm_;
    std::vector<CommGroup> comm_groups_;
    std::vector<Twin> twins_;                                                             ///< by group of the program
    std::map<std::vector<std::uint64_t>, std::pair<std::uint32_t, std::int64_t>> looks_;  ///< -> comm group, first link
    std::map<std::uint64_t, std::uint32_t> shapes_;
    std::vector<std::uint32_t> examples_;  ///< by shape: a group of the program
    std::vector<std::vector<CollectivePlan>> chosen_;
};

}  // namespace fabricast
