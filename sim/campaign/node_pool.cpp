#include "sim/campaign/node_pool.hpp"

#include <algorithm>
#include <cassert>

namespace fabricast::campaign {

NodePool::NodePool(std::uint32_t nodes, std::uint32_t spares) : state_(nodes, NodeState::job) {
    state_.resize(nodes + spares, NodeState::spare);
    for (std::uint32_t spare = spares; spare > 0; --spare)
        spares_.push_back(nodes + spare - 1);
}

void NodePool::leave(std::uint32_t node, Nanoseconds back) {
    assert(state_[node] != NodeState::away && "a node that is away cannot leave");
    if (state_[node] == NodeState::job)
        ++missing_;
    else
        spares_.erase(std::find(spares_.begin(), spares_.end(), node));
    state_[node] = NodeState::away;
    away_.push({back, node});
}

bool NodePool::fill() {
    while (missing_ > 0 && !spares_.empty()) {
        state_[spares_.back()] = NodeState::job;
        spares_.pop_back();
        --missing_;
    }
    return missing_ == 0;
}

std::uint32_t NodePool::take_back() {
    assert(!away_.empty() && "nobody is away");
    const std::uint32_t node = away_.top().node;
    away_.pop();
    state_[node] = NodeState::spare;
    spares_.push_back(node);
    return node;
}

}  // namespace fabricast::campaign
