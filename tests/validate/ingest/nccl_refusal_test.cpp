// "A failed or impossible log never yields a curve": each way a log can be wrong, and its reason.
#include <gtest/gtest.h>

#include "sim/observed/ingest_error.hpp"
#include "tests/validate/ingest/support.hpp"

namespace fabricast {
namespace {

/// The reason of the first run that is not usable; its curve must be refused with file and line.
std::string refusal(const std::string& text, NcclVerdict verdict = NcclVerdict::suspicious) {
    for (const NcclRun& run : parse_nccl_log(text, "log.txt")) {
        if (run.verdict == NcclVerdict::usable) {
            continue;
        }
        EXPECT_EQ(run.verdict, verdict) << run.reason;
        try {
            curve(run);
            ADD_FAILURE() << "a curve was given out";
        } catch (const IngestError& error) {
            EXPECT_TRUE(contains(error.what(),
                                 fmt::format("log.txt:{}: no curve from a {} run", run.line, name_of(run.verdict))));
        }
        return run.reason;
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
}

/// Rows of the made-up log with one of them changed; `row` counts from 0.
std::string with_row(int row, const std::string& what, const std::string& by) {
    std::vector<std::string> lines = MadeUpLog{}.lines();
    int seen = 0;
    for (std::string& line : lines) {
        if (contains(line, "float") && seen++ == row) {
            line = with(line, what, by);
        }
    }
    return joined(lines);
}

TEST(NcclRefusal, FailureLines) {
    MadeUpLog log;
    log.rows = 0;
    log.footer = false;
    const std::string failed = log.text() +
                               "host-02: Test NCCL failure common.cu:1279 'unhandled system error / '\n"
                               " .. host-02 pid 100016: Test failure common.cu:1100\n";
    EXPECT_TRUE(contains(refusal(failed, NcclVerdict::failed), "unhandled system error"));
    EXPECT_TRUE(
        contains(refusal(MadeUpLog{}.text() + "host-02: Test NCCL failure common.cu:1 'x'\n", NcclVerdict::failed),
                 "Test NCCL failure"));
    log.rows = 3;
    EXPECT_TRUE(
        contains(refusal(log.text() + "srun: error: host-02: task 9: Killed\n", NcclVerdict::failed), "Killed"));
}

TEST(NcclRefusal, LauncherMayComplainAfterTheTable) {
    const NcclRun run = parse_nccl_log(MadeUpLog{}.text() + "srun: error: host-02: task 9: Killed\n", "log.txt").at(0);
    EXPECT_EQ(run.verdict, NcclVerdict::usable) << run.reason;
}

TEST(NcclRefusal, NoRows) {
    MadeUpLog log;
    log.rows = 0;
    EXPECT_EQ(refusal(log.text(), NcclVerdict::failed), "no result row");
}

TEST(NcclRefusal, CutOffBeforeTheLargestSize) {
    MadeUpLog log;
    log.footer = false;
    std::vector<std::string> lines = log.lines();
    EXPECT_EQ(parse_nccl_log(joined(lines), "log.txt").at(0).verdict, NcclVerdict::usable);  // all sizes are there
    lines.pop_back();
    EXPECT_EQ(refusal(joined(lines)), "cut off: the last row is 16777216 B, the run was to go on to 33554432 B");
}

TEST(NcclRefusal, CutOffInsideARow) {
    MadeUpLog log;
    log.footer = log.parameters = false;
    const std::string text = log.text();
    EXPECT_TRUE(contains(refusal(text.substr(0, text.size() - 12)), "the log ends inside the row"));
}

TEST(NcclRefusal, WrongResults) {
    EXPECT_TRUE(contains(refusal(with_row(2, "     0 ", "  4096 ")), "4096 wrong results"));
    EXPECT_TRUE(contains(refusal(with_row(2, "     0 ", " 1e+06 ")), "1000000 wrong results"));
    EXPECT_TRUE(
        contains(refusal(with(MadeUpLog{}.text(), "values : 0 OK", "values : 3 FAILED")), "3 values out of bounds"));
}

TEST(NcclRefusal, TimeAlgbwAndBusbwMustBelongTogether) {
    EXPECT_TRUE(contains(refusal(with_row(0, " 100.00 ", " 110.00 ")), "algbw says 110"));
    EXPECT_TRUE(contains(refusal(with_row(0, "175.00", "185.00")), "the factor of all_reduce on 8 ranks"));
    EXPECT_TRUE(contains(refusal(with_row(0, "10.49", " 0.00")), "time 0 for a size above 0"));
    EXPECT_TRUE(contains(refusal(with_row(0, " 10.49", "-10.49")), "a negative value"));
}

TEST(NcclRefusal, DeviceListAgainstRatio) {
    MadeUpLog log;
    log.factor = 2.0 * 15 / 16;
    EXPECT_TRUE(contains(refusal(log.text()), "the factor of all_reduce on 8 ranks"));
}

TEST(NcclRefusal, BusbwAboveTheWires) {
    MadeUpLog log;
    log.device_name = "Tesla V100-SXM2-32GB";
    EXPECT_EQ(log.runs().at(0).verdict, NcclVerdict::usable);  // 175 of 300, what NVLink SHARP could reach
    log.redop = "none";
    log.root = "0";
    log.factor = 1;
    EXPECT_EQ(log.runs().at(0).verdict, NcclVerdict::usable);  // broadcast, 100 of 150
    log.device_name = "NVIDIA H100 80GB HBM3";
    const NcclRun run = parse_nccl_log(
                            "# Collective test starting: sendrecv_perf\n"
                            "# Rank 0 Pid 1 on a device 0 [0x1] NVIDIA H100 80GB HBM3\n"
                            "# Rank 1 Pid 1 on a device 1 [0x2] NVIDIA H100 80GB HBM3\n"
                            "1000000 250000 float sum -1 2.00 500.00 500.00 0 2.00 500.00 500.00 N/A\n",
                            "log.txt")
                            .at(0);
    EXPECT_EQ(run.verdict, NcclVerdict::suspicious);
    EXPECT_TRUE(contains(run.reason, "more than the wires")) << run.reason;
}

TEST(NcclRefusal, SizesThatGoBack) {
    std::vector<std::string> lines = MadeUpLog{}.lines();
    const auto row = std::find_if(lines.begin(), lines.end(), [](const auto& line) { return contains(line, "float"); });
    std::iter_swap(row + 2, row + 3);
    EXPECT_TRUE(contains(refusal(joined(lines)), "the size goes back from 8388608 B to 4194304 B"));
}

TEST(NcclRefusal, PlaceholdersForNumbers) {
    EXPECT_TRUE(contains(refusal(with_row(2, "100.00", "XXX.XX")), "something other than numbers"));
}

TEST(NcclRefusal, CpuTimes) {
    EXPECT_TRUE(
        contains(refusal(with(MadeUpLog{}.text(), "    time   algbw", " cputime   algbw")), "CPU launch times"));
}

/// A build without MPI: every process prints its own table of one rank, line by line into one another.
TEST(NcclRefusal, BuiltWithoutMpi) {
    const auto interleaved = [](int ranks, int processes) {
        MadeUpLog log;
        log.ranks = ranks;
        std::string text;
        for (const std::string& line : log.lines()) {
            for (int i = 0; i < processes; ++i) {
                const bool parameters = contains(line, "nGpus 1");
                text += (parameters ? with(line, "nGpus 1", fmt::format("nGpus {}", ranks)) : line) + "\n";
            }
        }
        return text;
    };
    EXPECT_EQ(parse_nccl_log(interleaved(1, 4), "log.txt").size(), 1u);
    EXPECT_EQ(refusal(interleaved(1, 4)),
              "4 separate runs printed over one another, each with its own ranks: nccl-tests was built without MPI=1");
    EXPECT_EQ(refusal(interleaved(8, 2)),
              "2 separate runs printed over one another, each with its own ranks: nccl-tests was built without MPI=1");
    const std::string banners =
        "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"
        "# Collective test starting: all_reduce_perf\n";
    EXPECT_TRUE(contains(refusal(banners + banners + banners + interleaved(8, 3)), "3 separate runs"));
    MadeUpLog one;
    one.ranks = 1;
    EXPECT_EQ(refusal(one.text()), "one rank: nothing was communicated");
    one.devices = false;
    EXPECT_EQ(refusal(one.text()), "one rank: nothing was communicated");
}

/// The second process starts when the first has printed rows.
TEST(NcclRefusal, SecondProcessStartsLate) {
    const std::vector<std::string> lines = MadeUpLog{}.lines();
    const auto rows =
        std::find_if(lines.begin(), lines.end(), [](const auto& line) { return contains(line, "float"); });
    for (int early = 1; early < 6; ++early) {
        std::vector<std::string> text(lines.begin(), rows + early);
        text.insert(text.end(), lines.begin(), rows);
        for (auto row = rows; row != lines.end(); ++row) {
            text.push_back(*row);
            if (row - rows + early < lines.end() - rows) {
                text.push_back(*(row + early));
            }
        }
        for (const NcclRun& run : parse_nccl_log(joined(text), "log.txt")) {
            EXPECT_NE(run.verdict, NcclVerdict::usable) << early;
        }
    }
}

TEST(NcclRefusal, RanksThatCannotBeTold) {
    MadeUpLog log;
    log.devices = false;
    log.redop = "none";
    log.root = "0";
    log.factor = 1;  // broadcast: the same on any number of ranks
    EXPECT_TRUE(contains(refusal(log.text()), "rank count cannot be told"));
    log.factor = 2.0 * 999 / 1000;  // 1000 and its neighbours print alike
    log.redop = "sum";
    log.root = "-1";
    EXPECT_TRUE(contains(refusal(log.text()), "rank count cannot be told"));
    EXPECT_EQ(log.runs("1000xh100.txt").at(0).verdict, NcclVerdict::usable);
}

/// Every prefix: no crash, and a usable verdict only with the right rank count and collective.
TEST(NcclRefusal, PrefixesOfRealLogs) {
    struct Sample {
        std::string file;
        int ranks;
    };
    for (const Sample& log :
         {Sample{"2xv100-sxm2_ib_allgather_and_allreduce_noise.txt", 2},
          Sample{"20xh100-sxm_10nodes-2gpu_ib_five-collectives_double.txt", 20},
          Sample{"16xh100-sxm_p5-efa_allreduce_nccl2.22.3_mpirun-tags-info-interleaved.txt", 16},
          Sample{"16xh200-sxm_gcp-a3ultra-roce_allgather.txt", 16}, Sample{"8xa100-sxm_sendrecv_na-wrong.txt", 8}}) {
        SCOPED_TRACE(log.file);
        const std::string text = read_text_file(sample("nccl_tests/" + log.file));
        int usable = 0, refused = 0, empty = 0;
        for (std::size_t length = 0; length < text.size(); length += 97) {
            try {
                for (const NcclRun& run : parse_nccl_log(std::string_view(text).substr(0, length), "cut.txt")) {
                    if (run.verdict != NcclVerdict::usable) {
                        EXPECT_FALSE(run.reason.empty());
                        ++refused;
                        continue;
                    }
                    ++usable;
                    EXPECT_EQ(run.ranks, log.ranks) << length;
                    EXPECT_FALSE(run.collective.empty()) << length;
                    EXPECT_FALSE(run.points.empty()) << length;
                }
            } catch (const IngestError&) {
                ++empty;  // nothing of a run yet
            }
        }
        EXPECT_GT(usable + refused + empty, 5);
    }
}

/// Damaged bytes: no crash, no curve without collective and ranks.
TEST(NcclRefusal, DamagedLogs) {
    for (const std::string file :
         {"16xh100-sxm_pairwise-good_alltoall-sendrecv.txt", "8xh100-sxm_allreduce_half_smc.txt"}) {
        const std::string text = read_text_file(sample("nccl_tests/" + file));
        for (std::size_t at = 0; at < text.size(); at += 29) {
            for (const char c : {'9', '#', ' ', '\n', 'x', '-', ':', '['}) {
                std::string damaged = text;
                damaged[at] = c;
                for (const NcclRun& run : parse_nccl_log(damaged, "damaged.txt")) {
                    EXPECT_TRUE(run.verdict != NcclVerdict::usable ||
                                (run.ranks > 1 && !run.collective.empty() && !run.points.empty()));
                }
            }
        }
    }
}

}  // namespace
}  // namespace fabricast
