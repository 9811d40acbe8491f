// Traces run: times against what can be worked out by hand, failures by rank and node.
#include "sim/traces/run_trace.hpp"

#include <gtest/gtest.h>

#include "models/program/program.hpp"
#include "sim/traces/trace_reader.hpp"
#include "tests/sim/traces/trace_job.hpp"
#include "topologies/importers/astra_network.hpp"

namespace fabricast::traces {
namespace {

using namespace test;

constexpr double kGiB = 1073741824;

TEST(RunTrace, RingReachesTheWireFloor) {
    TraceArguments arguments;
    arguments.chakra = data("all_reduce_8_1024M/t");
    arguments.network = data("ring_8.yml");
    arguments.system = data("sys1d.json");
    const double floor = 2 * 7.0 / 8 * kGiB / (50 * kGiB);
    const double time = seconds_of(run_trace(arguments));
    EXPECT_GE(time, floor);
    EXPECT_LT(time, floor * 1.0001) << "35.00 ms: two of four chunks hide each other's latencies";
}

TEST(RunTrace, MessagesPayEveryDimensionTheyCross) {
    // Rank 0 is (0, 0), rank 63 (7, 7) of the grid: 400 GiB/s first, then 50 GiB/s.
    Job job(
        64, network_text("Switch, Switch", "8, 8", "400, 50", "936.25, 5000"), [](std::uint32_t rank, TraceText& t) {
            if (rank == 0) {
                t.add(NodeText(0, "s", kSend).with("comm_dst", 63).with("comm_size", 1 << 30).with("comm_tag", 1));
            } else if (rank == 63) {
                t.add(NodeText(0, "r", kReceive).with("comm_src", 0).with("comm_size", 1 << 30).with("comm_tag", 1));
            } else {
                t.add(NodeText(0, "c", kCompute).takes(1));
            }
        });
    EXPECT_NEAR(seconds_of(job.run()), 0.02 + 2 * 936.25e-9 + 2 * 5000e-9, 1e-12);
}

TEST(RunTrace, TrainingStepIsWhatItsPartsAddUpTo) {
    Folder folder;
    write_training_step(folder.path("t"), 64, 8, 8);
    TraceArguments arguments;
    arguments.chakra = folder.path("t");
    arguments.groups = folder.path("t-groups.json");
    arguments.network = data("sw2d_64.yml");
    arguments.system = data("sys2d.json");
    const TraceResult result = run_trace(arguments);
    EXPECT_EQ(result.templates, 1u);
    EXPECT_EQ(result.nodes, 64u * 72u);
    ASSERT_EQ(result.traffic.size(), 2u);
    const double tensor = result.traffic[0].time_s, data_parallel = result.traffic[1].time_s;
    EXPECT_NEAR(tensor, 2 * 7.0 / 8 * 64 / 1024 / 400, 0.01 * tensor) << "the wire, and 14 steps of latency";
    EXPECT_NEAR(data_parallel, 2 * 7.0 / 8 * 200 / 1024 / 50, 0.01 * data_parallel);
    // Data-parallel reductions hide behind the next layer's backward, except for the last one.
    EXPECT_NEAR(seconds_of(result), 0.144 + 32 * tensor + data_parallel, 1e-9);
    EXPECT_EQ(result.classes.size(), 1u);

    // One communication node at a time, as in ASTRA-sim: the reductions hold up the tensor-parallel ones after them by
    // what a layer's first half, 6 ms, does not cover.
    arguments.serial_communication = true;
    EXPECT_NEAR(seconds_of(run_trace(arguments)), 0.144 + 32 * tensor + data_parallel + 7 * (data_parallel - 0.006),
                1e-9);
}

TEST(RunTrace, NamesThatDifferBetweenRanksChangeNothing) {
    const auto job = [](bool own_names) {
        return Job(8, network_text("Ring, Switch", "4, 2", "100, 20", "100, 300"),
                   [&](std::uint32_t rank, TraceText& t) {
                       const std::string name = own_names ? "x" + std::to_string(rank) : "x";
                       t.add(NodeText(0, name, kCompute).takes(10 + rank % 3));
                       t.add(NodeText(1, name, kCollective).after({0}).collective(kAllReduce, 1 << 24));
                       t.add(NodeText(2, name, kCompute).takes(500).after({0}));
                       t.add(NodeText(3, name, kCollective).after({2}).collective(kAllToAll, 1 << 22));
                   });
    };
    Job shared = job(false), apart = job(true);
    const TraceResult a = shared.run(system_of(R"("ring","direct")", "", 4, 2)),
                      b = apart.run(system_of(R"("ring","direct")", "", 4, 2));
    EXPECT_EQ(a.templates, 3u);
    EXPECT_EQ(b.templates, 8u);
    EXPECT_EQ(a.step, b.step);
    EXPECT_TRUE(a.accounts == b.accounts);
    EXPECT_GT(a.accounts[static_cast<std::size_t>(Account::straggler)], 0);
}

TEST(RunTrace, CollectivesWithoutDurationsAreSimulated) {
    TraceArguments arguments;
    arguments.chakra = data("bcast/t");
    arguments.network = data("switch_8.yml");
    arguments.system = data("sys1d.json");
    EXPECT_GT(seconds_of(run_trace(arguments)), 1 / 1024.0 / 400) << "1 MiB at 400 GiB/s";
    arguments.chakra = data("cpuop/t");
    const TraceResult cpu = run_trace(arguments);
    EXPECT_NEAR(static_cast<double>(cpu.accounts[static_cast<std::size_t>(Account::host_bound)]), 8 * 100e6, 1);
    Job barrier = collective(kBarrier, 1 << 20, 8, network_text("Switch", "8", "400", "1000"));
    EXPECT_NEAR(seconds_of(barrier.run(system_of(""))), 3 * 2000e-9, 1e-12) << "three rounds through the switch";
}

TEST(RunTrace, ARankThatStaysAwayIsNamed) {
    TraceArguments arguments;
    arguments.chakra = data("mism/t");
    arguments.network = data("switch_8.yml");
    const TraceResult result = run_trace(arguments);
    EXPECT_EQ(result.verdict, "deadlock");
    EXPECT_EQ(result.failure,
              "deadlock at 0.000100 s: rank 0 in ar waits in group all ranks (7 of 8 members arrived; missing rank 3)");
}

TEST(RunTrace, MessagesWithoutTheirOtherSideAreNamed) {
    const auto job = [](std::int64_t expected, std::int64_t tag) {
        return Job(2, network_text("Ring", "2", "1", "0"), [&](std::uint32_t rank, TraceText& t) {
            if (rank == 0)
                t.add(NodeText(4, "give", kSend).with("comm_dst", 1).with("comm_size", 1000).with("comm_tag", 1));
            else if (expected > 0)
                t.add(NodeText(9, "take", kReceive)
                          .with("comm_src", 0)
                          .with("comm_size", expected)
                          .with("comm_tag", tag));
        });
    };
    EXPECT_EQ(job(0, 1).run().failure,
              "rank 0 node 4 'give' sends 1000 bytes to rank 1 with tag 1, which receives no such message");
    EXPECT_EQ(
        job(999, 1).run().failure,
        "rank 1 node 9 'take' expects 999 bytes from rank 0 with tag 1, which sends no such message; rank 0 node 4 "
        "'give' sends 1000 bytes to rank 1 with tag 1, which receives no such message");
    EXPECT_EQ(job(1000, 2).run().verdict, "unmatched message");
    EXPECT_EQ(job(1000, 1).run().failure, "");
}

TEST(RunTrace, DifferentCollectivesOfAGroupAreNamed) {
    Job job(2, network_text("Ring", "2", "1", "0"), [](std::uint32_t rank, TraceText& t) {
        t.add(NodeText(0, rank == 0 ? "left" : "right", kCollective).collective(kAllReduce, 1000 + rank));
    });
    const TraceResult result = job.run();
    EXPECT_EQ(result.verdict, "mismatch");
    EXPECT_EQ(result.failure, "members of group all ranks call different collectives: rank 0 in left; rank 1 in right");
}

TEST(RunTrace, RanksThatWaitForEachOtherAreADeadlock) {
    Job job(2, network_text("Ring", "2", "1", "0"), [](std::uint32_t rank, TraceText& t) {
        t.add(NodeText(0, "take", kReceive).with("comm_src", 1 - rank).with("comm_size", 8));
        t.add(NodeText(1, "give", kSend).after({0}).with("comm_dst", 1 - rank).with("comm_size", 8));
    });
    const TraceResult result = job.run();
    EXPECT_EQ(result.verdict, "deadlock");
    EXPECT_NE(result.failure.find("rank 0 in take waits for rank 1 to send"), std::string::npos) << result.failure;
}

TEST(RunTrace, MessagesOfAPairMeetByTag) {
    // Rank 1 expects tag 2 first, which is sent last: no deadlock, and 3 x 10 us of kernels between.
    Job job(2, network_text("Ring", "2", "1000", "0"), [](std::uint32_t rank, TraceText& t) {
        if (rank == 0) {
            for (int i = 0; i < 3; ++i) {
                NodeText kernel(2 * i, "k", kCompute);
                kernel.takes(10);
                t.add(kernel);
                t.add(NodeText(2 * i + 1, "give", kSend)
                          .after({2u * i})
                          .with("comm_dst", 1)
                          .with("comm_size", 8)
                          .with("comm_tag", i));
            }
        } else {
            t.add(NodeText(0, "take", kReceive).with("comm_src", 0).with("comm_size", 8).with("comm_tag", 2));
            t.add(
                NodeText(1, "take", kReceive).after({0}).with("comm_src", 0).with("comm_size", 8).with("comm_tag", 0));
            t.add(
                NodeText(2, "take", kReceive).after({1}).with("comm_src", 0).with("comm_size", 8).with("comm_tag", 1));
        }
    });
    EXPECT_NEAR(seconds_of(job.run()), 30e-6, 1e-10);
}

TEST(RunTrace, KernelsTakeTheirDurationOrTheRoofline) {
    const auto job = [] {
        return Job(2, network_text("Ring", "2", "1", "0"), [](std::uint32_t, TraceText& t) {
            t.add(NodeText(0, "gemm", kCompute).takes(7).with("num_ops", 4'000'000'000).with("tensor_size", 1'000'000));
            t.add(NodeText(1, "norm", kCompute)
                      .after({0})
                      .takes(7)
                      .with("num_ops", 1'000'000)
                      .with("tensor_size", 6'000'000));
            t.add(NodeText(2, "none", kCompute).after({1}));
        });
    };
    EXPECT_NEAR(seconds_of(job().run()), 14e-6 + 1e-9, 1e-12) << "no duration is 1 ns";
    const TraceResult roofline =
        job().run(system_of("", R"(, "peak-perf": 400, "local-mem-bw": 2000, "roofline-enabled": 1)"));
    EXPECT_NEAR(seconds_of(roofline), 10e-6 + 3e-6 + 1e-9, 1e-12);
    EXPECT_NEAR(static_cast<double>(roofline.accounts[static_cast<std::size_t>(Account::memory_bound)]),
                2 * (3e-6 - 2.5e-9) * 1e12, 2);
}

TEST(RunTrace, ReplayTakesRecordedDurationsOnly) {
    Job job(2, network_text("Ring", "2", "1", "0"), [](std::uint32_t rank, TraceText& t) {
        t.add(NodeText(0, "k", kCompute).takes(5));
        if (rank == 0)
            t.add(NodeText(1, "c", kCollective).after({0}).takes(20).collective(kAllReduce, 1 << 30));
    });
    EXPECT_NEAR(seconds_of(job.run(system_of("", R"(, "replay-only": 1)"))), 25e-6, 1e-12);
}

TEST(RunTrace, MemoryNodesUseTheRemoteMemory) {
    Job job(4, network_text("Ring", "4", "1", "0"), [](std::uint32_t, TraceText& t) {
        t.add(NodeText(0, "load", kLoad).with("tensor_size", 1'000'000));
        t.add(NodeText(1, "k", kCompute).after({0}).takes(5));
    });
    EXPECT_EQ(refusal(job.arguments),
              "node 0 'load': a memory node without a duration; say with --remote-memory what the memory is like");
    const auto run = [&](const std::string& kind) {
        job.arguments.memory = job.folder.write(
            "memory.json", R"({"memory-type": ")" + kind +
                               R"(", "num-npus-per-node": 2, "remote-mem-latency": 1000, "remote-mem-bw": 100})");
        return seconds_of(job.run());
    };
    EXPECT_NEAR(run("PER_NPU_MEMORY_EXPANSION"), 1e-6 + 10e-6 + 5e-6, 1e-11);
    EXPECT_NEAR(run("PER_NODE_MEMORY_EXPANSION"), 1e-6 + 20e-6 + 5e-6, 1e-11) << "two share one";
    EXPECT_NEAR(run("MEMORY_POOL"), 1e-6 + 40e-6 + 5e-6, 1e-11);
}

// The engine's rules hold for what is compiled.
TEST(CompileTrace, ProgramsAreSound) {
    Job job(8, network_text("Ring, Switch", "4, 2", "100, 20", "100, 300"), [](std::uint32_t rank, TraceText& t) {
        t.add(NodeText(0, "k", kCompute).takes(10));
        t.add(NodeText(1, "world", kCollective).after({0}).collective(kAllReduce, 1 << 20));
        t.add(
            NodeText(2, "half", kCollective).after({0}).collective(kAllGather, 1 << 20, std::to_string(1 + rank / 4)));
        t.add(NodeText(3, "give", kSend).after({0}).with("comm_dst", (rank + 1) % 8).with("comm_size", 100));
        t.add(NodeText(4, "take", kReceive).with("comm_src", (rank + 7) % 8).with("comm_size", 100));
        t.add(NodeText(5, "pass", kInvalid).after({1, 2, 3, 4}));
        t.add(NodeText(6, "host", kCompute).takes(3).after({5}).with("is_cpu_op", 1, 27));
        t.add(NodeText(7, "load", kLoad).after({6}).with("tensor_size", 1000));
        t.add(NodeText(8, "k", kCompute).takes(10).after({7, 5}));
        t.add(NodeText(9, "all", kCollective).after({8}).collective(kAllToAll, 1 << 20));
    });
    const std::string groups = job.folder.write("g.json", R"({"1": [0, 1, 2, 3], "2": [7, 6, 5, 4]})");
    const GridNetwork network(
        importers::read_astra_dimensions(importers::SourceText::from_file(job.arguments.network)).dimensions, "net");
    SystemConfig system = default_system(2);
    system.splits = 4;
    RemoteMemory memory;
    memory.kind = RemoteMemory::Kind::pool;
    memory.bytes_per_s = 1e9;
    const Workload workload = read_traces(job.arguments.chakra, groups, 8, 2);
    for (const bool serial : {false, true}) {
        const CompiledTrace compiled = compile_trace({workload, network, system, memory, serial});
        EXPECT_EQ(program::validate(compiled.program), "") << serial;
        EXPECT_EQ(compiled.program.templates.size(), 1u);
        EXPECT_EQ(compiled.program.templates[0].operations.size(), 2u + 12 + 8 + 1 + 2 + 1 + 1 + 1)
            << "four chunks in three phases of all-reduce, two of all-to-all";
    }
}

/// Stages that pass micro-batches on: forward and backward of each as soon as it can, no order told by the trace but
/// that lower ids come first.
Job pipeline(std::uint32_t stages, int micro_batches, bool backward_first) {
    return Job(stages, network_text("Ring", std::to_string(stages), "1000", "0"),
               [=](std::uint32_t stage, TraceText& t) {
                   const auto id = [&](int kind, int m) {  // kinds: receive, forward, send, and the same of backward
                       const int group = backward_first ? (kind + 3) % 6 : kind;
                       return static_cast<std::uint64_t>(group * micro_batches + m);
                   };
                   for (int m = 0; m < micro_batches; ++m) {
                       const bool first = stage == 0, last = stage + 1 == stages;
                       const auto message = [&](int kind, bool is_send, std::uint32_t peer) {
                           return std::move(NodeText(id(kind, m), is_send ? "give" : "take", is_send ? kSend : kReceive)
                                                .with(is_send ? "comm_dst" : "comm_src", peer)
                                                .with("comm_size", 8)
                                                .with("comm_tag", m));
                       };
                       NodeText forward(id(1, m), "forward", kCompute), backward(id(4, m), "backward", kCompute);
                       if (!first) {
                           t.add(message(0, false, stage - 1));
                           forward.after({id(0, m)});
                       }
                       t.add(forward.takes(10));
                       if (!last) {
                           t.add(message(2, true, stage + 1).after({id(1, m)}));
                           t.add(message(3, false, stage + 1));
                           backward.after({id(3, m), id(1, m)});
                       } else {
                           backward.after({id(1, m)});
                       }
                       t.add(backward.takes(20));
                       if (!first)
                           t.add(message(5, true, stage - 1).after({id(4, m)}));
                   }
               });
}

TEST(SettledRun, OrdersFollowWhatArrives) {
    constexpr int kStages = 4, kBatches = 8;
    const double ideal = (kBatches + kStages - 1) * 30e-6;  // bubbles of (p - 1) forwards and backwards
    for (const bool backward_first : {false, true}) {
        Job job = pipeline(kStages, kBatches, backward_first);
        const TraceResult result = job.run();
        EXPECT_NEAR(seconds_of(result), ideal, 1e-8) << backward_first;
    }
}

// Waits that hold only because a stream took the wrong one first are no deadlock; those of the trace are.
TEST(SettledRun, OnlyTheTraceMakesADeadlock) {
    const auto job = [](bool circle) {
        return Job(2, network_text("Ring", "2", "1000", "0"), [=](std::uint32_t rank, TraceText& t) {
            // Rank 0 would run node 1 first, but what it waits for needs node 2.
            if (rank == 0) {
                t.add(NodeText(0, "take", kReceive).with("comm_src", 1).with("comm_size", 8));
                t.add(NodeText(1, "late", kCompute).takes(5).after({0}));
                NodeText early(2, "early", kCompute);
                early.takes(5);
                if (circle)
                    early.after({1});
                t.add(early);
                t.add(NodeText(3, "give", kSend).after({2}).with("comm_dst", 1).with("comm_size", 8));
            } else {
                t.add(NodeText(0, "take", kReceive).with("comm_src", 0).with("comm_size", 8));
                t.add(NodeText(1, "give", kSend).after({0}).with("comm_dst", 0).with("comm_size", 8));
            }
        });
    };
    EXPECT_NEAR(seconds_of(job(false).run()), 10e-6, 1e-9);
    const TraceResult stuck = job(true).run();
    EXPECT_EQ(stuck.verdict, "deadlock");
    EXPECT_NE(stuck.failure.find("rank 1 in take waits for rank 0 to send"), std::string::npos) << stuck.failure;
}

// Hundreds of message channels share the streams that are left, and still all arrive.
TEST(CompileTrace, ManyChannelsShareStreams) {
    constexpr int kMessages = 300;
    Job job(2, network_text("Ring", "2", "1", "0"), [](std::uint32_t rank, TraceText& t) {
        for (int i = 0; i < kMessages; ++i) {
            t.add(NodeText(i, rank == 0 ? "give" : "take", rank == 0 ? kSend : kReceive)
                      .with(rank == 0 ? "comm_dst" : "comm_src", 1 - rank)
                      .with("comm_size", 1 << 20)
                      .with("comm_tag", i));
        }
    });
    const TraceResult result = job.run();
    EXPECT_NEAR(seconds_of(result), kMessages / 1024.0, 1e-9) << "one link";
    ASSERT_FALSE(result.notes.empty());
    EXPECT_EQ(result.notes.back(),
              "a rank has more groups and message channels than streams: some run one after the other");
}

}  // namespace
}  // namespace fabricast::traces
