// Collectives as a Program: what runs after what, and what runs at once. For tables, tests and what-ifs of the fabric.
//
//   collective(members, kind, size, lane)   a call of every member; calls of one lane run in order, lanes at once
//   exchange(members, traffic, lane)        any point-to-point traffic between the members
//   hierarchical(members, kind, size)       composed: intra-node, then between equal local ranks, then intra-node again
//   traffic(from, to, bytes, lane)          one flow of somebody else, charged to rank `from`
//   delay(rank, time, lane)                 the rank is busy for so long before what follows on the lane
//   stay_away(rank)                         the rank calls nothing: its groups wait for it (deadlock)
//
// Ranks are the GPUs of the cluster. Ranks with equal calls share a template. Every rank ends in one step end, after all
// of its lanes, so the period of the program is the time of the slowest lane.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "models/collectives/exchange.hpp"
#include "models/program/program.hpp"
#include "topologies/graph/cluster.hpp"

namespace fabricast {

class CollectiveProgram {
public:
    /// Keeps references to both.
    CollectiveProgram(const Cluster& cluster, const CommModel& comm);

    using Members = std::vector<std::uint32_t>;
    /// Returns the plan. Throws std::invalid_argument as CommModel::make_group and plan do.
    CollectivePlan collective(const Members& members, Collective kind, Bytes size, std::uint8_t lane = 0);
    CollectivePlan exchange(const Members& members, const PairTraffic& traffic, std::uint8_t lane = 0);
    /// all_reduce, all_gather or reduce_scatter. Throws std::invalid_argument for other kinds and where nodes hold
    /// different numbers of members.
    void hierarchical(const Members& members, Collective kind, Bytes size, std::uint8_t lane = 0);
    void traffic(std::uint32_t from, std::uint32_t to, Bytes bytes, std::uint8_t lane = 0);
    void delay(std::uint32_t rank, Picoseconds time, std::uint8_t lane = 0);
    void stay_away(std::uint32_t rank) { away_[rank] = true; }

    program::Program build() const;

private:
    struct Step {
        program::OpKind kind;
        std::uint8_t lane;
        std::uint32_t payload;
        std::uint32_t label;
        auto operator<=>(const Step&) const = default;
    };
    std::uint32_t group_of(const Members& members, std::uint8_t lane);
    void call(std::uint32_t group, Collective kind, Bytes size, std::uint32_t variant, const PlannedExchange& planned,
              std::uint8_t lane);
    std::uint32_t label_of(Collective kind);

    const Cluster& cluster_;
    const CommModel& comm_;
    program::Program p_;
    std::vector<std::vector<Step>> steps_;  ///< by rank
    std::vector<bool> away_;
    std::map<std::pair<Members, std::uint8_t>, std::uint32_t> groups_;
    std::vector<CommGroup> comm_groups_;  ///< by group
    std::map<std::tuple<std::uint16_t, std::uint8_t, Bytes, std::uint32_t>, std::uint32_t> calls_;
    std::uint32_t variants_ = 0;
};

}  // namespace fabricast
