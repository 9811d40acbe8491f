// Rank numbers and the lines of ranks that form groups.
#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/parallel/ranks.hpp"

namespace fabricast {
namespace {

Layout layout_of(std::int64_t tp, std::int64_t pp, std::int64_t dp, std::string order = "tp-cp-ep-dp-pp") {
    Layout l;
    l.tp = tp;
    l.pp = pp;
    l.dp = dp;
    l.order = std::move(order);
    return l;
}

std::vector<std::string> all_orders() {
    std::vector<std::string> parts = {"cp", "dp", "ep", "pp", "tp"}, out;
    do {
        out.push_back(parts[0] + '-' + parts[1] + '-' + parts[2] + '-' + parts[3] + '-' + parts[4]);
    } while (std::next_permutation(parts.begin(), parts.end()));
    return out;
}

TEST(Ranks, OrderIsAPermutationOfTheFiveDimensions) {
    for (const std::string& order : all_orders())
        EXPECT_TRUE(valid_order(order)) << order;
    for (const char* order : {"", "tp", "tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-tp", "TP-cp-ep-dp-pp",
                              "tp cp ep dp pp", "tp-cp-ep-dp-xx", "-tp-cp-ep-dp-pp"}) {
        EXPECT_FALSE(valid_order(order)) << order;
        EXPECT_THROW(RankMap(layout_of(1, 1, 1, order)), std::invalid_argument) << order;
    }
}

TEST(Ranks, DefaultOrderKeepsTensorGroupsTogetherAndStagesApart) {
    const RankMap map(layout_of(4, 2, 3));
    EXPECT_EQ(map.world(), 24u);
    EXPECT_EQ(map.line(map.at(5), 't'), (std::vector<std::uint32_t>{4, 5, 6, 7}));
    EXPECT_EQ(map.line(map.at(5), 'd'), (std::vector<std::uint32_t>{1, 5, 9}));
    EXPECT_EQ(map.line(map.at(5), 'p'), (std::vector<std::uint32_t>{5, 17}));
    EXPECT_EQ(map.line(map.at(5), 'c'), (std::vector<std::uint32_t>{5}));
}

TEST(Ranks, OrderSaysWhichDimensionVariesFastest) {
    const RankMap map(layout_of(2, 2, 3, "dp-pp-cp-ep-tp"));
    EXPECT_EQ(map.line(map.at(0), 'd'), (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(map.line(map.at(0), 'p'), (std::vector<std::uint32_t>{0, 3}));
    EXPECT_EQ(map.line(map.at(0), 't'), (std::vector<std::uint32_t>{0, 6}));
}

TEST(Ranks, NumbersAndCoordinatesAreOneToOneInEveryOrder) {
    for (const std::string& order : all_orders()) {
        Layout l = layout_of(2, 3, 5, order);
        l.cp = 2;
        const RankMap map(l);
        std::set<std::uint32_t> seen;
        for (std::int64_t t = 0; t < l.tp; ++t) {
            for (std::int64_t c = 0; c < l.cp; ++c) {
                for (std::int64_t d = 0; d < l.dp; ++d) {
                    for (std::int64_t p = 0; p < l.pp; ++p) {
                        const std::uint32_t rank = map.rank({t, c, d, p});
                        ASSERT_LT(rank, map.world());
                        EXPECT_TRUE(seen.insert(rank).second);
                        const Coordinates at = map.at(rank);
                        EXPECT_TRUE(at.tp == t && at.cp == c && at.dp == d && at.pp == p) << order << ' ' << rank;
                    }
                }
            }
        }
        EXPECT_EQ(seen.size(), map.world());
    }
}

TEST(Ranks, LinesOfADimensionCutTheWorldIntoEqualGroups) {
    for (const std::string& order : all_orders()) {
        const Layout l = layout_of(2, 3, 4, order);
        const RankMap map(l);
        for (const char dimension : {'t', 'c', 'd', 'p'}) {
            std::vector<int> covered(map.world(), 0);
            for (std::uint32_t rank = 0; rank < map.world(); ++rank) {
                const std::vector<std::uint32_t> line = map.line(map.at(rank), dimension);
                EXPECT_EQ(line.size(), dimension == 't' ? 2u : dimension == 'c' ? 1u : dimension == 'd' ? 4u : 3u);
                EXPECT_NE(std::find(line.begin(), line.end(), rank), line.end());
                EXPECT_EQ(map.line(map.at(line.front()), dimension), line);
                if (line.front() == rank) {
                    for (const std::uint32_t member : line)
                        ++covered[member];
                }
            }
            EXPECT_EQ(covered, std::vector<int>(map.world(), 1)) << order << ' ' << dimension;
        }
    }
}

}  // namespace
}  // namespace fabricast
