// Every sample file reads exactly as the index says; impostors are refused.
#include <set>

#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"

namespace fabricast::importers::test {
namespace {

std::string classes_text(const Machine& machine) {
    std::string text;
    for (const auto& [name, count] : link_classes(machine)) {
        text += (text.empty() ? "" : " ") + name + ":" + std::to_string(count);
    }
    return text;
}

void check(const Sample& sample) {
    SCOPED_TRACE(sample.file);
    const std::string path = data_path(sample.file);
    if (sample.verdict == "refused") {
        EXPECT_THROW(import_file(path), ImportError);
        return;
    }
    Imported imported;
    ASSERT_NO_THROW(imported = import_file(path));
    ASSERT_TRUE(std::holds_alternative<Machine>(imported));
    const Machine& machine = std::get<Machine>(imported);
    EXPECT_EQ(std::to_string(machine.gpus.size()), sample.gpus);
    EXPECT_EQ(std::to_string(listed_nics(machine)), sample.nics);
    EXPECT_EQ(std::to_string(bare_nics(machine)), sample.bare_nics.empty() ? "0" : sample.bare_nics);
    if (!sample.link_classes.empty()) {
        EXPECT_EQ(classes_text(machine), sample.link_classes);
    }
    std::set<std::string> rates;
    for (const Nic& nic : machine.nics) {
        if (nic.bits_per_s > 0) {
            rates.insert(std::to_string(static_cast<long>(nic.bits_per_s / 1e6)));
        }
    }
    EXPECT_EQ(rates,
              sample.net_megabits.empty() ? std::set<std::string>() : std::set<std::string>{sample.net_megabits});
    EXPECT_EQ(machine.nvlinks_per_gpu ? std::to_string(*machine.nvlinks_per_gpu) : "", sample.nvlinks_per_gpu);
    if (sample.numa_groups.empty()) {
        EXPECT_FALSE(machine.numa_known);
    } else {
        EXPECT_EQ(std::to_string(machine.numa.size()), sample.numa_groups);
    }
    ASSERT_EQ(machine.paths.size(), machine.ends() * machine.ends());
    for (std::size_t a = 0; a < machine.ends(); ++a) {
        for (std::size_t b = 0; b < machine.ends(); ++b) {
            EXPECT_EQ(machine.paths[a * machine.ends() + b], machine.paths[b * machine.ends() + a]);
        }
    }
}

TEST(Samples, ReadAsTheIndexSays) {
    const std::vector<Sample> all = samples();
    ASSERT_EQ(all.size(), 33u);
    for (const Sample& sample : all) {
        check(sample);
    }
}

TEST(Samples, ImpostorsAreRefusedByName) {
    const auto said = [](const std::string& file) { return refusal(slurp(data_path(file)), file); };
    EXPECT_HAS(said("neg_p2p-read-matrix_ok.txt"),
               "neg_p2p-read-matrix_ok.txt:2: a `nvidia-smi topo -p2p` status matrix");
    EXPECT_HAS(said("4xa100_azure-ncv4_GRAPH.xml"), "4xa100_azure-ncv4_GRAPH.xml:1: a NCCL graph dump (<graphs>");
}

TEST(Samples, KindsOfMachines) {
    const auto kind = [](const std::string& file) { return sample_machine(file).kind; };
    EXPECT_EQ(kind("8xh100-sxm_nv18.txt"), MachineKind::nvswitch);
    EXPECT_EQ(kind("8xa800-sxm_nv8_4nic.txt"), MachineKind::nvswitch);
    EXPECT_EQ(kind("8xv100-sxm2_1mlx5.txt"), MachineKind::hybrid_cube_mesh);
    EXPECT_EQ(kind("8xv100_dgx1-2ib_topo-n8-dump.xml"), MachineKind::hybrid_cube_mesh);
    EXPECT_EQ(kind("4xa100-sxm_nv4_4mlx5_pxb.txt"), MachineKind::nvlink_mesh);
    EXPECT_EQ(kind("8xmi200_rome-4nics_rccl-topo.xml"), MachineKind::nvlink_mesh);
    EXPECT_EQ(kind("4xa100-pcie_nvlink-pairs_4numa.txt"), MachineKind::nvlink_pairs);
    EXPECT_EQ(kind("4xv100-sxm2_ac922-power9_nv3_4mlx5.txt"), MachineKind::nvlink_pairs);
    EXPECT_EQ(kind("8xtitanxp_topo-n8-dump.xml"), MachineKind::pcie_only);
    EXPECT_EQ(kind("2xv100_4roce.txt"), MachineKind::pcie_only);
    EXPECT_EQ(kind("8xh100_azure-ndv5_topo.xml"), MachineKind::not_told);
    EXPECT_EQ(sample_machine("8xh100_oci-bm-gpu-h100_topo.xml").nvswitch, NvSwitch::told);
    EXPECT_EQ(sample_machine("8xh100-sxm_nv18.txt").nvswitch, NvSwitch::inferred);
}

TEST(Samples, OddThingsAreTold) {
    const auto notes = [](const std::string& file) { return all_notes(sample_machine(file).notes); };
    EXPECT_HAS(notes("8xtitanxp_topo-n8-dump.xml"), "suspicious: port rate 1 Gb/s of eth0");
    EXPECT_HAS(notes("8xv100_dgx1-2ib_topo-n8-dump.xml"),
               "port rate 600 Gb/s of mlx5_0 and mlx5_1: no port has this rate");
    EXPECT_HAS(notes("8xv100_dgx1-2ib_topo-n8-dump.xml"), "mlx5_0 tells 600 Gb/s, its card has 200 Gb/s at most");
    EXPECT_HAS(notes("8xh100_oci-bm-gpu-h100_topo.xml"), "port rate 180 Gb/s");
    EXPECT_HAS(notes("8xh100_oci-bm-gpu-h100_topo.xml"), "link upwards is slower than one below: 0000:08:00.0");
    EXPECT_HAS(notes("8xh100_oci-bm-gpu-h100_topo.xml"),
               "16 second-level PCIe switches count as one with their parent");
    EXPECT_HAS(notes("8xa100_aws-p4d-24xl_topo.xml"), "PCIe link slower than the card can do: all GPUs (8 of 16 GT/s)");
    EXPECT_HAS(notes("8xa10g_aws-g5-48xl_topo.xml"), "9 PCI devices without class");
    EXPECT_HAS(notes("4xa100_dell-xe8545_nic-affinity.xml"), "bus id 0000:ba:00.0 is also on line");
    EXPECT_HAS(notes("1xv100_dgx1-1ib_topo-n1-dump.xml"), "targets that are not in the file: 0000:1b:00.0");
    EXPECT_HAS(
        notes("8xa800-sxm_nv8_4nic.txt"),
        "suspicious: GPUs without a near NIC: GPU0 (NODE), GPU2 (NODE), GPU4 (NODE), GPU5 (NODE) and GPU6 (NODE)");
    EXPECT_HAS(notes("8xh200-sxm_gcp-a3ultra_8roce_ansi-escapes.txt"),
               "GPU0 and GPU1 are equally near to rocep145s0 and rocep146s0");
    EXPECT_HAS(notes("8xh200-sxm_6nic_empty-cpu-affinity.txt"), "no CPU affinity for GPU0, GPU1, GPU2 and GPU3");
    EXPECT_HAS(notes("8xh200-sxm_6nic_empty-cpu-affinity.txt"), "within one NUMA node by their path but on two");
    EXPECT_HAS(notes("8xv100-sxm2_dgx1-cube-mesh_4mlx5_ucxpy.txt"), "GPU0 and GPU1 share mlx5_0");
    EXPECT_HAS(notes("4xrtx6000ada_asus-esc8000a_node-sys_4nic.txt"), "no GPU has a NIC under its own PCIe switch");
    EXPECT_HAS(notes("8xh100-sxm_nv18_matrix-only.txt"), "no NUMA node told for any GPU");
    EXPECT_HAS(sample_machine("8xa100_aws-p4d-24xl_topo.xml").looks_like, "A100 SXM4 40GB: its boards have 12 NVLinks");
    EXPECT_EQ(notes("8xh100-sxm_nv18.txt"), "");
}

TEST(Samples, NicsOfGpus) {
    const Machine a3 = sample_machine("8xh200-sxm_gcp-a3ultra_8roce_ansi-escapes.txt");
    const auto own = nics_of_gpus(a3);
    for (std::uint32_t gpu = 0; gpu < 8; ++gpu) {
        EXPECT_EQ(own[gpu], std::vector<std::uint32_t>{gpu});
    }
    const auto dual = nics_of_gpus(sample_machine("8xh100_oci-bm-gpu-h100_topo.xml"));
    EXPECT_EQ(dual[3], (std::vector<std::uint32_t>{6, 7}));
    const auto shared = nics_of_gpus(sample_machine("8xv100-sxm2_1mlx5.txt"));
    EXPECT_EQ(shared[7], std::vector<std::uint32_t>{0});
}

TEST(Samples, PartsOfMachines) {
    const Machine oci = sample_machine("8xh100_oci-bm-gpu-h100_topo.xml");
    EXPECT_EQ(oci.gpus[0].model, "H100 SXM5 80GB");
    EXPECT_EQ(oci.gpus[0].sm, 90);
    EXPECT_EQ(oci.numa[0].cpu, "Intel Sapphire Rapids");
    EXPECT_EQ(oci.gpu_nic_path(0, 0).type, PathType::pix) << "two-level Broadcom switch";
    EXPECT_EQ(oci.gpu_nic_path(0, 2).type, PathType::phb);
    EXPECT_EQ(oci.gpu_nic_path(0, 15).type, PathType::sys);
    EXPECT_EQ(oci.gpu_path(0, 7), (Path{PathType::nvl, 18}));
    EXPECT_EQ(oci.nics[1].plane, 1);
    EXPECT_EQ(oci.nics[1].ports_on_card, 2u);
    EXPECT_NEAR(pcie_link_bytes_per_s(oci.pci[static_cast<std::size_t>(oci.gpus[0].pci)]), 63.0e9, 0.1e9);
    const Machine dgx = sample_machine("8xa100_dgxa100_nic-affinity.xml");
    EXPECT_EQ(dgx.gpu_path(0, 1).type, PathType::pxb);
    EXPECT_EQ(dgx.gpu_nic_path(0, 0).type, PathType::pix);
    EXPECT_EQ(dgx.numa[0].cpu, "AMD Rome");
    const Machine mi = sample_machine("8xmi200_rome-4nics_rccl-topo.xml");
    EXPECT_EQ(mi.link_name, "xGMI");
    EXPECT_EQ(mi.gpus[0].gfx, 908);
    EXPECT_EQ(mi.gpus[0].sm, 0);
    const Machine power = sample_machine("4xv100-sxm2_ac922-power9_nv3_4mlx5.txt");
    EXPECT_EQ(power.numa[1].id, 8);
    EXPECT_EQ(power.nics[2].numa, 8);
}

}  // namespace
}  // namespace fabricast::importers::test
