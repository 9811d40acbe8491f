// `nvidia-smi topo -m` in the shapes that pasting gives it.
#include "topologies/importers/nvidia_smi_topo.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"

namespace fabricast::importers::test {
namespace {

Machine read(const std::string& text) { return read_nvidia_smi_topo(SourceText::from_text("topo.txt", text)); }

const std::string kPlain =
    "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
    "GPU0\t X \tNV4\tPIX\t0-23\t0\t\tN/A\n"
    "GPU1\tNV4\t X \tSYS\t24-47\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_bond_0\n";

void expect_plain(const Machine& machine) {
    ASSERT_EQ(machine.gpus.size(), 2u);
    ASSERT_EQ(machine.nics.size(), 1u);
    EXPECT_EQ(machine.gpu_path(0, 1), (Path{PathType::nvl, 4}));
    EXPECT_EQ(machine.gpu_nic_path(0, 0).type, PathType::pix);
    EXPECT_EQ(machine.gpu_nic_path(1, 0).type, PathType::sys);
    EXPECT_EQ(machine.gpus[1].numa, 1);
    EXPECT_EQ(machine.gpus[0].cpus, "0-23");
    EXPECT_EQ(machine.nics[0].numa, 0);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
    return text;
}

TEST(NvidiaSmiTopo, PlainAndDisguised) {
    const Machine machine = read(kPlain);
    expect_plain(machine);
    EXPECT_EQ(machine.nics[0].name, "mlx5_bond_0");
    expect_plain(read(replaced(kPlain, "\n", "\r\n")));
    expect_plain(read("\xEF\xBB\xBF" + kPlain));
    expect_plain(read(replaced(kPlain, "\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1")));
    expect_plain(read(replaced(kPlain, "\tGPU0\tGPU1", "\t[4mGPU0\tGPU1")));
    expect_plain(read(replaced(kPlain, "\t", "    ")));
    expect_plain(read(replaced(kPlain, "\t", "\xC2\xA0\xC2\xA0")));
    expect_plain(
        read("2024-05-01 12:00 starting up\n+ nvidia-smi topo -m\nGPU0 (UUID: x)\n" + kPlain + "NCCL INFO bye\n"));
    expect_plain(read(replaced("\n" + kPlain, "\n", "\n[1,0]<stdout>: ")));
    expect_plain(read(replaced("\n" + kPlain, "\n", "\n0: ")));
}

TEST(NvidiaSmiTopo, GluedCellsAndNames) {
    const Machine machine = read(
        "GPU0GPU1NIC0NIC1CPU AffinityNUMA Affinity\n"
        "GPU0 X SYSPIXNODE0-45,92-1370\n"
        "GPU1SYS X NODEPIX46-91,138-1831\n"
        "NIC0 PIXNODE X NODE\n"
        "NIC1 NODEPIXNODE X\n");
    EXPECT_EQ(machine.gpu_path(0, 1).type, PathType::sys);
    EXPECT_EQ(machine.nic_path(0, 1).type, PathType::node);
    EXPECT_EQ(machine.gpus[0].cpus, "0-45,92-137");
    EXPECT_EQ(machine.gpus[0].numa, 0);
    EXPECT_EQ(machine.gpus[1].numa, 1);
    EXPECT_HAS(all_notes(machine.notes), "repaired: GPU0: CPU and NUMA affinity are glued");
}

TEST(NvidiaSmiTopo, WrappedRows) {
    const Machine machine = read(
        "        GPU0    GPU1    GPU2    CPU Affinity\n"
        "GPU0     X      NV12\n NV12    0-3\n"
        "GPU1    NV12     X      NV12    0-3\n"
        "GPU2    NV12    NV12     X      0-3\n");
    EXPECT_EQ(machine.nvswitch, NvSwitch::inferred);
    EXPECT_HAS(all_notes(machine.notes), "row GPU0 goes over 2 lines");
}

TEST(NvidiaSmiTopo, NumaListsAndCutAffinity) {
    const Machine machine = read(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n"
        "GPU0\t X \tNV18\t0-71\t0,2-17\t\t2\n"
        "GPU1\tNV18\t X \t-31,64-95\t1,18-33\t\t18\n");
    EXPECT_EQ(machine.gpus[1].numa, 1);
    EXPECT_HAS(all_notes(machine.notes), "GPU1: CPU affinity '-31,64-95' is cut");
    EXPECT_HAS(all_notes(machine.notes), "a slice of an NVSwitch board prints the same");
}

TEST(NvidiaSmiTopo, AsymmetryTakesTheWorse) {
    const Machine machine = read(replaced(kPlain, "GPU1\tNV4", "GPU1\tNV2"));
    EXPECT_EQ(machine.gpu_path(0, 1), (Path{PathType::nvl, 2}));
    EXPECT_HAS(all_notes(machine.notes), "not symmetric at GPU0-GPU1");
}

TEST(NvidiaSmiTopo, LostLinksOnASwitchedBoard) {
    std::string text = slurp(data_path("8xh100-sxm_nv18_matrix-only.txt"));
    const Machine all_lost = read(replaced(text, "NV18", "NV17"));
    EXPECT_HAS(all_notes(all_lost.notes), "so 1 of 18 are missing on every one");
    std::string one;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        if (line.rfind("GPU3", 0) == 0) {
            line = replaced(line, "NV18", "NV16");
        } else if (line.rfind("GPU", 0) == 0) {
            const std::size_t cell = 8 * 4;  // the fourth column
            line.replace(cell, 4, "NV16");
        }
        one += line + "\n";
    }
    const Machine machine = read(one);
    EXPECT_EQ(machine.kind, MachineKind::nvswitch);
    EXPECT_EQ(machine.gpus[3].nvlinks, 16u);
    EXPECT_EQ(machine.gpus[4].nvlinks, 18u);
    EXPECT_HAS(all_notes(machine.notes), "fewer NVLink links than the 18 of the others: GPU3 (16)");
}

TEST(NvidiaSmiTopo, SeveralMatrices) {
    const Machine twice = read(kPlain + "\n" + kPlain);
    expect_plain(twice);
    EXPECT_HAS(all_notes(twice.notes), "the same matrix is there 2 times");
    EXPECT_HAS(refusal(kPlain + "\n" + replaced(kPlain, "NV4", "NV2")),
               "x:15: a second matrix that differs from the one of line 1");
    const std::string p2p = slurp(data_path("neg_p2p-read-matrix_ok.txt"));
    expect_plain(read(p2p + "\n" + kPlain));
}

TEST(NvidiaSmiTopo, Refusals) {
    EXPECT_HAS(refusal(replaced(kPlain, "GPU1\tNV4\t X \tSYS", "GPU1\tNV4\t X \tFOO")),
               "x:3: row GPU1, column NIC0: 'FOO' is no cell");
    EXPECT_HAS(refusal(replaced(kPlain, "GPU1\tNV4\t X ", "GPU1\t X \tNV4")), "x:3: row GPU1 has its X in column GPU0");
    EXPECT_HAS(refusal(kPlain.substr(0, kPlain.find("NIC0\tPIX"))), "row NIC0 is missing: 2 of 3 rows are there");
    EXPECT_HAS(refusal("\tGPU0\tGPU1\tGPU1\nGPU0\tX\tPIX\tPIX\n"), "column GPU1 is there twice");
    EXPECT_HAS(refusal("\tGPU0\tGPU2\nGPU0\tX\tPIX\nGPU2\tPIX\tX\n"), "column GPU2 where GPU1 is expected");
    EXPECT_HAS(refusal("\tGPU0\tGPU1\n\n"), "without rows");
}

}  // namespace
}  // namespace fabricast::importers::test
