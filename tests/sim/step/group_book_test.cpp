// Groups that stand for others: every group gets the links that it would get by itself.
#include "models/parallel/group_book.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "topologies/builders/degradation.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

Cluster build(std::uint32_t nodes, const std::vector<std::string>& narrow = {}) {
    RailFatTree fabric;
    fabric.nodes = nodes;
    fabric.nodes_per_pod = 4;
    fabric.oversubscription = 2;
    Cluster cluster = build_rail_fat_tree(NodeShape{.gpus = 8,
                                                    .nics = 8,
                                                    .nvlink_bytes_per_s = 370e9,
                                                    .nvlink_latency_s = 6e-7,
                                                    .pcie_bytes_per_s = 51e9,
                                                    .pcie_latency_s = 4e-7,
                                                    .nic_bytes_per_s = 46e9,
                                                    .nic_latency_s = 1e-6},
                                          fabric);
    std::vector<Degradation> degraded;
    for (const std::string& what : narrow) {
        degraded.emplace_back();
        degraded.back().what = what;
        degraded.back().factor = 0.5;
    }
    fabricast::apply(cluster, degraded);
    return cluster;
}

CommFacts facts() {
    CommFacts f;
    f.nvls = true;
    f.nvlink_nccl_bytes_per_s = 370.8e9;
    f.nic_line_bytes_per_s = 50e9;
    return f;
}

/// Tensor groups on the servers, data groups across them in two slots, one group of all.
void expect_own_links(const Cluster& cluster) {
    const CommModel comm(cluster, facts(), {});
    program::Program p;
    GroupBook book(p, cluster, comm);
    const std::vector<CallInfo> calls = {{"tp", Collective::all_reduce, Slot::tp, 64 << 20},
                                         {"tp gather", Collective::all_gather, Slot::tp, 1 << 20},
                                         {"gather", Collective::all_gather, Slot::parameter, 4 << 20},
                                         {"gather", Collective::all_gather, Slot::parameter, Bytes{4} << 30},
                                         {"reduce", Collective::reduce_scatter, Slot::gradient, Bytes{4} << 30},
                                         {"norm", Collective::all_reduce, Slot::norm, 4},
                                         {"exchange", Collective::all_to_all, Slot::expert, 64 << 20}};
    for (std::uint32_t n = 0; n < cluster.node_count(); ++n) {
        std::vector<std::uint32_t> members;
        for (std::uint32_t g = 0; g < 8; ++g)
            members.push_back(8 * n + g);
        book.add("tp", members, Slot::tp, calls);
    }
    const std::uint32_t half = cluster.node_count() / 2;
    for (std::uint32_t g = 0; g < 8; ++g) {
        for (std::uint32_t part = 0; part < 2; ++part) {
            std::vector<std::uint32_t> members;
            for (std::uint32_t n = part * half; n < (part + 1) * half; ++n)
                members.push_back(8 * n + g);
            book.add("parameters", members, Slot::parameter, calls);
            book.add("gradients", members, Slot::gradient, calls);
            book.add("experts", members, Slot::expert, calls);
        }
    }
    for (std::uint32_t pair = 0; pair < 4; ++pair) {  // two GPUs of each of two servers
        book.add("pairs", {16 * pair, 16 * pair + 1, 16 * pair + 8, 16 * pair + 9}, Slot::parameter, calls);
    }
    std::vector<std::uint32_t> all;
    for (std::uint32_t r = 0; r < cluster.gpu_count(); ++r)
        all.push_back(r);
    book.add("all", all, Slot::norm, calls);

    const Slot slots[] = {Slot::tp, Slot::parameter, Slot::gradient, Slot::norm, Slot::expert};
    const auto slot_of = [&](const program::Group& group) {
        return group.name == "tp"          ? slots[0]
               : group.name == "gradients" ? slots[2]
               : group.name == "all"       ? slots[3]
               : group.name == "experts"   ? slots[4]
                                           : slots[1];
    };
    std::vector<std::pair<std::uint32_t, std::uint32_t>> used;
    for (const program::Group& group : p.groups) {
        for (std::uint32_t c = 0; c < calls.size(); ++c) {
            if (calls[c].slot == slot_of(group))
                used.emplace_back(c, group.shape);
        }
    }
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    book.plan(calls, used);

    for (const program::Group& group : p.groups) {
        std::vector<GpuId> gpus;
        for (const std::uint32_t rank : group.members)
            gpus.push_back(GpuId{rank});
        const CommGroup own = comm.make_group(gpus);
        for (std::uint32_t c = 0; c < calls.size(); ++c) {
            if (calls[c].slot != slot_of(group))
                continue;
            const CollectivePlan plan = comm.plan(own, calls[c].kind, calls[c].bytes);
            const program::Plan& kept = p.plans[c][group.shape];
            EXPECT_EQ(kept.latency, plan.latency);
            ASSERT_EQ(kept.activities.size(), plan.activities.size());
            for (std::size_t i = 0; i < plan.activities.size(); ++i) {
                EXPECT_EQ(kept.activities[i].work, plan.activities[i].work);
                EXPECT_EQ(kept.activities[i].cap, plan.activities[i].cap);
                EXPECT_EQ(p.demands[group.demands[kept.activities[i].demand_class]],
                          comm.demand(own, calls[c].kind, plan, plan.activities[i].demand))
                    << group.name << " of " << group.members.front() << ", " << calls[c].what;
            }
        }
    }
}

TEST(GroupBook, EveryGroupHasItsOwnLinks) {
    expect_own_links(build(16));
    expect_own_links(build(10));  // halves cut pods, and the last pod is small
}

TEST(GroupBook, NarrowLinksTellGroupsApart) {
    expect_own_links(build(16, {"nic 3.2", "gpu 9.1 nvlink", "pod 1 rail 5 trunk up"}));
}

}  // namespace
}  // namespace fabricast
