// Every rule of validate(), and the replay of memory.
#include "models/program/program.hpp"

#include <functional>

#include <gtest/gtest.h>

namespace fabricast::program {
namespace {

Node operation_node(std::uint32_t operation, std::uint32_t at) {
    Node node;
    node.operation = operation;
    node.end = at + 1;
    return node;
}

Node repeat_node(std::uint32_t end, std::int64_t count) {
    Node node;
    node.kind = Node::Kind::repeat;
    node.end = end;
    node.count = count;
    return node;
}

// Two ranks of one template that use every kind of operation once:
//   node 0 repeat: 1 compute, 2 collective on stream 1, 3 exchange, 4 transfer, 5 host, 6 timer, 7 step end
Program sound() {
    Program p;
    p.names = {"work"};
    p.labels.emplace_back();
    CostClass& cost = p.costs.emplace_back();
    cost.work = 10;
    cost.parts[static_cast<std::size_t>(Account::attention)] = 10;
    p.demands = {{{LinkId{0}, kCoefficientOne}, {LinkId{1}, kCoefficientOne}}};
    p.calls = {{0, 0, 100}};
    p.plans = {{Plan{5, {Activity{100, 1, 0, 0}}, false, true}}};
    p.batches = {{{{0, true, 8}, {0, false, 8}}}};
    p.routes = {{1, 0, 0, false, true}};
    p.transfers = {{0, 64}};
    p.durations = {7};
    Template& t = p.templates.emplace_back();
    t.name = "both";
    t.streams = 2;
    t.nodes.push_back(repeat_node(8, 3));
    constexpr OpKind kKinds[] = {OpKind::compute, OpKind::collective, OpKind::p2p_batch, OpKind::transfer,
                                 OpKind::host,    OpKind::timer,      OpKind::step_end};
    for (const OpKind kind : kKinds) {
        Operation& op = t.operations.emplace_back();
        op.kind = kind;
        t.nodes.push_back(operation_node(static_cast<std::uint32_t>(t.operations.size() - 1),
                                         static_cast<std::uint32_t>(t.nodes.size())));
    }
    t.operations[1].stream = 1;
    t.operations[2].waits = {2};
    p.groups = {{"dp 0", {0, 1}, 0, {0}}};
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
        Rank& r = p.ranks.emplace_back();
        r.groups = {0};
        r.peers = {{1 - rank, 0, 0}};
        r.transfer_routes = {0};
    }
    return p;
}

TEST(ProgramValidate, ASoundProgramPasses) { EXPECT_EQ(validate(sound()), ""); }

struct Rule {
    const char* expected;
    std::function<void(Program&)> break_it;
};

TEST(ProgramValidate, NamesEachBrokenRule) {
    const std::vector<Rule> rules = {
        // prices
        {"cost class 0: parts sum to 10 ps, work is 11 ps", [](Program& p) { p.costs[0].work = 11; }},
        {"cost class 0: a negative time", [](Program& p) { p.costs[0].host_first = -1; }},
        {"cost class 0: speed 0 outside 1..65536", [](Program& p) { p.costs[0].speed[2] = 0; }},
        {"cost class 0: speed 65537 outside 1..65536", [](Program& p) { p.costs[0].speed[2] = 65537; }},
        {"call 0: a plan has a negative latency", [](Program& p) { p.plans[0][0].latency = -1; }},
        {"call 0: a plan has an impossible activity", [](Program& p) { p.plans[0][0].activities[0].weight = 0; }},
        {"call 0: a plan has an impossible activity", [](Program& p) { p.plans[0][0].activities[0].work = -1; }},
        {"route 0: a negative latency or cap", [](Program& p) { p.routes[0].latency = -1; }},
        {"route 0 has no demand", [](Program& p) { p.routes[0].demand = 9; }},
        {"route 0 has neither links nor a cap", [](Program& p) { p.demands[0].clear(); }},
        {"demand 0 names link 0 twice", [](Program& p) { p.demands[0][1].link = LinkId{0}; }},
        {"demand 0 names link 1 without using it", [](Program& p) { p.demands[0][1].coefficient = 0; }},
        {"transfer 0 moves a negative number of bytes", [](Program& p) { p.transfers[0].bytes = -1; }},
        {"duration 0 is negative", [](Program& p) { p.durations[0] = -1; }},
        // the tree
        {"template both: 0 streams, 1..32 allowed", [](Program& p) { p.templates[0].streams = 0; }},
        {"template both: 33 streams, 1..32 allowed", [](Program& p) { p.templates[0].streams = 33; }},
        {"template both: node 1 names no operation", [](Program& p) { p.templates[0].nodes[1].operation = 99; }},
        {"template both operation 1 occurs twice in the tree",
         [](Program& p) { p.templates[0].nodes[1].operation = 1; }},
        {"template both: node 0 does not nest", [](Program& p) { p.templates[0].nodes[0].end = 9; }},
        {"template both: node 0 does not nest", [](Program& p) { p.templates[0].nodes[0].end = 0; }},
        {"template both: repeat 0 has a negative count", [](Program& p) { p.templates[0].nodes[0].count = -1; }},
        {"template both operation 7 is not in the tree", [](Program& p) { p.templates[0].operations.emplace_back(); }},
        {"template both: repeats nest deeper than 4",
         [](Program& p) {
             Template& t = p.templates.emplace_back(p.templates[0]);
             t.nodes.assign(5, repeat_node(6, 1));
             t.nodes.push_back(operation_node(0, 5));
             t.operations.resize(1);
         }},
        {"template both: node 1 does not nest",
         [](Program& p) {
             Template& t = p.templates.emplace_back(p.templates[0]);
             t.nodes = {repeat_node(3, 1), repeat_node(4, 1), operation_node(0, 2), operation_node(1, 3)};
             t.operations.resize(2);
         }},
        // operations
        {"operation 2 runs on a stream the template lacks",
         [](Program& p) { p.templates[0].operations[2].stream = 2; }},
        {"operation 2 has no label", [](Program& p) { p.templates[0].operations[2].label = 1; }},
        {"operation 0 computes outside stream 0", [](Program& p) { p.templates[0].operations[0].stream = 1; }},
        {"operation 6 ends the step outside stream 0", [](Program& p) { p.templates[0].operations[6].stream = 1; }},
        {"operation 0 has no payload", [](Program& p) { p.templates[0].operations[0].payload = 1; }},
        {"operation 1 has no payload", [](Program& p) { p.templates[0].operations[1].payload = 1; }},
        {"operation 2 has no payload", [](Program& p) { p.templates[0].operations[2].payload = 1; }},
        {"operation 3 has no payload", [](Program& p) { p.templates[0].operations[3].payload = 1; }},
        {"operation 4 has no payload", [](Program& p) { p.templates[0].operations[4].payload = 1; }},
        {"operation 5 has no payload", [](Program& p) { p.templates[0].operations[5].payload = 1; }},
        {"operation 2 waits for no operation", [](Program& p) { p.templates[0].operations[2].waits = {0}; }},
        {"operation 2 waits for no operation", [](Program& p) { p.templates[0].operations[2].waits = {50}; }},
        {"operation 2 waits inside its own stream", [](Program& p) { p.templates[0].operations[2].waits = {1}; }},
        {"operation 2 waits for 256 operations, 255 allowed",
         [](Program& p) { p.templates[0].operations[2].waits.assign(256, 2); }},
        {"operation 0 waits for a later operation outside any common repeat",
         [](Program& p) {
             p.templates[0].nodes[0].kind = Node::Kind::block;
             p.templates[0].operations[0].waits = {2};
         }},
        {"operation 7 calls a communicator from a second stream",
         [](Program& p) {
             Template& t = p.templates[0];
             t.operations.push_back(t.operations[1]);
             t.operations.back().stream = 0;
             t.nodes.push_back(operation_node(7, 8));
         }},
        {"operation 7 uses a peer slot from a second stream",
         [](Program& p) {
             Template& t = p.templates[0];
             t.operations.push_back(t.operations[2]);
             t.operations.back().stream = 1;
             t.operations.back().waits.clear();
             t.nodes.push_back(operation_node(7, 8));
         }},
        {"operation 2 moves a negative number of bytes", [](Program& p) { p.batches[0].halves[1].bytes = -1; }},
        {"operation 2 uses a peer slot twice in one direction",
         [](Program& p) { p.batches[0].halves[1].is_send = true; }},
        // ranks and groups
        {"rank 1 has no template", [](Program& p) { p.ranks[1].tmpl = 1; }},
        {"rank 1 has slowness 0", [](Program& p) { p.ranks[1].slowness = 0; }},
        {"rank 1 has slowness 65535, at least 65536", [](Program& p) { p.ranks[1].slowness = kFullSpeed - 1; }},
        {"rank 0 does not bind a repeat of template both", [](Program& p) { p.templates[0].nodes[0].bound = 0; }},
        {"rank 1 does not bind a repeat of template both",
         [](Program& p) {
             p.templates[0].nodes[0].bound = 0;
             p.ranks[0].bindings = {1};
             p.ranks[1].bindings = {-1};
         }},
        {"rank 1 lacks communicator slot 0", [](Program& p) { p.ranks[1].groups.clear(); }},
        {"rank 1 names group 3, there are 1", [](Program& p) { p.ranks[1].groups = {3}; }},
        {"rank 1 is no member of group dp 0", [](Program& p) { p.groups[0].members = {0}; }},
        {"group dp 0 names rank 2, there are 2",
         [](Program& p) {
             p.groups[0].members = {0, 2};
         }},
        {"rank 0 is twice in group dp 0",
         [](Program& p) {
             p.groups[0].members = {0, 0, 1};
         }},
        {"rank 1 has a group in two slots",
         [](Program& p) {
             p.ranks[1].groups = {0, 0};
         }},
        {"group dp 0 names demand 4, there are 1", [](Program& p) { p.groups[0].demands = {4}; }},
        {"call 0 has no plan on group dp 0", [](Program& p) { p.groups[0].shape = 1; }},
        {"call 0 has no demand on group dp 0", [](Program& p) { p.groups[0].demands.clear(); }},
        {"call 0 has neither links nor a cap on group dp 0",
         [](Program& p) {
             p.demands.emplace_back();
             p.groups[0].demands = {1};
         }},
        {"rank 1 lacks peer slot 0", [](Program& p) { p.ranks[1].peers.clear(); }},
        {"rank 1 lacks peer slot 0", [](Program& p) { p.ranks[1].peers[0].rank = 2; }},
        {"rank 1 has no route to rank 0", [](Program& p) { p.ranks[1].peers[0].send_route = kNone; }},
        {"rank 1 lacks a transfer route", [](Program& p) { p.ranks[1].transfer_routes.clear(); }},
        {"rank 1 names route 5, there are 1", [](Program& p) { p.ranks[1].transfer_routes = {5}; }},
    };
    for (const Rule& rule : rules) {
        Program p = sound();
        rule.break_it(p);
        const std::string message = validate(p);
        EXPECT_NE(message.find(rule.expected), std::string::npos)
            << "expected: " << rule.expected << "\ngot:      " << message;
    }
}

// ---- memory --------------------------------------------------------------------------------------------------------

struct TemplateWriter {
    Template t;
    std::vector<std::uint32_t> open;
    void repeat(std::int64_t count, std::uint32_t bound = kNone) {
        open.push_back(static_cast<std::uint32_t>(t.nodes.size()));
        t.nodes.push_back(repeat_node(0, count));
        t.nodes.back().bound = bound;
    }
    void end() {
        t.nodes[open.back()].end = static_cast<std::uint32_t>(t.nodes.size());
        open.pop_back();
    }
    void changes(std::vector<MemoryChange> memory) {
        t.operations.emplace_back().memory = std::move(memory);
        t.nodes.push_back(operation_node(static_cast<std::uint32_t>(t.operations.size() - 1),
                                         static_cast<std::uint32_t>(t.nodes.size())));
    }
};

TEST(PeakMemory, StartsFromTheBase) {
    TemplateWriter w;
    w.t.base_memory[static_cast<std::size_t>(MemoryCause::weights)] = 100;
    w.t.base_memory[static_cast<std::size_t>(MemoryCause::optimizer)] = 600;
    EXPECT_EQ(peak_memory(w.t).total, 700);
}

TEST(PeakMemory, AllocatesBeforeAndFreesAfterAnOperation) {
    TemplateWriter w;
    w.changes({{MemoryCause::activations, 10}, {MemoryCause::temporary, 5}, {MemoryCause::temporary, -5}});
    w.changes({{MemoryCause::logits, 3}, {MemoryCause::activations, -10}});
    const MemoryPeak peak = peak_memory(w.t);
    EXPECT_EQ(peak.total, 15);
    EXPECT_EQ(peak.parts[static_cast<std::size_t>(MemoryCause::temporary)], 5);
    EXPECT_EQ(peak.parts[static_cast<std::size_t>(MemoryCause::logits)], 0);  // parts are those of the peak's moment
}

TEST(PeakMemory, NestedRepeatsGrow) {
    TemplateWriter w;  // 3 x (4 x keep 10; 4 x give back 9)
    w.repeat(3);
    w.repeat(4);
    w.changes({{MemoryCause::activations, 10}});
    w.end();
    w.repeat(4);
    w.changes({{MemoryCause::activations, -9}});
    w.end();
    w.end();
    EXPECT_EQ(peak_memory(w.t).total, 40 + 2 * 4);
}

TEST(PeakMemory, LongBalancedRepeatsCostNothing) {
    TemplateWriter w;
    w.repeat(1'000'000'000'000);
    w.repeat(8);
    w.changes({{MemoryCause::activations, 10}});
    w.end();
    w.repeat(8);
    w.changes({{MemoryCause::activations, -10}});
    w.end();
    w.end();
    EXPECT_EQ(peak_memory(w.t).total, 80);
}

TEST(PeakMemory, BoundRepeatsRunAsBound) {
    TemplateWriter w;
    w.repeat(1, 0);
    w.changes({{MemoryCause::activations, 10}});
    w.end();
    EXPECT_EQ(peak_memory(w.t, {7}).total, 70);
    EXPECT_EQ(peak_memory(w.t, {0}).total, 0);
    EXPECT_EQ(peak_memory(w.t).total, 10);
}

}  // namespace
}  // namespace fabricast::program
