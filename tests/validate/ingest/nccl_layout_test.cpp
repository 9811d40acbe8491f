// Layout quirks of nccl-tests output, one a test.
#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"
#include "tests/validate/ingest/support.hpp"

namespace fabricast {
namespace {

NcclRun only(const std::string& text, const std::string& file = "log.txt") {
    const std::vector<NcclRun> runs = parse_nccl_log(text, file);
    EXPECT_EQ(runs.size(), 1u);
    return runs.at(0);
}

void expect_whole(const NcclRun& run, const MadeUpLog& log = {}) {
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_EQ(run.collective, "all_reduce");
    EXPECT_EQ(run.ranks, log.ranks);
    ASSERT_EQ(run.points.size(), static_cast<std::size_t>(log.rows));
    EXPECT_DOUBLE_EQ(run.points[0].out_of_place.algbw.value, 100);
    ASSERT_TRUE(run.points[0].in_place.has_value());
}

std::string each_line(const MadeUpLog& log, const std::string& before, const std::string& end = "\n") {
    std::string text;
    for (const std::string& line : log.lines()) {
        text += before + line + end;
    }
    return text;
}

TEST(NcclLayout, PlainTable) {
    const NcclRun run = only(MadeUpLog{}.text());
    expect_whole(run);
    EXPECT_EQ(run.line, 1);
    EXPECT_EQ(run.nodes, 1);
    EXPECT_EQ(run.devices.at(3).bus_id, "0000:13:00");
    EXPECT_EQ(run.devices.at(3).name, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(run.parameters->iterations, 20);
    EXPECT_EQ(run.parameters->warmup_iterations, 5);
    EXPECT_EQ(run.parameters->aggregated_iterations, 1);
    EXPECT_EQ(run.parameters->step_factor, 2);
    EXPECT_EQ(run.footer.out_of_bounds, 0);
    EXPECT_EQ(run.footer.average_busbw, 175);
    EXPECT_TRUE(run.notes.empty()) << run.notes.front();
}

TEST(NcclLayout, Prefixes) {
    for (const std::string prefix : {"0: ", "  3: ", "[1,0]<stdout>:", "[0] ", "run(), common.cu:12, ", "    ", "\t",
                                     "[pod/a/b] ", "2024-01-01T00:00:00Z ", "node7: ", "worker-3  | "}) {
        SCOPED_TRACE(prefix);
        expect_whole(only(each_line(MadeUpLog{}, prefix)));
    }
    expect_whole(only(each_line(MadeUpLog{}, "", "\r\n")));
}

TEST(NcclLayout, WithoutHashes) {
    std::string text = MadeUpLog{}.text();
    text.erase(std::remove(text.begin(), text.end(), '#'), text.end());
    expect_whole(only(text));
}

TEST(NcclLayout, TagsInsideTheRow) {
    std::string text;
    for (const std::string& line : MadeUpLog{}.lines()) {
        const std::size_t root = line.find(" -1 ");
        text += "[1,0]<stdout>:" + (root == std::string::npos ? line : with(line, " -1 ", " -1[1,0]<stdout>: ")) + "\n";
    }
    expect_whole(only(text));
}

TEST(NcclLayout, RowsInPieces) {
    const std::string info = "host-01:11:12 [3] NCCL INFO Launch mode Parallel";
    for (const std::string& between :
         std::vector<std::string>{"\n", "\n[0] ", "[0]  ", "\n" + info + "\n", info + "\n"}) {
        SCOPED_TRACE(between);
        std::string text;
        for (const std::string& line : MadeUpLog{}.lines()) {
            const std::size_t root = line.find(" -1 ");
            text += (root == std::string::npos ? line : with(line, " -1 ", " -1" + between)) + "\n";
        }
        expect_whole(only(text));
    }
}

TEST(NcclLayout, NoiseBetweenRows) {
    std::string text =
        "$ kubectl logs -f launcher\nWarning: Permanently added 'x' (ED25519) to the list of known hosts.\n";
    for (const std::string& line : MadeUpLog{}.lines()) {
        text += line + "\nhost-02:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE\n\n" +
                "[host-01:07511] 3 more processes have sent help message\n";
    }
    expect_whole(only(text));
}

TEST(NcclLayout, NoHeaderAndNothingButRows) {
    MadeUpLog log;
    log.header = false;
    expect_whole(only(log.text()));
    log.parameters = log.devices = log.footer = false;
    const NcclRun rows = only(log.text());
    expect_whole(rows);
    EXPECT_EQ(rows.ranks_from, NcclOrigin::ratio);
}

TEST(NcclLayout, OutOfPlaceHalfOnly) {
    const std::string text =
        "# nThread 1 nGpus 8 minBytes 1000000 maxBytes 2000000 step: 2(factor) iters: 20 validation: 0\n"
        "# Rank 0 Pid 1 on a device 0 [0x01] A100-SXM4\n#   Rank  1 Pid 1 on a device 1 [0x02] A100-SXM4\n"
        "#       size         count    type   redop     time   algbw   busbw  error\n"
        "     1000000        250000   float     sum    10.00  100.00  100.00  5e-07\n"
        "     2000000        500000   float     sum    20.00  100.00  100.00  5e-07\n";
    const NcclRun run = only(text);
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_EQ(run.points.size(), 2u);
    EXPECT_FALSE(run.points[0].in_place.has_value());
    EXPECT_EQ(run.ranks, 2);
    EXPECT_EQ(run.root, std::nullopt);
    EXPECT_DOUBLE_EQ(*run.points[0].out_of_place.wrong, 5e-7);
}

TEST(NcclLayout, TimestampsAndIterationColumnsAndExponents) {
    std::string text;
    for (const std::string& line : MadeUpLog{}.lines()) {
        text += line + (contains(line, "float") ? " 2025-11-03 14:05:06" : "") + "\n";
    }
    expect_whole(only(text));
    const NcclRun run = only(
        "#  size count type redop root time algbw busbw #wrong i_min i_max i_p99 i_cv% time algbw busbw #wrong i_min "
        "i_max "
        "i_p99 i_cv%\n"
        "17179869184 4294967296 float sum -1 2.0e+07 0.88 1.54 0 1 2 3 4 1.8e+07 0.97 1.70 0 1 2 3 4\n",
        "8xh100.txt");
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_DOUBLE_EQ(run.points.at(0).in_place->time_us.value, 1.8e7);
    EXPECT_EQ(run.ranks, 8);
    EXPECT_EQ(run.ranks_from, NcclOrigin::ratio);
}

TEST(NcclLayout, WrappedHeader) {
    std::string text;
    for (const std::string& line : MadeUpLog{}.lines()) {
        const bool header = contains(line, "count");
        text += (header ? with(line, "busbw #wrong     time", "busbw\n#wrong     time") : line) + "\n";
    }
    expect_whole(only(text));
}

TEST(NcclLayout, ZeroSizesOddSizesAndRepeats) {
    const NcclRun run = only(
        "# nThread 1 nGpus 1 minBytes 4 maxBytes 67108864 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 "
        "validation: 1 graph: 0\n"
        "#  size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
        "   0          0   double    none   -1     0.21    0.00    0.00   0     0.22    0.00    0.00   0\n"
        "   0          0   double    none   -1     0.21    0.00    0.00   0     0.22    0.00    0.00   0\n"
        "33553920  52428   double    none   -1   682.20   49.19   48.57   0   672.05   49.93   49.30   0\n"
        "33553920  52428   double    none   -1   682.20   49.19   48.57   0   672.05   49.93   49.30   0\n"
        "67107840 104856   double    none   -1   736.65   91.10   89.96   0   655.59  102.36  101.08   0\n",
        "80xh100.txt");
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_EQ(run.collective, "all_gather");
    EXPECT_EQ(run.ranks, 80);
    EXPECT_EQ(run.points.size(), 5u);
    EXPECT_EQ(run.points[2].count, 52428);
}

TEST(NcclLayout, ElidedRowsAreToldAndAreNotTruncation) {
    std::vector<std::string> lines = MadeUpLog{}.lines();
    const auto row =
        std::find_if(lines.begin(), lines.end(), [](const auto& line) { return contains(line, "2097152"); });
    *row = "        ...";
    const NcclRun run = only(joined(lines));
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_EQ(run.points.size(), 5u);
    EXPECT_EQ(run.notes.size(), 1u);
}

TEST(NcclLayout, DeviceListThatEndsInDots) {
    MadeUpLog log;
    log.ranks = 16;
    std::vector<std::string> lines = log.lines();
    const auto device =
        std::find_if(lines.begin(), lines.end(), [](const auto& line) { return contains(line, "Rank  4"); });
    *device = "# ...";
    lines.erase(device + 1, device + 12);
    const NcclRun run = only(joined(lines));
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
    EXPECT_EQ(run.ranks, 16);
    EXPECT_EQ(run.ranks_from, NcclOrigin::ratio);
    EXPECT_FALSE(run.nodes.has_value());
}

TEST(NcclLayout, SeveralRunsInOneFile) {
    const std::string banner = "# nccl-tests version 2.17.8 nccl-headers=22902 nccl-library=22902\n";
    const std::string all_reduce = banner + "# Collective test starting: all_reduce_perf\n" + MadeUpLog{}.text() +
                                   "#\n# Collective test concluded: all_reduce_perf\n#\n\n";
    MadeUpLog shared;
    shared.factor = 7.0 / 8;
    shared.redop = "none";
    shared.in_place_wrong = "N/A";
    const std::vector<NcclRun> runs = parse_nccl_log(
        all_reduce + banner + "# Collective test starting: alltoall_perf\n" + shared.text() + MadeUpLog{}.text(),
        "log.txt");
    ASSERT_EQ(runs.size(), 3u);
    EXPECT_EQ(runs[0].collective_from, NcclOrigin::banner);
    EXPECT_EQ(runs[0].nccl_version, "2.29.2");
    EXPECT_EQ(runs[0].nccl_tests_version, "2.17.8");
    EXPECT_EQ(runs[1].collective, "alltoall");
    EXPECT_EQ(runs[2].collective, "all_reduce");
    EXPECT_EQ(runs[2].collective_from, NcclOrigin::columns);
    EXPECT_EQ(runs[2].nccl_version, "");
    for (const NcclRun& run : runs) {
        EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
        EXPECT_EQ(run.points.size(), 6u);
    }
}

TEST(NcclLayout, RunThatDiedSilentlyBeforeTheNextOne) {
    MadeUpLog started;
    started.rows = 0;
    started.footer = started.header = false;
    const std::vector<NcclRun> runs = parse_nccl_log(started.text() + MadeUpLog{}.text(), "log.txt");
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].verdict, NcclVerdict::failed);
    EXPECT_EQ(runs[0].reason, "no result row");
    EXPECT_EQ(runs[1].verdict, NcclVerdict::usable) << runs[1].reason;
}

TEST(NcclLayout, SeveralTypesInOneTable) {
    MadeUpLog log;
    std::vector<std::string> lines = log.lines();
    const auto footer = lines.end() - 2;
    std::vector<std::string> halves;
    for (const std::string& line : lines) {
        if (contains(line, "float")) {
            halves.push_back(with(line, "float", " half"));
        }
    }
    lines.insert(footer, halves.begin(), halves.end());
    const std::vector<NcclRun> runs = parse_nccl_log(joined(lines), "log.txt");
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].datatype, "float");
    EXPECT_EQ(runs[1].datatype, "half");
    for (const NcclRun& run : runs) {
        EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
        EXPECT_EQ(run.points.size(), 6u);
        EXPECT_EQ(run.ranks, 8);
    }
}

TEST(NcclLayout, CollectiveFromColumns) {
    const auto recovered = [](const std::string& redop, const std::string& root, double factor,
                              const std::string& wrong, const std::string& file = "log.txt") {
        MadeUpLog log;
        log.redop = redop;
        log.root = root;
        log.factor = factor;
        log.in_place_wrong = wrong;
        return only(log.text(), file).collective;
    };
    EXPECT_EQ(recovered("sum", "-1", 1.75, "0"), "all_reduce");
    EXPECT_EQ(recovered("sum", "-1", 0.875, "0"), "reduce_scatter");
    EXPECT_EQ(recovered("sum", "-1", 1, "N/A"), "sendrecv");
    EXPECT_EQ(recovered("none", "-1", 0.875, "0"), "all_gather");
    EXPECT_EQ(recovered("none", "-1", 0.875, "N/A"), "alltoall");
    EXPECT_EQ(recovered("none", "0", 1, "0"), "broadcast");
    EXPECT_EQ(recovered("sum", "0", 1, "0"), "reduce");
    EXPECT_EQ(recovered("none", "0", 0.875, "0"), "");  // gather or scatter
}

TEST(NcclLayout, UncheckedShareNeedsTheFileName) {
    MadeUpLog log;
    log.redop = "none";
    log.factor = 0.875;
    log.in_place_wrong = "N/A";
    std::string text;
    for (const std::string& line : log.lines()) {  // validation off: N/A in both halves
        text += (contains(line, "float") ? with(line, "  0 ", "N/A ") : line) + "\n";
    }
    const NcclRun asked = only(text);
    EXPECT_EQ(asked.verdict, NcclVerdict::suspicious);
    EXPECT_TRUE(contains(asked.reason, "collective cannot be told")) << asked.reason;
    const NcclRun named = only(text, "nccl_allgather.log");
    EXPECT_EQ(named.verdict, NcclVerdict::usable) << named.reason;
    EXPECT_EQ(named.collective_from, NcclOrigin::file_name);
}

TEST(NcclLayout, CommandLineNamesTheNextRun) {
    MadeUpLog log;
    log.factor = 0.875;
    log.redop = "none";
    const NcclRun run = only("+ srun --mpi=pmix alltoall_perf_mpi -b 2K -e 8K\n" + log.text());
    EXPECT_EQ(run.collective, "alltoall");
    EXPECT_EQ(run.collective_from, NcclOrigin::command_line);
}

TEST(NcclLayout, VendorFieldsInTheParameterLine) {
    const std::string text =
        with(MadeUpLog{}.text(), "graph: 0", "graph: 1 unalign: 0 side_work: 0 work_sms: 3 direction: H2D");
    const NcclRun run = only(text);
    expect_whole(run);
    EXPECT_EQ(run.parameters->graph, 1);
    EXPECT_EQ(run.parameters->others.at("work_sms"), "3");
    EXPECT_EQ(run.parameters->others.at("direction"), "H2D");
}

TEST(NcclLayout, NoNcclTestsOutputIsAnError) {
    EXPECT_THROW(parse_nccl_log("", "a.txt"), IngestError);
    EXPECT_THROW(parse_nccl_log("hello\n1 2 3\nWarning: x\n", "a.txt"), IngestError);
    EXPECT_THROW(read_nccl_log("/no/such/file"), IngestError);
    EXPECT_THROW(parse_nccl_log("Out of bounds values : 0 OK\n", "a.txt"), IngestError);
}

}  // namespace
}  // namespace fabricast
