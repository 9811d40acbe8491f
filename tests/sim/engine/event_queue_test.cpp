// The heap pops in the one order that events have.
#include "sim/engine/event_queue.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace fabricast::engine {
namespace {

TEST(EventQueue, OrdersByTimeThenClassThenId) {
    EventQueue queue;
    queue.push({10, EventClass::activity_end, 0});
    queue.push({10, EventClass::compute_end, 7});
    queue.push({10, EventClass::compute_end, 3, 99});
    queue.push({9, EventClass::delay_end, (1u << 29) - 1, 0xFFFFFFFFu});
    const Event first = queue.top();
    EXPECT_EQ(first.time, 9);
    EXPECT_EQ(first.kind(), EventClass::delay_end);
    EXPECT_EQ(first.id(), (1u << 29) - 1);
    EXPECT_EQ(first.version(), 0xFFFFFFFFu);
    queue.pop();
    EXPECT_EQ(queue.top().id(), 3u);
    EXPECT_EQ(queue.top().version(), 99u);
    queue.pop();
    EXPECT_EQ(queue.top().id(), 7u);
    queue.pop();
    EXPECT_EQ(queue.top().kind(), EventClass::activity_end);
    queue.pop();
    EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, RandomPushesAndPopsEqualASortedList) {
    std::mt19937 engine(1);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    EventQueue queue;
    std::vector<Event> list;
    for (int turn = 0; turn < 20'000; ++turn) {
        if (list.empty() || random() % 5 < 3) {
            const Event event(random() % 64, static_cast<EventClass>(random() % 5), random() % 16, random() % 4);
            queue.push(event);
            list.push_back(event);
        } else {
            const auto first = std::min_element(list.begin(), list.end(),
                                                [](const Event& a, const Event& b) { return b.later_than(a); });
            ASSERT_EQ(queue.top().time, first->time);
            ASSERT_EQ(queue.top().key, first->key);
            queue.pop();
            list.erase(first);
        }
        ASSERT_EQ(queue.size(), list.size());
    }
}

}  // namespace
}  // namespace fabricast::engine
