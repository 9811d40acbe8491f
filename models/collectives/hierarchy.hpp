// Hierarchical collectives, composed of flat ones: inside the nodes at NVLink speed, between nodes only what must go.
//
// n ranks on N nodes, g each; payload S as nccl-tests counts it:
//   all-reduce       reduce-scatter of S in the node, all-reduce of S / g over equal local ranks (g groups at once, one a
//                    rail), all-gather of S in the node
//   all-gather       all-gather of S / g over equal local ranks, then of S in the node
//   reduce-scatter   the same mirrored
// Bytes per NIC: 2 (S / g) (N - 1) / N for all-reduce, as of the flat ring; latency g + N steps instead of g N.
// Source: Mikami et al. 2018 (2D torus), BlueConnect 2019, the frameworks' hierarchical variants.
#pragma once

#include <vector>

#include "models/collectives/comm_model.hpp"

namespace fabricast {

/// Groups that run at once; phases run one after the other.
struct Phase {
    Collective kind = Collective::all_reduce;
    Bytes size = 0;
    std::vector<std::vector<GpuId>> groups;
};

/// Phases with groups of one rank are left out. Throws std::invalid_argument for another kind and where nodes hold
/// different numbers of members.
std::vector<Phase> hierarchical_phases(const GroupOrder& order, Collective kind, Bytes size);

}  // namespace fabricast
