// Pending events, ordered by (time, class, id): plain data, deterministic, no allocation once grown.
//
// Ranks advance in lock-step, so many events share an instant. The heap (arity 4) holds the first event of an instant
// and a bucket with the others, sorted when its turn comes; a small table of recent instants finds the bucket of a push. An event of
// an instant with n others costs a push to a vector and its part of a sort instead of a walk through a deep heap. Stale
// events (an activity whose rate changed) stay queued and are dropped when popped: `version` tells.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast::engine {

enum class EventClass : std::uint8_t { compute_end, latency_end, activity_end, message_latency_end, delay_end, change };

/// The key holds class, id and version from high bits to low: events of an instant are ordered by one integer. id < 2^29.
struct Event {
    Picoseconds time;
    std::uint64_t key;

    Event(Picoseconds at, EventClass kind, std::uint32_t id, std::uint32_t version = 0)
        : time(at), key(static_cast<std::uint64_t>(kind) << 61 | static_cast<std::uint64_t>(id) << 32 | version) {
        assert(id < (1u << 29));
    }
    Event(Picoseconds at, std::uint64_t packed) : time(at), key(packed) {}
    EventClass kind() const { return static_cast<EventClass>(key >> 61); }
    /// rank, group, activity, channel or rank * streams + stream, by class
    std::uint32_t id() const { return static_cast<std::uint32_t>(key >> 32) & ((1u << 29) - 1); }
    std::uint32_t version() const { return static_cast<std::uint32_t>(key); }

    /// True when this one comes after `other`.
    bool later_than(const Event& other) const { return order() > other.order(); }

private:
    /// One wide number: compared without a branch, which a heap could not predict.
    __int128 order() const { return static_cast<__int128>(time) << 64 | key; }
};

class EventQueue {
public:
    void reserve(std::size_t instants) { heap_.reserve(instants); }
    bool empty() const { return size_ == 0; }
    std::size_t size() const { return size_; }

    void push(const Event& event) {
        ++size_;
        if (at_ < now_.size()) {
            if (event.time == now_time_) {  // joins the instant that is being drained, in its place
                now_.insert(std::upper_bound(now_.begin() + static_cast<std::ptrdiff_t>(at_), now_.end(), event.key),
                            event.key);
                return;
            }
            if (event.time < now_time_)
                put_back();
        }
        Recent& recent = recent_[recent_index(event.time)];
        if (recent.time != event.time) {  // the first of its instant goes into the heap itself
            recent = {event.time, kNoBucket};
            push_instant({event.time, event.key});
            return;
        }
        if (recent.bucket == kNoBucket) {
            recent.bucket = new_bucket();
            push_instant({event.time, kBucketMark | recent.bucket});
        }
        buckets_[recent.bucket].push_back(event.key);
    }

    /// Precondition: not empty.
    Event top() {
        if (at_ == now_.size())
            load();
        return Event(now_time_, now_[at_]);
    }
    void pop() {
        if (at_ == now_.size())
            load();
        ++at_;
        --size_;
    }

private:
    struct Instant {
        Picoseconds time;
        std::uint64_t content;  ///< key of an event, or kBucketMark | bucket
    };
    struct Recent {
        Picoseconds time = -1;  ///< -1: none; times are never negative
        std::uint32_t bucket = 0;
    };
    static constexpr std::uint32_t kNoBucket = 0xFFFFFFFFu;
    static constexpr std::uint64_t kBucketMark = 7ull << 61;  ///< no event class has these bits
    static constexpr std::size_t kArity = 4;
    static constexpr std::size_t kRecent = 256;

    static std::size_t recent_index(Picoseconds time) {
        return static_cast<std::size_t>(static_cast<std::uint64_t>(time) * 0x9e3779b97f4a7c15ull >> 56);
    }
    std::uint32_t new_bucket() {
        if (free_.empty()) {
            buckets_.emplace_back();
            return static_cast<std::uint32_t>(buckets_.size() - 1);
        }
        const std::uint32_t bucket = free_.back();
        free_.pop_back();
        return bucket;
    }

    // The next instant becomes the one that is drained: all its buckets, in order.
    void load() {
        now_.clear();
        at_ = 0;
        now_time_ = heap_.front().time;
        Recent& recent = recent_[recent_index(now_time_)];
        if (recent.time == now_time_)
            recent.time = -1;
        while (!heap_.empty() && heap_.front().time == now_time_) {
            const std::uint64_t content = heap_.front().content;
            pop_instant();
            if (content < kBucketMark) {
                now_.push_back(content);
                continue;
            }
            std::vector<std::uint64_t>& bucket = buckets_[static_cast<std::uint32_t>(content)];
            now_.insert(now_.end(), bucket.begin(), bucket.end());
            bucket.clear();
            free_.push_back(static_cast<std::uint32_t>(content));
        }
        if (now_.size() > 1 && !std::is_sorted(now_.begin(), now_.end()))
            std::sort(now_.begin(), now_.end());
    }
    // An earlier instant came in before this one was finished.
    void put_back() {
        const std::uint32_t bucket = new_bucket();
        buckets_[bucket].assign(now_.begin() + static_cast<std::ptrdiff_t>(at_), now_.end());
        now_.clear();
        at_ = 0;
        push_instant({now_time_, kBucketMark | bucket});
    }

    void push_instant(Instant instant) {
        heap_.push_back(instant);
        std::size_t at = heap_.size() - 1;
        while (at > 0) {
            const std::size_t parent = (at - 1) / kArity;
            if (heap_[parent].time <= instant.time)
                break;
            heap_[at] = heap_[parent];
            at = parent;
        }
        heap_[at] = instant;
    }
    void pop_instant() {
        const Instant last = heap_.back();
        heap_.pop_back();
        if (heap_.empty())
            return;
        std::size_t at = 0;
        for (;;) {
            const std::size_t child = at * kArity + 1;
            if (child >= heap_.size())
                break;
            std::size_t first = child;
            if (child + kArity <= heap_.size()) {
                const std::size_t a = heap_[child].time <= heap_[child + 1].time ? child : child + 1;
                const std::size_t b = heap_[child + 2].time <= heap_[child + 3].time ? child + 2 : child + 3;
                first = heap_[a].time <= heap_[b].time ? a : b;
            } else {
                for (std::size_t c = child + 1; c < heap_.size(); ++c) {
                    if (heap_[c].time < heap_[first].time)
                        first = c;
                }
            }
            if (last.time <= heap_[first].time)
                break;
            heap_[at] = heap_[first];
            at = first;
        }
        heap_[at] = last;
    }

    std::vector<Instant> heap_;                        ///< pending instants; one may occur in several entries
    std::vector<std::vector<std::uint64_t>> buckets_;  ///< keys of the events of an instant, unordered
    std::vector<std::uint32_t> free_;
    std::array<Recent, kRecent> recent_;  ///< instants that were pushed to lately
    Picoseconds now_time_ = 0;
    std::vector<std::uint64_t> now_;  ///< the instant being drained, in order, from at_ on
    std::size_t at_ = 0, size_ = 0;
};

}  // namespace fabricast::engine
