// Storage behind the fabric: which links a write and a read share with the job.
#include "topologies/builders/storage.hpp"

#include <gtest/gtest.h>

#include "cluster_probe.hpp"
#include "topologies/builders/rail_fat_tree.hpp"

namespace fabricast {
namespace {

Cluster pods(double oversubscription) {
    const NodeShape node = {.gpus = 8,
                            .nics = 8,
                            .nvlink_bytes_per_s = 370e9,
                            .nvlink_latency_s = 0.6e-6,
                            .pcie_bytes_per_s = 50e9,
                            .pcie_latency_s = 0.4e-6,
                            .nic_bytes_per_s = 46e9,
                            .nic_latency_s = 1e-6};
    return build_rail_fat_tree(
        node, {.nodes = 8, .nodes_per_pod = 4, .oversubscription = oversubscription, .switch_latency_s = 0.3e-6});
}

TEST(Storage, IsTwoLinksBehindThoseOfTheCluster) {
    const Cluster cluster = pods(1);
    const Storage storage = attach_storage(cluster, 50e9, 80e9);
    ASSERT_EQ(storage.capacity.size(), cluster.links().size() + 2);
    EXPECT_EQ(index(storage.intake), cluster.links().size());
    EXPECT_NEAR(bytes_per_s(storage.capacity[index(storage.intake)]), 50e9, 1);
    EXPECT_NEAR(bytes_per_s(storage.capacity[index(storage.outlet)]), 80e9, 1);
    EXPECT_TRUE(std::equal(cluster.links().capacity.begin(), cluster.links().capacity.end(), storage.capacity.begin()));
}

// A write leaves by the adapter and the up link of its leaf that a message to another pod takes; a read comes back the same way.
TEST(Storage, SharesAdapterAndLevelsWithMessagesToOtherPods) {
    const Cluster cluster = pods(2);
    const Storage storage = attach_storage(cluster, 50e9, 50e9);
    const std::uint32_t gpu = 3 * 8 + 5, far = 7 * 8 + 5;
    std::vector<LinkId> write, read;
    append_write(cluster, storage, GpuId{gpu}, write);
    append_read(cluster, storage, GpuId{gpu}, read);
    ASSERT_EQ(write.back(), storage.intake);
    ASSERT_EQ(read.front(), storage.outlet);
    write.pop_back();
    read.erase(read.begin());
    const std::vector<LinkId> out = test::route(cluster, gpu, far), in = test::route(cluster, far, gpu);
    EXPECT_EQ(write.size(), 2u);
    EXPECT_NE(std::search(out.begin(), out.end(), write.begin(), write.end()), out.end());
    EXPECT_NE(std::search(in.begin(), in.end(), read.begin(), read.end()), in.end());
    EXPECT_EQ(cluster.links().name[index(write.front())], "node 3 nic 5 up");
}

}  // namespace
}  // namespace fabricast
