// The max-min solver against a reference, its incremental form against a fresh one, and closed forms.
#include "sim/engine/network.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

#include <gtest/gtest.h>

namespace fabricast::engine {
namespace {

struct Flow {
    std::vector<LinkUse> demand;
    std::uint32_t weight = 1;
    Rate cap = 0;
    Bytes work = 1'000'000'000;
};

Network::Id start(Network& network, const Flow& flow, Picoseconds now = 0) {
    return network.start(flow.demand, flow.work, flow.weight, flow.cap, network.alone_rate(flow.demand, flow.cap), now);
}

// Progressive filling in real numbers: raise x/w of all unfrozen flows until a link is full or a cap is met.
std::vector<long double> reference_rates(const std::vector<Rate>& capacity, const std::vector<Flow>& flows) {
    constexpr long double kTie = 1e-13L;
    std::vector<long double> room(capacity.begin(), capacity.end()), rate(flows.size(), 0);
    std::vector<bool> frozen(flows.size(), false);
    for (;;) {
        std::vector<long double> load(capacity.size(), 0);
        for (std::size_t i = 0; i < flows.size(); ++i) {
            for (const LinkUse& use : flows[i].demand) {
                if (!frozen[i])
                    load[index(use.link)] +=
                        static_cast<long double>(use.coefficient) / kCoefficientOne * flows[i].weight;
            }
        }
        long double level = HUGE_VALL;
        for (std::size_t l = 0; l < capacity.size(); ++l) {
            if (load[l] > 0)
                level = std::min(level, room[l] / load[l]);
        }
        for (std::size_t i = 0; i < flows.size(); ++i) {
            if (!frozen[i] && flows[i].cap > 0)
                level = std::min(level, static_cast<long double>(flows[i].cap) / flows[i].weight);
        }
        if (level == HUGE_VALL)
            return rate;
        std::vector<bool> freeze(flows.size(), false);
        for (std::size_t i = 0; i < flows.size(); ++i) {
            if (frozen[i])
                continue;
            const long double limit = level * (1 + kTie);
            freeze[i] = flows[i].cap > 0 && static_cast<long double>(flows[i].cap) / flows[i].weight <= limit;
            for (const LinkUse& use : flows[i].demand) {
                if (room[index(use.link)] / load[index(use.link)] <= limit)
                    freeze[i] = true;
            }
        }
        for (std::size_t i = 0; i < flows.size(); ++i) {
            if (!freeze[i])
                continue;
            frozen[i] = true;
            rate[i] = level * flows[i].weight;
            for (const LinkUse& use : flows[i].demand) {
                room[index(use.link)] -= static_cast<long double>(use.coefficient) / kCoefficientOne * rate[i];
            }
        }
    }
}

class RandomGraph {
public:
    explicit RandomGraph(std::uint32_t seed, bool round_numbers) : random_(seed), round_(round_numbers) {
        const int links = number(1, 12);
        for (int l = 0; l < links; ++l)
            capacity.push_back(draw_capacity());
    }
    Rate draw_capacity() {
        // round numbers make links tie exactly, as in symmetric clusters
        return round_ ? number(1, 4) * rate_from_bytes_per_s(12.5e9)
                      : rate_from_bytes_per_s(1e9) + number(0, 1 << 30) * Rate{50000};
    }
    Flow draw_flow() {
        Flow flow;
        const int hops = number(1, std::min<int>(5, static_cast<int>(capacity.size())));
        std::vector<std::uint32_t> links(capacity.size());
        for (std::uint32_t l = 0; l < links.size(); ++l)
            links[l] = l;
        std::shuffle(links.begin(), links.end(), random_);
        for (int h = 0; h < hops; ++h) {
            const auto coefficient = round_ ? kCoefficientOne * static_cast<std::uint32_t>(number(1, 2))
                                            : static_cast<std::uint32_t>(number(6554, 131072));  // 0.1 .. 2
            flow.demand.push_back({LinkId{links[static_cast<std::size_t>(h)]}, coefficient});
        }
        flow.weight = static_cast<std::uint32_t>(round_ ? 1 << number(0, 2) : number(1, 32));
        if (number(0, 3) == 0)
            flow.cap = round_ ? number(1, 3) * rate_from_bytes_per_s(6.25e9) : number(1, 1 << 30) * Rate{20000};
        flow.work = number(1, 1 << 30);
        return flow;
    }
    int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

    std::vector<Rate> capacity;

private:
    std::mt19937 random_;
    bool round_;
};

TEST(NetworkSolver, EqualsTheReferenceOnRandomGraphs) {
    for (std::uint32_t seed = 0; seed < 1000; ++seed) {
        RandomGraph graph(seed, seed % 4 == 0);
        std::vector<Flow> flows(static_cast<std::size_t>(graph.number(1, 30)));
        for (Flow& flow : flows)
            flow = graph.draw_flow();
        Network network(graph.capacity);
        std::vector<Network::Id> ids;
        for (const Flow& flow : flows)
            ids.push_back(start(network, flow));
        network.solve(0);
        ASSERT_EQ(network.validate(), "") << "seed " << seed;
        const std::vector<long double> expected = reference_rates(graph.capacity, flows);
        std::vector<long double> load(graph.capacity.size(), 0);
        for (std::size_t i = 0; i < flows.size(); ++i) {
            const auto got = static_cast<long double>(network.rate(ids[i]));
            // relative to the rate, and at least the 1/1024 byte/s the integers resolve
            ASSERT_NEAR(static_cast<double>(got), static_cast<double>(expected[i]),
                        1e-9 * static_cast<double>(expected[i]) + 2)
                << "seed " << seed << " flow " << i;
            for (const LinkUse& use : flows[i].demand)
                load[index(use.link)] += static_cast<long double>(use.coefficient) * got;
        }
        for (std::size_t l = 0; l < load.size(); ++l) {
            ASSERT_LE(load[l], static_cast<long double>(graph.capacity[l]) * kCoefficientOne)
                << "seed " << seed << " link " << l;
        }
    }
}

// Whether or not what starts on empty links is solved at once.
TEST(NetworkSolver, IncrementalEqualsFreshToTheBit) {
    int alone = 0;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
        RandomGraph graph(seed + 5000, seed % 2 == 0);
        Network network(graph.capacity);
        std::map<Network::Id, Flow> live;
        for (int round = 0; round < 40; ++round) {
            const int changes = graph.number(1, 3);
            for (int c = 0; c < changes; ++c) {
                const int kind = graph.number(0, 9);
                if (kind < 5 || live.empty()) {
                    Flow flow = graph.draw_flow();
                    const Network::Id id = start(network, flow, round);  // moving a vector keeps its storage
                    if (seed % 3 != 0)
                        alone += network.solve_alone(id, round);
                    live[id] = std::move(flow);
                } else if (kind < 8) {
                    const auto victim = std::next(live.begin(), graph.number(0, static_cast<int>(live.size()) - 1));
                    network.remove(victim->first);
                    live.erase(victim);
                } else {
                    const auto l =
                        static_cast<std::size_t>(graph.number(0, static_cast<int>(graph.capacity.size()) - 1));
                    graph.capacity[l] = graph.draw_capacity();
                    network.set_capacity(LinkId{static_cast<std::uint32_t>(l)}, graph.capacity[l]);
                }
            }
            network.solve(round);
            ASSERT_EQ(network.validate(), "") << "seed " << seed << " round " << round;
            Network fresh(graph.capacity);
            std::vector<std::pair<Network::Id, Network::Id>> pairs;
            for (auto flow = live.rbegin(); flow != live.rend(); ++flow)
                pairs.emplace_back(flow->first, start(fresh, flow->second));
            fresh.solve(0);
            for (const auto& [id, other] : pairs) {
                ASSERT_EQ(network.rate(id), fresh.rate(other))
                    << "seed " << seed << " round " << round << " activity " << id;
            }
        }
    }
    EXPECT_GT(alone, 500);
}

TEST(NetworkSolver, OrderOfStartDoesNotMatter) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        RandomGraph graph(seed + 9000, seed % 2 == 0);
        std::vector<Flow> flows(20);
        for (Flow& flow : flows)
            flow = graph.draw_flow();
        std::vector<std::size_t> order(flows.size());
        for (std::size_t i = 0; i < order.size(); ++i)
            order[i] = i;
        std::vector<Rate> first;
        for (int trial = 0; trial < 4; ++trial) {
            Network network(graph.capacity);
            std::vector<Network::Id> ids(flows.size());
            for (const std::size_t i : order) {
                ids[i] = start(network, flows[i]);
                if (trial == 3)
                    network.solve(0);  // one by one
            }
            network.solve(0);
            std::vector<Rate> rates;
            for (const Network::Id id : ids)
                rates.push_back(network.rate(id));
            if (trial == 0)
                first = rates;
            ASSERT_EQ(rates, first) << "seed " << seed << " trial " << trial;
            std::mt19937 shuffle(seed * 7 + static_cast<std::uint32_t>(trial));
            std::shuffle(order.begin(), order.end(), shuffle);
        }
    }
}

TEST(NetworkSolver, TwoFlowsShareALinkUntilOneEnds) {
    const std::vector<Rate> capacity = {rate_from_bytes_per_s(100e9)};
    Network network(capacity);
    const Flow small = {{{LinkId{0}, kCoefficientOne}}, 1, 0, 1'000'000};
    const Flow large = {{{LinkId{0}, kCoefficientOne}}, 1, 0, 3'000'000};
    const Network::Id a = start(network, small);
    const Network::Id b = start(network, large);
    network.solve(0);
    EXPECT_EQ(network.rate(a), rate_from_bytes_per_s(50e9));
    EXPECT_EQ(network.finish(a), 20'000'000);  // 1 MB at 50 GB/s
    network.remove(a);
    network.solve(network.finish(a));
    EXPECT_EQ(network.rate(b), rate_from_bytes_per_s(100e9));
    EXPECT_EQ(network.finish(b), 40'000'000);  // 1 MB shared, 2 MB alone
    EXPECT_TRUE(network.was_slowed(b));
}

TEST(NetworkSolver, FinishTimesAreRoundedUp) {
    const std::vector<Rate> capacity = {rate_from_bytes_per_s(3e12)};
    Network network(capacity);
    const Flow flow = {{{LinkId{0}, kCoefficientOne}}, 1, 0, 1};  // a third of a picosecond
    const Network::Id id = start(network, flow, 100);
    network.solve(100);
    EXPECT_EQ(network.finish(id), 101);
    EXPECT_EQ(Network::duration(3, capacity[0]), 1);
    EXPECT_EQ(Network::duration(4, capacity[0]), 2);
}

TEST(NetworkSolver, EqualActivitiesGetEqualRates) {
    const std::vector<Rate> capacity = {rate_from_bytes_per_s(47e9), rate_from_bytes_per_s(29e9)};
    const Flow both = {{{LinkId{0}, kCoefficientOne}, {LinkId{1}, 70000}}, 3, 0, 1'000'000};
    const Flow first = {{{LinkId{0}, 66000}}, 5, 0, 1'000'000};
    for (const int copies : {1, 2, 7, 64}) {
        Network network(capacity);
        std::vector<Network::Id> a, b;
        for (int i = 0; i < copies; ++i) {
            a.push_back(start(network, both));
            b.push_back(start(network, first));
        }
        network.solve(0);
        for (int i = 1; i < copies; ++i) {
            EXPECT_EQ(network.rate(a[static_cast<std::size_t>(i)]), network.rate(a[0]));
            EXPECT_EQ(network.rate(b[static_cast<std::size_t>(i)]), network.rate(b[0]));
        }
        EXPECT_EQ(network.validate(), "");
    }
}

TEST(NetworkSolver, WeightedFlowAloneCountsAsUncontended) {
    const std::vector<Rate> capacity = {rate_from_bytes_per_s(49'999'999'999.0)};
    for (std::uint32_t weight = 1; weight <= 32; ++weight) {
        Network network(capacity);
        const Flow flow = {{{LinkId{0}, 69905}}, weight, 0, 1'000'000};
        const Network::Id id = start(network, flow);
        network.solve(0);
        EXPECT_FALSE(network.was_slowed(id)) << "weight " << weight;
    }
}

TEST(NetworkSolver, MovesExactlyTheBytesAsked) {
    // Rates change every microsecond; the finish must be where the integral of the rate meets the work.
    const std::vector<Rate> capacity = {rate_from_bytes_per_s(50e9)};
    Network network(capacity);
    const Flow flow = {{{LinkId{0}, kCoefficientOne}}, 1, 0, 1'000'000};  // 20 us alone
    const Network::Id id = start(network, flow);
    network.solve(0);
    __int128 moved = 0;
    Picoseconds now = 0;
    Rate capacity_now = capacity[0];
    for (int change = 1; change <= 10; ++change) {
        moved += static_cast<__int128>(capacity_now) * 1'000'000;
        now += 1'000'000;
        capacity_now = rate_from_bytes_per_s(10e9 + 1e9 * change);
        network.set_capacity(LinkId{0}, capacity_now);
        network.solve(now);
    }
    const __int128 work = static_cast<__int128>(1'000'000) * kRateUnitsPerByte * kPicosecondsPerSecond;
    const Picoseconds rest = network.finish(id) - now;
    EXPECT_GE(moved + static_cast<__int128>(capacity_now) * rest, work);
    EXPECT_LT(moved + static_cast<__int128>(capacity_now) * (rest - 1), work);
}

}  // namespace
}  // namespace fabricast::engine
