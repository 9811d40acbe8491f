// Nodes of a campaign: in the job, spare, or away for repair.
//
// A node that leaves is replaced by the spare that has waited least (a stack: warm ones first); repaired nodes become spares.
// Repairs have as many hands as there are broken nodes.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "sim/campaign/campaign_spec.hpp"

namespace fabricast::campaign {

enum class NodeState : std::uint8_t { job, spare, away };

class NodePool {
public:
    NodePool(std::uint32_t nodes, std::uint32_t spares);

    NodeState state(std::uint32_t node) const { return state_[node]; }
    std::uint32_t missing() const { return missing_; }  ///< nodes the job has lost and not replaced
    std::uint32_t free() const { return static_cast<std::uint32_t>(spares_.size()); }

    /// A node of the job or a spare goes to repair until `back`.
    void leave(std::uint32_t node, Nanoseconds back);
    /// Fills missing places with spares; true: none is missing any more.
    bool fill();
    Nanoseconds next_return() const { return away_.empty() ? kNever : away_.top().back; }
    /// The node that returned at next_return() is a spare again.
    std::uint32_t take_back();

private:
    struct Away {
        Nanoseconds back;
        std::uint32_t node;
        bool operator>(const Away& o) const { return back > o.back || (back == o.back && node > o.node); }
    };
    std::vector<NodeState> state_;
    std::vector<std::uint32_t> spares_;
    std::priority_queue<Away, std::vector<Away>, std::greater<>> away_;
    std::uint32_t missing_ = 0;
};

}  // namespace fabricast::campaign
