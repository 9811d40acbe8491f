#include "topologies/graph/link_names.hpp"

#include <gtest/gtest.h>

namespace fabricast {
namespace {

using Form = LinkName::Form;

TEST(LinkNames, AreMadeWhenAskedFor) {
    LinkNames names;
    names.add({.form = Form::nvlink_up, .node = 0, .a = 5});
    names.add({.form = Form::joined,
               .a_part = LinkName::Part::pcie_switch,
               .b_part = LinkName::Part::host,
               .node = 0,
               .a = 1,
               .b = 0});
    names.add({.form = Form::throughput, .a_part = LinkName::Part::host, .node = 0, .a = 1});
    names.repeat(0, 3);  // nodes 1 to 3
    names.add({.words = "pod 0 rail 0 trunk up"});
    names.add({.form = Form::nic_down, .node = 3, .a = 2});
    ASSERT_EQ(names.size(), 4u * 3 + 2);
    EXPECT_EQ(names[0], "node 0 gpu 5 nvlink up");
    EXPECT_EQ(names[1], "node 0 pcie switch 1 to node 0 host 0");
    EXPECT_EQ(names[2], "node 0 host 1 throughput");
    EXPECT_EQ(names[3], "node 1 gpu 5 nvlink up");
    EXPECT_EQ(names[11], "node 3 host 1 throughput");
    EXPECT_EQ(names[12], "pod 0 rail 0 trunk up");
    EXPECT_EQ(names[13], "node 3 nic 2 down");
    EXPECT_EQ(names.all().size(), names.size());
}

TEST(LinkNames, WhatCameBeforeIsNotRepeated) {
    LinkNames names;
    names.add({.words = "first"});
    names.add({.form = Form::gpu_pcie_up, .node = 7, .a = 0});
    names.repeat(1, 2);
    EXPECT_EQ(names.all(), (std::vector<std::string>{"first", "node 7 gpu 0 pcie up", "node 8 gpu 0 pcie up",
                                                     "node 9 gpu 0 pcie up"}));
}

}  // namespace
}  // namespace fabricast
