#include "validate/ingest/perftest.hpp"

#include <gtest/gtest.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"
#include "tests/validate/ingest/support.hpp"

namespace fabricast {
namespace {

PerftestRun only(const std::string& name) {
    const std::vector<PerftestRun> runs = read_perftest_log(sample("ib/" + name));
    EXPECT_EQ(runs.size(), 1u) << name;
    return runs.at(0);
}

std::string table(const std::string& unit, const std::string& row) {
    return "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
           " #bytes     #iterations    BW peak[" +
           unit + "]    BW average[" + unit + "]   MsgRate[Mpps]\n " + row + "\n";
}

TEST(Perftest, EveryIndexedFileIsOneUsableRun) {
    const Csv index = Csv::read(sample("ib/index.csv"));
    ASSERT_EQ(index.size(), 7u);
    for (std::size_t i = 0; i < index.size(); ++i) {
        SCOPED_TRACE(index.text(i, "file"));
        const PerftestRun run = only(index.text(i, "file"));
        EXPECT_EQ(run.verdict, PerftestVerdict::usable) << run.reason;
        EXPECT_EQ(run.link_type, index.text(i, "network") == "IB" ? "IB" : "Ethernet");
        EXPECT_EQ(run.transport, "IB");
        EXPECT_EQ(run.connection, "RC");
        EXPECT_EQ(run.kind, contains(index.text(i, "tool"), "_lat") ? PerftestKind::latency : PerftestKind::bandwidth);
        EXPECT_TRUE(contains(index.text(i, "tool"), "ib_" + run.operation)) << run.operation;
    }
}

TEST(Perftest, AllSizes) {
    const PerftestRun run = only("cx6-roce200_ib_write_bw_all-sizes.txt");
    ASSERT_EQ(run.points.size(), 23u);
    EXPECT_EQ(run.points[0].bytes, 2);
    EXPECT_DOUBLE_EQ(run.points[0].average_gbit_per_s, 0.088598);
    EXPECT_DOUBLE_EQ(run.points[19].average_gbit_per_s, 196.07);
    EXPECT_DOUBLE_EQ(*run.points[0].message_rate_mpps, 5.537347);
    EXPECT_EQ(run.points[22].iterations, 5000);
    EXPECT_EQ(run.mtu_bytes, 4096);
    EXPECT_EQ(run.tx_depth, 128);
    EXPECT_EQ(run.gid_index, 3);
    EXPECT_EQ(run.rdma_cm, false);
    EXPECT_TRUE(run.notes.empty());
}

TEST(Perftest, Latencies) {
    const PerftestRun write = only("cx3-fdr_ib_write_lat_server.txt");
    ASSERT_EQ(write.points.size(), 1u);
    EXPECT_DOUBLE_EQ(*write.points[0].typical_us, 0.98);
    EXPECT_DOUBLE_EQ(*write.points[0].p99_us, 1.00);
    EXPECT_DOUBLE_EQ(*write.points[0].p999_us, 1.25);
    EXPECT_EQ(write.device, "mlx4_0");
    EXPECT_EQ(write.warnings.size(), 4u);  // two about postsend, two about the CPU frequency
    const PerftestRun read = only("cx6-roce200_ib_read_lat_pod.txt");
    EXPECT_DOUBLE_EQ(*read.points.at(0).typical_us, 4.83);
    EXPECT_DOUBLE_EQ(read.points[0].average_us, 4.82);
    EXPECT_DOUBLE_EQ(*read.points[0].minimum_us, 4.70);
    EXPECT_EQ(read.operation, "read");
}

TEST(Perftest, FrequencyWarningIsToldAndDoesNotHideTheRow) {
    const PerftestRun run = only("cx5-roce100_ib_write_bw_rdmacm_cpufreq-warning.txt");
    ASSERT_EQ(run.points.size(), 1u);
    EXPECT_DOUBLE_EQ(run.points[0].average_gbit_per_s, 92.40);
    ASSERT_EQ(run.warnings.size(), 1u);
    EXPECT_TRUE(contains(run.warnings[0], "CPU Frequency is not max"));
    EXPECT_EQ(run.rdma_cm, true);
}

TEST(Perftest, FourQueuePairs) {
    const PerftestRun run = only("cx7-roce_ib_write_bw_4qp_rdmacm.txt");
    EXPECT_EQ(run.queue_pairs, 4);
    EXPECT_DOUBLE_EQ(run.points.at(0).average_gbit_per_s, 98.01);
    EXPECT_EQ(run.device, "mlx5_5");
}

TEST(Perftest, BothSidesAreOneRunAndMegabytesAreMebibytes) {
    const PerftestRun run = only("hdr200_ib_write_bw_loopback_8M_both-sides.txt");
    EXPECT_TRUE(run.both_sides);
    ASSERT_EQ(run.points.size(), 1u);
    EXPECT_NEAR(run.points[0].average_gbit_per_s, 24056.72 * 1048576 * 8 / 1e9, 1e-9);  // 201.8 of 200 Gb/s: loopback
    EXPECT_EQ(run.link_type, "IB");
    EXPECT_TRUE(run.loopback);  // LID 0xd06 at both ends
}

TEST(Perftest, EndsAndDirections) {
    EXPECT_FALSE(only("cx3-fdr_ib_write_lat_server.txt").loopback);  // LIDs 7 and 8
    EXPECT_FALSE(only("cx6-roce200_ib_read_lat_pod.txt").loopback);  // RoCE has none
    EXPECT_FALSE(only("cx7-roce_ib_write_bw_4qp_rdmacm.txt").both_ways);
    std::string text = table("Gb/sec", "8388608    5000   390.07   390.07   0.005812");
    text.replace(text.find("BW Test"), 7, "Bidirectional BW Test");
    EXPECT_TRUE(parse_perftest_log(text, "both.txt").at(0).both_ways);
    EXPECT_TRUE(is_perftest_log(text));
    EXPECT_FALSE(is_perftest_log("# nThread 1 nGpus 8 minBytes 8\n#       size         count      type\n"));
}

TEST(Perftest, RunInfinitelyKeepsRowsAndHasNoPeak) {
    const PerftestRun run = only("spark-roce200_ib_write_bw_run-infinitely.txt");
    EXPECT_TRUE(run.run_infinitely);
    ASSERT_EQ(run.points.size(), 5u);
    EXPECT_FALSE(run.points[0].peak_gbit_per_s.has_value());
    EXPECT_DOUBLE_EQ(run.points[3].average_gbit_per_s, 92.56);
    EXPECT_EQ(run.mtu_bytes, 1024);
    EXPECT_EQ(run.warnings.size(), 1u);
}

TEST(Perftest, UnitThatContradictsTheMessageRate) {
    const PerftestRun run =
        parse_perftest_log(table("MB/sec", "8388608    5000   196.07   196.07   0.002922"), "server.txt").at(0);
    EXPECT_DOUBLE_EQ(run.points.at(0).average_gbit_per_s, 196.07);
    EXPECT_EQ(run.verdict, PerftestVerdict::usable) << run.reason;
    ASSERT_EQ(run.notes.size(), 1u);
    EXPECT_TRUE(contains(run.notes[0], "taken as Gb/s"));
    const PerftestRun neither =
        parse_perftest_log(table("Gb/sec", "8388608    5000   150.00   150.00   0.002922"), "server.txt").at(0);
    EXPECT_EQ(neither.verdict, PerftestVerdict::suspicious);
}

TEST(Perftest, InterleavedSides) {
    const std::string one_side = table("Gb/sec", "65536   5000   92.42   92.40   0.176230");
    std::string text;
    for (const std::string_view line : lines_of(one_side)) {
        text += fmt::format("{0}\n{0}\n", line);
    }
    const std::vector<PerftestRun> runs = parse_perftest_log(text, "both.txt");
    ASSERT_EQ(runs.size(), 1u);
    EXPECT_EQ(runs[0].points.size(), 1u);
    EXPECT_TRUE(runs[0].both_sides);
}

TEST(Perftest, FailuresAndEmptyTables) {
    const std::string head = table("Gb/sec", "");
    EXPECT_EQ(parse_perftest_log(head, "a.txt").at(0).verdict, PerftestVerdict::failed);
    const PerftestRun run =
        parse_perftest_log(head + " Completion with error at client\n Failed status 12: wr_id 0\n", "a.txt").at(0);
    EXPECT_EQ(run.verdict, PerftestVerdict::failed);
    EXPECT_TRUE(contains(run.reason, "Completion with error"));
    EXPECT_THROW(parse_perftest_log("hello\n", "a.txt"), IngestError);
    EXPECT_EQ(parse_perftest_log(table("Gb/sec", "65536 5000 0.00 0.00 0.000000"), "a.txt").at(0).verdict,
              PerftestVerdict::suspicious);
}

TEST(Perftest, PrefixesDoNotCrash) {
    for (const std::string name :
         {"hdr200_ib_write_bw_loopback_8M_both-sides.txt", "cx6-roce200_ib_read_lat_pod.txt"}) {
        const std::string text = read_text_file(sample("ib/" + name));
        for (std::size_t length = 0; length < text.size(); length += 7) {
            try {
                for (const PerftestRun& run : parse_perftest_log(std::string_view(text).substr(0, length), "cut.txt")) {
                    EXPECT_EQ(run.verdict == PerftestVerdict::usable, run.reason.empty());
                }
            } catch (const IngestError&) {
            }
        }
    }
}

}  // namespace
}  // namespace fabricast
