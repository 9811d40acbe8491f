// Pending events, ordered by (time, class, id): plain data, deterministic, no allocation once grown.
//
// std::priority_queue is as good as hand-made heaps up to about 1e5 pending events; what replaces it one day
// replaces it here. Stale events (an activity whose rate changed) stay queued and are dropped when popped:
// `version` tells.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast::engine {

enum class EventClass : std::uint8_t { compute_end, latency_end, activity_end, message_latency_end, delay_end };

struct Event {
    Picoseconds time;
    std::uint32_t id;        ///< rank, group, activity, channel or rank * streams + stream, by class
    std::uint32_t version;
    EventClass kind;

    /// Order of two pending events; true when this one comes later.
    bool later_than(const Event& other) const {
        if (time != other.time) return time > other.time;
        if (kind != other.kind) return kind > other.kind;
        return id > other.id;
    }
};

class EventQueue {
public:
    void reserve(std::size_t n) {
        std::vector<Event> storage;
        storage.reserve(n);
        heap_ = Heap(Later{}, std::move(storage));
    }
    bool empty() const { return heap_.empty(); }
    std::size_t size() const { return heap_.size(); }
    const Event& top() const { return heap_.top(); }
    void push(const Event& event) { heap_.push(event); }
    void pop() { heap_.pop(); }

private:
    struct Later {
        bool operator()(const Event& a, const Event& b) const { return a.later_than(b); }
    };
    using Heap = std::priority_queue<Event, std::vector<Event>, Later>;
    Heap heap_;
};

}  // namespace fabricast::engine
