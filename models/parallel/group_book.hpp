// The communicators of a program: shapes, plans of the calls on them, and the demands of every group.
//
// Groups of one shape, called in one slot, share plans (comm_model.hpp); only what the slot's calls choose is laid over links.
// Of groups that are built alike one is worked out and the others are the same with other links:
//   inside a server   GPUs of equal place on an NVSwitch each: link numbers are shifted. Thousands of tensor-parallel groups
//                     cost one
//   across servers    routes that follow from the members' ends (Cluster::ends): where these share links in the same
//                     pattern and are equally wide, the n-th link of one group stands for the n-th of the other
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

    /// Adds a group to the program that `calls` are made on in `slot`; rank r sits on GPU r. Returns its index. The calls of
    /// a slot are the same each time.
    std::uint32_t add(std::string name, std::vector<std::uint32_t> members, Slot slot,
                      const std::vector<CallInfo>& calls);

    /// After all groups: plans of every (call, shape) pair that occurs, and the demands they need.
    void plan(const std::vector<CallInfo>& calls, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& used);

    const CollectivePlan& chosen(std::uint32_t call, std::uint32_t shape) const { return chosen_[call][shape]; }

private:
    /// A group as worked out for the first of its kind.
    struct Twin {
        std::uint32_t first = 0;      ///< index into comm_groups_
        std::int64_t shift = 0;       ///< of link numbers
        std::uint32_t table = kNone;  ///< instead of a shift: index into tables_
        bool unique = true;           ///< no other group may be of its kind
    };
    using Look = std::vector<std::uint64_t>;
    using Table = std::vector<LinkId>;
    static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

    Twin known(const std::vector<GpuId>& gpus, bool exchanging);
    Look look_inside(const std::vector<GpuId>& gpus) const;
    Look look_across(const std::vector<GpuId>& gpus, Table& table);
    std::uint64_t shape_of(std::uint32_t comm_group, Slot slot, const std::vector<CallInfo>& calls);
    std::vector<LinkUse> translated(const std::vector<LinkUse>& uses, const Twin& twin);
    PlannedExchange exchange(const CommGroup& group, const CallInfo& info) const;

    program::Program& p_;
    const Cluster& cluster_;
    const CommModel& comm_;
    std::vector<CommGroup> comm_groups_;
    std::vector<Twin> twins_;                                        ///< by group of the program
    std::vector<GpuId> last_;                                        ///< members of the group added last
    std::map<Look, std::pair<std::uint32_t, std::int64_t>> inside_;  ///< -> comm group, first link
    std::map<Look, std::uint32_t> across_;                           ///< -> comm group
    std::vector<Table> tables_;
    std::vector<std::uint32_t> first_tables_;  ///< by comm group: its own table
    std::vector<std::uint32_t> places_;        ///< scratch, by link: place in a table
    std::map<std::pair<std::uint64_t, Slot>, std::vector<Algorithm>> chosen_by_;  ///< outline, slot -> what calls run
    std::map<std::uint64_t, std::uint32_t> shapes_;
    std::vector<std::uint32_t> examples_;  ///< by shape: a group of the program
    std::vector<std::vector<CollectivePlan>> chosen_;
};

}  // namespace fabricast
