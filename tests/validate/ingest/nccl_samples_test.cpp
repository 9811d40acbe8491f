// Every sample log against its line of index.csv: runs, ranks, rows, sizes, type, peak bus bandwidth, smallest time.
#include <gtest/gtest.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"
#include "tests/validate/ingest/support.hpp"
#include "validate/ingest/health.hpp"

namespace fabricast {
namespace {

Csv index() { return Csv::read(sample("nccl_tests/index.csv")); }

std::vector<std::string> split(const std::string& text, const std::string& by) {
    std::vector<std::string> parts;
    std::size_t at = 0;
    for (std::size_t end = text.find(by); end != std::string::npos; end = text.find(by, at)) {
        parts.push_back(text.substr(at, end - at));
        at = end + by.size();
    }
    parts.push_back(text.substr(at));
    return parts;
}

/// "29 rows 8..2147483648 B float; peak out-of-place busbw 78.33 GB/s at 2147483648 B; smallest 8 B takes 164.3 us"
struct Table {
    std::size_t rows = 0;
    std::int64_t first = 0, last = 0, peak_bytes = 0, smallest = 0;
    std::string type;
    double peak = 0, time_us = 0;
};

std::vector<Table> tables_of(const std::string& shows) {
    std::vector<Table> tables;
    for (const std::string& part : split(shows, " | ")) {
        const std::size_t peak_at = part.find("; peak out-of-place busbw ");
        if (peak_at == std::string::npos) {
            continue;
        }
        const std::vector<std::string_view> head = words(std::string_view(part).substr(0, peak_at));
        const std::vector<std::string_view> tail = words(std::string_view(part).substr(peak_at + 2));
        Table table;
        table.type = head.back();  // ... N rows A..B B TYPE
        const std::string range(head[head.size() - 3]);
        table.rows = static_cast<std::size_t>(*whole_number(head[head.size() - 5]));
        table.first = *whole_number(range.substr(0, range.find("..")));
        table.last = *whole_number(range.substr(range.find("..") + 2));
        table.peak = printed_number(tail[3])->value;  // peak out-of-place busbw X GB/s at Y B; smallest S B takes T us
        table.peak_bytes = *whole_number(tail[6]);
        table.smallest = *whole_number(tail[9]);
        table.time_us = printed_number(tail[12])->value;
        tables.push_back(table);
    }
    return tables;
}

void expect_table(const NcclRun& run, const Table& table) {
    ASSERT_EQ(run.points.size(), table.rows);
    EXPECT_EQ(run.points.front().bytes, table.first);
    EXPECT_EQ(run.points.back().bytes, table.last);
    EXPECT_EQ(run.datatype, table.type);
    const NcclPoint* peak = &run.points.front();
    const NcclPoint* smallest = nullptr;
    for (const NcclPoint& point : run.points) {
        peak = point.out_of_place.busbw.value > peak->out_of_place.busbw.value ? &point : peak;
        smallest = smallest == nullptr && point.bytes > 0 ? &point : smallest;
        EXPECT_TRUE(point.in_place.has_value());
    }
    EXPECT_DOUBLE_EQ(peak->out_of_place.busbw.value, table.peak);
    EXPECT_EQ(peak->bytes, table.peak_bytes);
    EXPECT_EQ(smallest->bytes, table.smallest);
    EXPECT_DOUBLE_EQ(smallest->out_of_place.time_us.value, table.time_us);
}

TEST(NcclSamples, AllFiftyTwoAreThere) { EXPECT_EQ(index().size(), 52u); }

TEST(NcclSamples, EveryLogGivesWhatItsIndexSays) {
    const Csv csv = index();
    for (std::size_t i = 0; i < csv.size(); ++i) {
        SCOPED_TRACE(csv.text(i, "file"));
        const std::vector<NcclRun> runs = read_nccl_log(sample("nccl_tests/" + csv.text(i, "file")));
        const std::vector<std::string> collectives = split(csv.text(i, "runs"), "|");
        const std::vector<Table> tables = tables_of(csv.text(i, "shows"));
        ASSERT_EQ(runs.size(), collectives.size());
        const bool failed = csv.text(i, "verdict") == "failed";
        ASSERT_EQ(tables.size(), failed ? 0u : runs.size());
        for (std::size_t k = 0; k < runs.size(); ++k) {
            SCOPED_TRACE(collectives[k]);
            EXPECT_EQ(runs[k].collective, collectives[k]);
            EXPECT_EQ(runs[k].ranks, csv.integer(i, "ranks"));
            EXPECT_EQ(name_of(runs[k].verdict), csv.text(i, "verdict")) << runs[k].reason;
            const std::optional<double> nodes = csv.number_if_any(i, "nodes_told");
            EXPECT_EQ(runs[k].nodes.has_value(), nodes.has_value());
            EXPECT_EQ(runs[k].nodes.value_or(0), nodes.value_or(0));
            const std::string& version = csv.text(i, "nccl_version");
            if (!runs[k].nccl_version.empty() && !version.empty()) {
                EXPECT_EQ(runs[k].nccl_version, version);
            }
            if (failed) {
                EXPECT_TRUE(runs[k].points.empty());
                EXPECT_THROW(curve(runs[k]), IngestError);
            } else {
                expect_table(runs[k], tables[k]);
                EXPECT_EQ(curve(runs[k]).size(), runs[k].points.size());
            }
        }
    }
}

TEST(NcclSamples, FailedPairNamesTheFailureAndItsLine) {
    const std::vector<NcclRun> runs =
        read_nccl_log(sample("nccl_tests/16xh100-sxm_pairwise-failed_remote-process-exited.txt"));
    ASSERT_EQ(runs.size(), 2u);
    EXPECT_EQ(runs[0].reason,
              "line 22: host-02: Test NCCL failure common.cu:1279 'remote process exited or there was a "
              "network error / ' (and 5 more like it)");
    EXPECT_EQ(runs[1].line, 34);
    EXPECT_EQ(runs[1].devices.size(), 16u);
}

TEST(NcclSamples, RanksFromTheRatioAgainstTheFileName) {
    // The page this comes from calls it 64 GPUs; busbw / algbw is 2 * 95 / 96 in every row.
    const NcclRun run = read_nccl_log(sample("nccl_tests/64xh100-sxm_ib-ndr_allreduce_sharp.txt")).at(0);
    EXPECT_EQ(run.ranks, 96);
    EXPECT_EQ(run.ranks_from, NcclOrigin::ratio);
    EXPECT_NE(std::find(run.notes.begin(), run.notes.end(), "the file name says 64 ranks, busbw / algbw says 96"),
              run.notes.end());
    const NcclRun excerpt = read_nccl_log(sample("nccl_tests/128xh100-sxm_p5-efa_allreduce_topology-aware.txt")).at(0);
    EXPECT_EQ(excerpt.ranks, 128);
    EXPECT_EQ(excerpt.ranks_from, NcclOrigin::ratio);
}

TEST(NcclSamples, InfoLinesTellTheNetwork) {
    const NcclFacts efa = read_nccl_log(sample("nccl_tests/16xh100-sxm_p5-efa_allreduce_nccl2.22.3_mpirun-tags-info-"
                                               "interleaved.txt"))
                              .at(0)
                              .facts;
    EXPECT_EQ(efa.network, "AWS Libfabric");
    EXPECT_EQ(efa.network_transport, "ofi");
    EXPECT_EQ(efa.provider, "efa");
    EXPECT_EQ(efa.gpu_direct, true);
    EXPECT_EQ(efa.nvls, true);
    EXPECT_EQ(efa.coll_channels, 16);
    EXPECT_EQ(efa.ranks, 16);
    EXPECT_GT(efa.ring_lines, 0);
    EXPECT_GT(efa.tree_lines, 0);
    EXPECT_EQ(efa.environment.at("NCCL_NVLS_CHUNKSIZE").empty(), false);

    const NcclFacts old =
        read_nccl_log(sample("nccl_tests/16xv100-sxm2-32gb_p3dn-efa_allreduce_info-interleaved.txt")).at(0).facts;
    EXPECT_EQ(old.gpu_direct, false);  // why 100G EFA gives 6 GB/s and no more
    EXPECT_EQ(old.network_transport, "ofi");
    EXPECT_EQ(old.coll_channels, 8);
    EXPECT_EQ(old.nccl_version, "2.6.4");
    EXPECT_EQ(old.cuda_version, "10.2");

    const std::vector<NcclRun> noise =
        read_nccl_log(sample("nccl_tests/2xv100-sxm2_ib_allgather_and_allreduce_noise.txt"));
    ASSERT_EQ(noise.size(), 2u);
    for (const NcclRun& run : noise) {
        EXPECT_EQ(run.facts.network_transport, "ib");
        EXPECT_TRUE(run.facts.plugin_not_found);
        EXPECT_EQ(run.facts.gpu_direct, false);
        EXPECT_EQ(run.nccl_version, "2.26.5");
    }
    EXPECT_EQ(noise[0].collective_from, NcclOrigin::columns);
    EXPECT_EQ(noise[1].collective_from, NcclOrigin::command_line);
}

TEST(NcclSamples, OnlySickOrKnownSlowLogsFall) {
    const Csv csv = index();
    for (std::size_t i = 0; i < csv.size(); ++i) {
        const std::string& file = csv.text(i, "file");
        for (const NcclRun& run : read_nccl_log(sample("nccl_tests/" + file))) {
            for (const LogFinding& finding : log_findings(run)) {
                if (finding.kind == LogFindingKind::falling_bandwidth) {
                    const std::string& shows = csv.text(i, "shows");
                    EXPECT_TRUE(contains(shows, "sick") || contains(shows, "low")) << file << ": " << finding.sentence;
                }
            }
        }
    }
    for (const NcclRun& run : read_nccl_log(sample("nccl_tests/2xh100-sxm_1gpu-per-node_pairwise-slow.txt"))) {
        ASSERT_FALSE(log_findings(run).empty());
        EXPECT_EQ(log_findings(run).front().kind, LogFindingKind::falling_bandwidth);
    }
}

}  // namespace
}  // namespace fabricast
