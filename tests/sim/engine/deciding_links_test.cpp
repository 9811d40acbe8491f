// Dropping links that never decide leaves every rate as it was, to the bit.
#include "models/program/deciding_links.hpp"

#include <random>

#include <gtest/gtest.h>

#include "sim/engine/network.hpp"

namespace fabricast::engine {
namespace {

TEST(Demands, KeepsTheNarrowestLinkOfEachClass) {
    const std::vector<Rate> capacity = {500, 300, 300, 900, 100};
    const std::vector<std::vector<LinkUse>> demands = {
        {{LinkId{0}, 7}, {LinkId{1}, 7}, {LinkId{2}, 7}, {LinkId{3}, 7}},  // 3 is shared, 0..2 are alike
        {{LinkId{3}, 7}, {LinkId{4}, 8}},
    };
    const auto kept = program::deciding_links(demands, capacity);
    EXPECT_EQ(kept[0], (std::vector<LinkUse>{{LinkId{1}, 7}, {LinkId{3}, 7}}));
    EXPECT_EQ(kept[1], demands[1]);
}

TEST(Demands, CoefficientsTellLinksApart) {
    const std::vector<Rate> capacity = {500, 300};
    const std::vector<std::vector<LinkUse>> demands = {{{LinkId{0}, 7}, {LinkId{1}, 6}}};
    EXPECT_EQ(program::deciding_links(demands, capacity), demands);
}

TEST(Demands, RatesStayTheSame) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 engine(seed);
        const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
        const std::uint32_t links = 2 + random() % 12;
        std::vector<Rate> capacity;
        for (std::uint32_t l = 0; l < links; ++l)
            capacity.push_back(rate_from_bytes_per_s(static_cast<double>(1 + random() % 4) * 12.5e9));
        std::vector<std::vector<LinkUse>> demands(1 + random() % 6);
        for (auto& demand : demands) {
            for (std::uint32_t l = 0; l < links; ++l) {
                if (random() % 2 == 0)
                    demand.push_back({LinkId{l}, kCoefficientOne << (random() % 4 == 0 ? 1 : 0)});
            }
            if (demand.empty())
                demand.push_back({LinkId{0}, kCoefficientOne});
        }
        const auto kept = program::deciding_links(demands, capacity);
        Network full(capacity), reduced(capacity);
        std::vector<std::pair<Network::Id, Network::Id>> ids;
        for (int i = 0; i < 20; ++i) {
            const std::size_t d = random() % demands.size();
            const std::uint32_t weight = 1 + random() % 8;
            ASSERT_EQ(full.alone_rate(demands[d], 0), reduced.alone_rate(kept[d], 0));
            const Network::Id a = full.start(demands[d], 1000, weight, 0, 1, 0);
            ids.emplace_back(a, reduced.start(kept[d], 1000, weight, 0, 1, 0));
            full.solve(0);
            reduced.solve(0);
            for (const auto& [x, y] : ids)
                ASSERT_EQ(full.rate(x), reduced.rate(y)) << "seed " << seed;
        }
        ASSERT_EQ(full.validate(), "");
        ASSERT_EQ(reduced.validate(), "");
    }
}

}  // namespace
}  // namespace fabricast::engine
