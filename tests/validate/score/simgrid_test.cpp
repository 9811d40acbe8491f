// Max-min rates against SimGrid on random fabrics: every fabric is a set of links and flows over random subsets of them,
// all started at once. The rate of a flow is what it moved in the first second. Built where SimGrid is installed.
//
// SimGrid runs its CM02 model without latency, TCP window and cross traffic, which is plain max-min. Its rates are
// doubles, ours integers of 1/1024 byte/s: equal to 1e-6.
#ifdef FABRICAST_SIMGRID

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <simgrid/s4u.hpp>

#include "sim/engine/network.hpp"

namespace fabricast {
namespace {

namespace sg = simgrid::s4u;

constexpr int kFabrics = 50;
constexpr double kBytes = 1e15;  // nothing ends within the second

struct Fabric {
    std::vector<double> capacity;         ///< bytes/s
    std::vector<std::vector<int>> flows;  ///< links of each
    std::vector<double> rate;             ///< SimGrid's
};

std::vector<Fabric> random_fabrics() {
    std::mt19937 random(20);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
    std::vector<Fabric> fabrics(kFabrics);
    for (Fabric& fabric : fabrics) {
        const int links = 2 + below(30), flows = 1 + below(40);
        for (int l = 0; l < links; ++l) {
            fabric.capacity.push_back(1e9 * (1 + below(400)));
        }
        for (int f = 0; f < flows; ++f) {
            std::vector<int> route(static_cast<std::size_t>(links));
            for (int l = 0; l < links; ++l) {
                route[static_cast<std::size_t>(l)] = l;
            }
            std::shuffle(route.begin(), route.end(), random);
            route.resize(static_cast<std::size_t>(1 + below(std::min(links, 6))));
            fabric.flows.push_back(route);
        }
        fabric.rate.resize(fabric.flows.size());
    }
    return fabrics;
}

/// One platform holds all fabrics: they share nothing.
void run_simgrid(std::vector<Fabric>& fabrics) {
    int argc = 1;
    std::string name = "fabricast";
    char* argv[] = {name.data(), nullptr};
    sg::Engine engine(&argc, argv);
    engine.set_config("network/model:CM02");
    engine.set_config("network/TCP-gamma:0");
    engine.set_config("network/crosstraffic:no");
    engine.set_config("network/bandwidth-factor:1");
    engine.set_config("network/latency-factor:1");
    engine.set_config("network/weight-S:0");
    engine.set_config("maxmin/precision:1e-9");
    auto* zone = sg::create_full_zone("all");
    std::vector<std::vector<std::pair<sg::Host*, sg::Host*>>> ends(fabrics.size());
    for (std::size_t i = 0; i < fabrics.size(); ++i) {
        std::vector<sg::Link*> links;
        for (std::size_t l = 0; l < fabrics[i].capacity.size(); ++l) {
            links.push_back(zone->create_link("l" + std::to_string(i) + "_" + std::to_string(l), fabrics[i].capacity[l])
                                ->set_latency(0)
                                ->seal());
        }
        for (std::size_t f = 0; f < fabrics[i].flows.size(); ++f) {
            const std::string id = std::to_string(i) + "_" + std::to_string(f);
            auto* from = zone->create_host("a" + id, 1e9)->seal();
            auto* to = zone->create_host("b" + id, 1e9)->seal();
            std::vector<sg::LinkInRoute> route;
            for (const int link : fabrics[i].flows[f]) {
                route.emplace_back(links[static_cast<std::size_t>(link)]);
            }
            zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, route, false);
            ends[i].emplace_back(from, to);
        }
    }
    zone->seal();
    sg::Actor::create("watch", ends[0][0].first, [&] {
        std::vector<std::vector<sg::CommPtr>> comms(fabrics.size());
        for (std::size_t i = 0; i < fabrics.size(); ++i) {
            for (const auto& [from, to] : ends[i]) {
                comms[i].push_back(sg::Comm::sendto_async(from, to, static_cast<std::uint64_t>(kBytes)));
            }
        }
        sg::this_actor::sleep_for(1);
        for (std::size_t i = 0; i < fabrics.size(); ++i) {
            for (std::size_t f = 0; f < comms[i].size(); ++f) {
                fabrics[i].rate[f] = kBytes - comms[i][f]->get_remaining();
                comms[i][f]->cancel();
            }
        }
    });
    engine.run();
}

TEST(SimGrid, MaxMinRatesAreEqual) {
    std::vector<Fabric> fabrics = random_fabrics();
    run_simgrid(fabrics);
    double worst = 0;
    for (const Fabric& fabric : fabrics) {
        std::vector<Rate> capacity;
        for (const double c : fabric.capacity) {
            capacity.push_back(rate_from_bytes_per_s(c));
        }
        engine::Network network(capacity);
        std::vector<std::vector<LinkUse>> demands;
        for (const std::vector<int>& flow : fabric.flows) {
            std::vector<LinkUse> demand;
            for (const int link : flow) {
                demand.push_back({LinkId{static_cast<std::uint32_t>(link)}, kCoefficientOne});
            }
            demands.push_back(std::move(demand));
        }
        std::vector<engine::Network::Id> ids;
        for (const auto& demand : demands) {
            ids.push_back(network.start(demand, static_cast<Bytes>(kBytes), 1, 0, network.alone_rate(demand, 0), 0));
        }
        network.solve(0);
        ASSERT_EQ(network.validate(), "");
        for (std::size_t f = 0; f < ids.size(); ++f) {
            const double ours = static_cast<double>(network.rate(ids[f])) / 1024;
            worst = std::max(worst, std::abs(ours / fabric.rate[f] - 1));
        }
    }
    EXPECT_LT(worst, 1e-6);
}

}  // namespace
}  // namespace fabricast

#else

#include <gtest/gtest.h>

TEST(SimGrid, MaxMinRatesAreEqual) { GTEST_SKIP() << "SimGrid (libsimgrid-dev) is not installed"; }

#endif
