// NCCL topology XML: cut, glued, noisy and odd documents.
#include "topologies/importers/nccl_xml.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"

namespace fabricast::importers::test {
namespace {

Machine read(const std::string& text) { return read_nccl_xml(SourceText::from_text("topo.xml", text)); }

std::string machine_xml(const std::string& inside) {
    return "<system version=\"1\">\n<cpu numaid=\"0\" affinity=\"ff\" arch=\"x86_64\" vendor=\"GenuineIntel\" "
           "familyid=\"6\" "
           "modelid=\"143\">\n" +
           inside + "</cpu>\n</system>\n";
}

std::string gpu(const std::string& bus, int dev, const std::string& links, const std::string& speed = "32.0 GT/s PCIe",
                int width = 16) {
    return "<pci busid=\"" + bus + "\" class=\"0x030200\" link_speed=\"" + speed + "\" link_width=\"" +
           std::to_string(width) + "\"><gpu dev=\"" + std::to_string(dev) + "\" sm=\"90\" rank=\"0\" gdr=\"1\">" +
           links + "</gpu></pci>\n";
}

std::string link(const std::string& target, int count, const std::string& tclass = "0x030200") {
    return "<nvlink target=\"" + target + "\" count=\"" + std::to_string(count) + "\" tclass=\"" + tclass + "\"/>";
}

TEST(NcclXml, CutOffIsRefusedWithTheElement) {
    const std::string text = slurp(data_path("8xh100_oci-bm-gpu-h100_topo.xml"));
    const std::string said = refusal(text.substr(0, text.size() / 2));
    EXPECT_HAS(said, "</system> is missing, it was cut off");
    EXPECT_HAS(said, "the file ends inside '<");
}

TEST(NcclXml, LostLinesInTheMiddle) {
    const std::string text =
        machine_xml("<pci busid=\"0000:01:00.0\" class=\"0x060400\">\n" + gpu("0000:02:00.0", 0, ""));
    EXPECT_HAS(refusal(text), "a closing tag that does not fit");
}

TEST(NcclXml, GluedDocuments) {
    const std::string one = slurp(data_path("8xh100_azure-ndv5_topo.xml"));
    const Machine twice = read(one + one);
    EXPECT_EQ(twice.gpus.size(), 8u);
    EXPECT_HAS(all_notes(twice.notes), "repaired: the same document is there 2 times");
    EXPECT_HAS(refusal(one + slurp(data_path("8xa100_azure-ndv4_topo.xml"))),
               "two files are glued together, split them");
}

TEST(NcclXml, GluedAttributesAndNoise) {
    const Machine machine = read(
        "node1: NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n<system version=\"1\"><cpu numaid=\"0\"affinity=\"ff\">" +
        gpu("0000:02:00.0", 0, "") + "</cpu></system>\nnode1: done <0>\n");
    EXPECT_EQ(machine.gpus.size(), 1u);
    EXPECT_EQ(machine.numa[0].cpus, "ff");
    EXPECT_HAS(all_notes(machine.notes), "1 missing blanks between attributes were put in");
    EXPECT_HAS(all_notes(machine.notes), "text before the <system> element was left out");
    EXPECT_HAS(all_notes(machine.notes), "text after the <system> element was left out");
}

TEST(NcclXml, OddLinks) {
    const Machine machine = read(machine_xml(gpu("0000:02:00.0", 0, link("0000:03:00.0", 4) + link("0000:02:00.0", 2)) +
                                             gpu("0000:03:00.0", 1, link("0000:02:00.0", 3))));
    EXPECT_EQ(machine.gpu_path(0, 1), (Path{PathType::nvl, 3}));
    EXPECT_EQ(machine.gpus[0].nvlinks, 4u);
    const std::string notes = all_notes(machine.notes);
    EXPECT_HAS(notes, "GPU0 has NVLink links to itself");
    EXPECT_HAS(notes, "counts differ by direction at GPU0-GPU1");
    EXPECT_HAS(notes, "fewer NVLink links than the 4 of the others: GPU1 (3)");
}

TEST(NcclXml, SwitchWithALostLink) {
    const std::string to_switch = "0x068000";
    const Machine machine = read(
        machine_xml(gpu("0000:02:00.0", 0, link("0000:10:00.0", 9, to_switch) + link("0000:11:00.0", 9, to_switch)) +
                    gpu("0000:03:00.0", 1, link("0000:10:00.0", 9, to_switch) + link("0000:11:00.0", 8, to_switch))));
    EXPECT_EQ(machine.nvswitch, NvSwitch::told);
    EXPECT_EQ(machine.gpu_path(0, 1), (Path{PathType::nvl, 17}));
    EXPECT_EQ(machine.nvlinks_per_gpu, 18u);
    EXPECT_HAS(all_notes(machine.notes), "GPU1 (17)");
}

TEST(NcclXml, SlowAndNarrowPcie) {
    const Machine machine =
        read(machine_xml(gpu("0000:02:00.0", 0, "", "8 GT/s", 16) + gpu("0000:03:00.0", 1, "", "32.0 GT/s PCIe", 8) +
                         gpu("0000:04:00.0", 2, "", "Unknown", 0)));
    EXPECT_HAS(all_notes(machine.notes), "PCIe link slower than the card can do: GPU0 (8 of 32 GT/s)");
    EXPECT_HAS(all_notes(machine.notes), "PCIe link narrower than x16: GPU1 (x8)");
    EXPECT_EQ(machine.pci[2].gigatransfers_per_s, 0);
    EXPECT_EQ(machine.kind, MachineKind::pcie_only);
}

TEST(NcclXml, GraceAndVirtualNetworks) {
    const Machine machine = read(
        "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\" arch=\"arm64\">"
        "<pci busid=\"0009:01:00.0\" class=\"0x030200\"><gpu dev=\"0\" sm=\"90\"><c2c bw=\"45000\" "
        "count=\"10\"/></gpu></pci>"
        "<pci busid=\"0000:03:00.0\" class=\"0x020700\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"400000\" "
        "port=\"1\"/></nic></pci>"
        "<nic><net name=\"eth9\" dev=\"1\" speed=\"-1\" port=\"0\"/></nic></cpu></system>");
    EXPECT_EQ(machine.gpus[0].c2c_links, 10u);
    EXPECT_EQ(machine.gpu_nic_path(0, 0).type, PathType::p2c);
    EXPECT_EQ(machine.gpu_nic_path(0, 1).type, PathType::sys);
    EXPECT_HAS(all_notes(machine.notes), "no port rate told for eth9");
}

TEST(NcclXml, MergedHosts) {
    const std::string cpu = "<cpu numaid=\"0\" affinity=\"ff\" host_hash=\"";
    const Machine machine = read("<system version=\"1\">" + cpu + "0xa\">" + gpu("0000:02:00.0", 0, "") + "</cpu>" +
                                 cpu + "0xb\">" + gpu("0000:02:00.0", 0, "") + "</cpu></system>");
    EXPECT_EQ(machine.gpus.size(), 1u);
    EXPECT_EQ(machine.hosts, 2u);
}

TEST(NcclXml, Refusals) {
    EXPECT_HAS(refusal("<system version=\"1\"/>"), "<system> without <cpu>");
    EXPECT_HAS(refusal("<system version=\"1\">\n<pci busid=\"1\"/>\n</system>"), "x:2: <pci> directly under <system>");
    EXPECT_HAS(refusal(machine_xml(gpu("a", 0, "") + gpu("b", 0, ""))), "<gpu dev='0'> is there twice");
    EXPECT_HAS(refusal(machine_xml("<pci busid=\"a\" class=\"0x030200\" link_width=\"many\"/>")),
               "x:3: <pci> link_width='many': a whole number");
    EXPECT_HAS(refusal(machine_xml(gpu("a", 0, link("b", 1000)))), "1 to 99 is expected");
    std::string deep;
    for (int i = 0; i < 100; ++i) {
        deep += "<pci busid=\"a\">";
    }
    for (int i = 0; i < 100; ++i) {
        deep += "</pci>";
    }
    EXPECT_HAS(refusal(machine_xml(deep)), "nested deeper than 32");
}

}  // namespace
}  // namespace fabricast::importers::test
