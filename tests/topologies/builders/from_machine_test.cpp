// Servers from their own files: every sample machine freezes with the paths that its file tells.
#include "topologies/builders/from_machine.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/builders/cluster_probe.hpp"
#include "tests/topologies/importers/samples.hpp"

namespace fabricast::test {
namespace {

using importers::Machine;
using importers::test::sample_machine;

MachineRates rates() {
    MachineRates given;
    given.rates = {.nvlink_bytes_per_s = 20e9,
                   .nvlink_latency_s = 0.5e-6,
                   .pcie_bytes_per_s = 24e9,
                   .pcie_latency_s = 1e-6,
                   .uplink_bytes_per_s = 24e9,
                   .socket_bytes_per_s = 16e9,
                   .nic_bytes_per_s = 23e9,
                   .nic_latency_s = 0.6e-6};
    given.pcie_efficiency = 0.85;
    given.nic_efficiency = 0.92;
    return given;
}

Cluster cluster_of(const Machine& machine, std::uint32_t nodes) {
    return build_from_machine(machine, rates(), FatTree{.nodes = nodes, .nodes_per_leaf = nodes});
}

/// The file's word for a pair, given that a GPU in between may join the two and that the file may not know.
bool agrees(const Machine& machine, std::size_t a, std::size_t b, PathType built) {
    const PathType told = path_type_of(machine.gpu_path(a, b).type);
    if (built == told) {
        return true;
    }
    if (built != PathType::nvb || told == PathType::nvl) {
        return false;
    }
    for (std::size_t via = 0; via < machine.gpus.size(); ++via) {
        if (machine.gpu_path(a, via).type == importers::PathType::nvl &&
            machine.gpu_path(via, b).type == importers::PathType::nvl) {
            return true;
        }
    }
    return false;
}

TEST(FromMachine, EverySampleKeepsItsPaths) {
    int built = 0;
    for (const auto& sample : importers::test::samples()) {
        if (sample.verdict != "read" || sample.gpus == "0") {
            continue;
        }
        SCOPED_TRACE(sample.file);
        const Machine machine = sample_machine(sample.file);
        const Cluster cluster = cluster_of(machine, 1);
        ++built;
        ASSERT_EQ(cluster.gpu_count(), machine.gpus.size());
        ASSERT_EQ(cluster.nics_per_node(), machine.nics.size());
        for (std::uint32_t a = 0; a < machine.gpus.size(); ++a) {
            for (std::uint32_t b = 0; b < machine.gpus.size(); ++b) {
                const PathType type = cluster.path_type(GpuId{a}, GpuId{b});
                EXPECT_TRUE(agrees(machine, a, b, type)) << a << " to " << b << ": " << path_type_name(type);
                EXPECT_EQ(route(cluster, a, b).empty(), a == b);
                EXPECT_TRUE(is_symmetric(cluster, a, b));
            }
            for (std::uint32_t n = 0; n < machine.nics.size(); ++n) {
                EXPECT_EQ(path_type_name(cluster.path_type(GpuId{a}, NicId{n})),
                          path_type_name(path_type_of(machine.gpu_nic_path(a, n).type)))
                    << a << " to nic " << n;
            }
            if (!machine.nics.empty()) {
                EXPECT_EQ(cluster.nics_of(GpuId{a}).size(), importers::nics_of_gpus(machine)[a].size());
            }
        }
    }
    EXPECT_GE(built, 29);
}

TEST(FromMachine, SwitchAndLanes) {
    const Cluster h100 = cluster_of(sample_machine("8xh100-sxm_nv18.txt"), 1);
    EXPECT_TRUE(h100.has_nvswitch());
    EXPECT_DOUBLE_EQ(link_rate(h100, "node 0 gpu 0 nvlink up"), 360e9);
    const Cluster v100 = cluster_of(sample_machine("8xv100-sxm2_dgx1-cube-mesh_4mlx5_ucxpy.txt"), 2);
    EXPECT_FALSE(v100.has_nvswitch());
    EXPECT_EQ(path_counts(v100), (std::map<PathType, int>{{PathType::nvl, 16}, {PathType::nvb, 12}}));
    EXPECT_EQ(v100.nic_of(GpuId{8 + 7}), NicId{4 + 3});
    // The preset is this machine.
    const Cluster preset = build_fat_tree(hybrid_cube_mesh_server(4, rates().rates), {.nodes = 2, .nodes_per_leaf = 2});
    for (std::uint32_t a = 0; a < 8; ++a) {
        for (std::uint32_t b = 0; b < 8; ++b) {
            EXPECT_EQ(route_names(preset, a, b), route_names(v100, a, b));
        }
        for (std::uint32_t n = 0; n < 4; ++n) {
            EXPECT_EQ(preset.path_type(GpuId{a}, NicId{n}), v100.path_type(GpuId{a}, NicId{n}));
        }
    }
}

TEST(FromMachine, ManyNicsAndSeveralNodes) {
    const Machine machine = sample_machine("8xh100_oci-bm-gpu-h100_topo.xml");
    const Cluster cluster = cluster_of(machine, 3);
    EXPECT_EQ(cluster.nics_per_node(), 16u);
    EXPECT_EQ(cluster.nics_of(GpuId{8}).size(), 2u);
    EXPECT_EQ(route(cluster, 0, 23).front(), cluster.pcie_up(GpuId{0}));
    EXPECT_TRUE(is_symmetric(cluster, 0, 23));
}

TEST(FromMachine, StaticFilesTakeNvlinkFromTheCaller) {
    const Machine machine = sample_machine("8xa100_azure-ndv4_topo.xml");
    EXPECT_FALSE(cluster_of(machine, 1).has_nvlink());
    MachineRates given = rates();
    given.nvswitch_links = 12;
    const Cluster cluster = build_from_machine(machine, given, RailFatTree{.nodes = 4, .nodes_per_pod = 2});
    EXPECT_TRUE(cluster.has_nvswitch());
    EXPECT_DOUBLE_EQ(link_rate(cluster, "node 3 gpu 7 nvlink up"), 240e9);
}

TEST(FromMachine, RatesMustComeFromSomewhere) {
    const Machine machine = sample_machine("8xv100-sxm2_1mlx5.txt");
    MachineRates given = rates();
    given.rates.pcie_bytes_per_s = 0;
    EXPECT_EQ(refusal([&] { server_from_machine(machine, given); }),
              "PCIe of GPU0: its rate is not in the file and not given");
    given = rates();
    given.rates.nic_bytes_per_s = 0;
    EXPECT_EQ(refusal([&] { server_from_machine(machine, given); }),
              "NIC mlx5_0: its rate is not in the file and not given");
    EXPECT_NE(refusal([&] {
                  server_from_machine(sample_machine("8xa10g_aws-g5-48xl_topo.xml"), rates());
              }).find("no GPU in it"),
              std::string::npos);
}

}  // namespace
}  // namespace fabricast::test
