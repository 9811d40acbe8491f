// ibnetdiscover and iblinkinfo: fabrics written by hand from the tools' format.
#include "topologies/importers/infiniband.hpp"

#include <gtest/gtest.h>

#include "tests/topologies/importers/samples.hpp"

namespace fabricast::importers::test {
namespace {

FabricDescription read(const std::string& text) {
    return std::get<FabricDescription>(import_text(SourceText::from_text("fabric.txt", text)));
}

std::string hex(std::uint32_t value) {
    std::ostringstream text;
    text << std::hex << value;
    return text.str();
}

/// Leaf a with four hosts, two cables to spine b; `slow` is the rate of host 3's link.
std::string netdiscover(const std::string& slow = "4xHDR") {
    std::string text =
        "#\n# Topology file: generated on Thu May  4 10:12:10 2023\n#\n# Initiated from node 0c42 port 0c42\n\n"
        "vendid=0x2c9\ndevid=0xd2f0\nsysimgguid=0xaa\nswitchguid=0xaa(aa)\n"
        "Switch\t41 \"S-aa\"\t\t# \"MF0;leaf01:MQM8700/U1\" enhanced port 0 lid 12 lmc 0\n";
    for (std::uint32_t i = 0; i < 4; ++i) {
        const std::string guid = hex(0xc0 + i);
        text += "[" + std::to_string(i + 1) + "]\t\"H-" + guid + "\"[1](" + guid + ") \t\t# \"node0" +
                std::to_string(i / 2 + 1) + " mlx5_" + std::to_string(i % 2) + "\" lid " + std::to_string(i + 20) +
                " " + (i == 3 ? slow : "4xHDR") + "\n";
    }
    text +=
        "[39]\t\"S-bb\"[1]\t\t# \"MF0;spine01:MQM8700/U1\" lid 13 4xHDR\n"
        "[40]\t\"S-bb\"[2]\t\t# \"MF0;spine01:MQM8700/U1\" lid 13 4xHDR\n"
        "[41]\t\"H-ee\"[1](ee) \t\t# \"Mellanox Technologies Aggregation Node\" lid 99 4xHDR\n\n"
        "Switch\t41 \"S-bb\"\t\t# \"MF0;spine01:MQM8700/U1\" enhanced port 0 lid 13 lmc 0\n"
        "[1]\t\"S-aa\"[39]\t\t# \"MF0;leaf01:MQM8700/U1\" lid 12 4xHDR\n"
        "[2]\t\"S-aa\"[40]\t\t# \"MF0;leaf01:MQM8700/U1\" lid 12 4xHDR\n\n";
    for (std::uint32_t i = 0; i < 4; ++i) {
        const std::string guid = hex(0xc0 + i);
        text += "vendid=0x2c9\ncaguid=0x" + guid + "\nCa\t1 \"H-" + guid + "\"\t\t# \"node0" +
                std::to_string(i / 2 + 1) + " mlx5_" + std::to_string(i % 2) + "\"\n[1](" + guid + ") \t\"S-aa\"[" +
                std::to_string(i + 1) + "]\t\t# lid " + std::to_string(i + 20) +
                " lmc 0 \"MF0;leaf01:MQM8700/U1\" lid 12 " + (i == 3 ? slow : "4xHDR") + "\n\n";
    }
    return text;
}

TEST(IbNetDiscover, HealthyFabric) {
    const FabricDescription fabric = read(netdiscover());
    EXPECT_EQ(fabric.format, "ibnetdiscover");
    EXPECT_EQ(fabric.count(NodeKind::network_switch), 2u);
    EXPECT_EQ(fabric.count(NodeKind::host), 2u) << "two adapters of one server are one host";
    EXPECT_EQ(fabric.links.size(), 6u) << "both ends report a link, it is one";
    EXPECT_EQ(fabric.nodes[0].name, "leaf01");
    EXPECT_EQ(fabric.nodes[0].level, 0);
    for (const FabricLink& link : fabric.links) {
        EXPECT_DOUBLE_EQ(link.bytes_per_s, 25e9);
        EXPECT_EQ(link.width, 4u);
        EXPECT_EQ(link.state, LinkState::good);
    }
    EXPECT_EQ(all_notes(fabric.notes), "fact: 1 aggregation nodes (SHARP) inside switches were left out\n");
    const Placement placement = place(fabric, "node[01-02]");
    EXPECT_EQ(placement.leaves[1], (std::vector<std::uint32_t>{0, 0}));
}

TEST(IbNetDiscover, LinksBelowTheirNeighbours) {
    EXPECT_HAS(all_notes(read(netdiscover("4xEDR")).notes),
               "leaf01 port 4 to node02 port mlx5_1/1: 4xEDR, 100 Gb/s; its neighbours have 200 Gb/s");
    EXPECT_HAS(all_notes(read(netdiscover("1xHDR")).notes), "1xHDR, 50 Gb/s; its neighbours have 200 Gb/s");
    std::string text = netdiscover();
    text.replace(text.rfind("4xHDR"), 5, "2xHDR");
    EXPECT_HAS(all_notes(read(text).notes), "the ends disagree: 4xHDR (line");
    text = netdiscover();
    EXPECT_HAS(all_notes(read(text.substr(0, text.rfind("vendid"))).notes), "1 links are reported by one end only");
}

TEST(IbNetDiscover, Refusals) {
    EXPECT_HAS(refusal("Switch\t41 \"S-aa\"\t# \"leaf\"\n[1]\t\"H-b\n"), "x:2: '[1] \"H-b' is no port line");
    EXPECT_HAS(refusal("[1] \"H-b\"[1]\nSwitch\t41 \"S-aa\"\t# \"leaf\"\n"),
               "x:1: a port line before the first Switch");
    EXPECT_HAS(refusal("Switch\t41 \"S-aa\" # \"a\"\nSwitch\t41 S-aa\n"), "x:2: 'Switch 41 S-aa'");
}

std::string link_line(int from_lid, int from_port, const std::string& state, const std::string& to,
                      const std::string& remark = " ") {
    return "          " + std::to_string(from_lid) + "   " + std::to_string(from_port) + "[  ] ==( " + state +
           ")==>  " + to + " (" + remark + ")\n";
}

TEST(IbLinkInfo, DefaultForm) {
    const std::string hdr = "4X      53.125 Gbps Active/  LinkUp";
    const std::string text =
        "CA: node01 mlx5_0:\n      0x0c42a103006f2c4c      5    1[  ] ==( " + hdr +
        ")==>      12    1[  ] \"MF0;leaf01:MQM8700/U1\" ( )\n" +
        "Switch: 0xb8599f0300a1b2c3 MF0;leaf01:MQM8700/U1:\n" +
        link_line(12, 1, hdr, "    5    1[  ] \"node01 mlx5_0\"") +
        link_line(12, 2, "4X      25.78125 Gbps Active/  LinkUp", "    6    1[  ] \"node02 mlx5_0\"",
                  " Could be 53.125 Gbps") +
        link_line(12, 3, "               Down/ Polling", "         [  ] \"\"") +
        link_line(12, 4, hdr, "    7    1[  ] \"node03 mlx5_0\"") +
        link_line(12, 40, "4X      53.125 Gbps Initialize/  LinkUp", "   13    2[  ] \"MF0;spine01:MQM8700/U1\"");
    const FabricDescription fabric = read(text);
    EXPECT_EQ(fabric.format, "iblinkinfo");
    EXPECT_EQ(fabric.count(NodeKind::host), 3u);
    EXPECT_EQ(fabric.count(NodeKind::network_switch), 2u);
    EXPECT_EQ(fabric.links.size(), 4u);
    const std::string notes = all_notes(fabric.notes);
    EXPECT_HAS(notes, "leaf01 port 2 to node02 port mlx5_0/1: Could be 53.125 Gbps");
    EXPECT_HAS(notes, "the port is not active: Initialize/  LinkUp");
    EXPECT_HAS(notes, "1 ports are down");
}

TEST(IbLinkInfo, LineForm) {
    const FabricDescription fabric = read(
        "0x0002c90200404ad8 \"SwitchX -  Mellanox Technologies\"      4    3[  ] ==( 4X 25.78 Gbps Active/  LinkUp)==> "
        " "
        "0x0002c903000e0b72     15    1[  ] \"exe0002 HCA-1\" ( )\n"
        "0x0002c90200404ad8 \"SwitchX -  Mellanox Technologies\"      4   17[  ] ==( 1X 25.78 Gbps Active/  LinkUp)==> "
        " "
        "0x0011220300334455      5    1[  ] \"exe0001 HCA-1\" ( Could be 4X )\n"
        "0x0002c90200404ad8 \"SwitchX -  Mellanox Technologies\"      4   18[  ] ==(                Down/ Polling)==>  "
        "           [  ] \"\" ( )\n");
    EXPECT_EQ(fabric.count(NodeKind::host), 2u);
    ASSERT_EQ(fabric.links.size(), 2u);
    EXPECT_DOUBLE_EQ(fabric.links[1].bytes_per_s + fabric.links[0].bytes_per_s, 12.5e9 * 1.25);
    EXPECT_HAS(all_notes(fabric.notes), "Could be 4X");
}

TEST(IbLinkInfo, OnlyLinesThatAreUp) {  // iblinkinfo | grep Up
    const FabricDescription fabric = read(
        "      0xec0d9a03003d62be      4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   17[  ] "
        "\"MF0;SB7700:MSB7700/U1\" ( )\n"
        "           2   17[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] \"n02 HCA-1\" ( )\n"
        "           2   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] \"n01 HCA-1\" ( )\n");
    EXPECT_EQ(fabric.count(NodeKind::host), 2u);
    EXPECT_EQ(fabric.count(NodeKind::network_switch), 1u);
    EXPECT_EQ(fabric.links.size(), 2u);
}

TEST(IbLinkInfo, Refusals) {
    EXPECT_HAS(refusal(link_line(1, 1, "4X      77.0 Gbps Active/  LinkUp", "2 1[  ] \"a b\"")),
               "lane rate of InfiniBand");
    EXPECT_HAS(refusal(link_line(1, 1, "4X      25.78125 Gbps Active/  LinkUp", "2")), "its other end is cut off");
    EXPECT_HAS(refusal("1 ==( 4X 10.0 Gbps Active/ LinkUp)==> 2 1[ ] \"a\" ( )\n"), "is no iblinkinfo line");
}

TEST(IbLanes, Rates) {
    EXPECT_EQ(ib_lane_of_wire_rate(106.25)->name, "NDR");
    EXPECT_EQ(ib_lane_of_wire_rate(14.0625)->name, "FDR");
    EXPECT_EQ(ib_lane_of_wire_rate(10.0)->name, "QDR");
    EXPECT_EQ(ib_lane_of_wire_rate(77), nullptr);
    EXPECT_EQ(ib_lane_named("XDR")->data_gigabits_per_s, 200);
}

}  // namespace
}  // namespace fabricast::importers::test
