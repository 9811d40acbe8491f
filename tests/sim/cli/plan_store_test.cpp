// A plan that is killed at any moment goes on where it was: no evaluation is lost, none is made twice, the table is the same.
//
// FABRICAST_KILLS says how often it is killed; a few seconds' worth when absent.
#include <gtest/gtest.h>

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "binary.hpp"
#include "models/program/mix.hpp"
#include "sim/plan/store.hpp"

namespace fabricast::testing {
namespace {

constexpr const char* kMany = R"(name: kill
cluster: {nodes: 2, node: hgx-h800, fabric: {nic: 100 Gb/s}}
model: {layers: 8, hidden: 2048, heads: 16, ffn: 8192, vocab: 50000}
training: {sequence: 16384 tokens, global_batch: 32 sequences}
plan: {tp: [1, 2], cp: [1, 2, 4], pp: [1, 2, 4], vpp: [1, 2], schedule: [1f1b, gpipe, interleaved, zb-h1, zb-h2, zb-v],
       micro_batch: [1], zero: [1, 3], recompute: [none, selective]}
)";

// The same in little.
const std::string kFew =
    std::string(kMany).substr(0, std::string(kMany).find("plan:")) +
    "plan: {tp: [1, 2], cp: [1, 2], pp: [1, 2, 4], vpp: [1, 2], schedule: [1f1b, interleaved, zb-h1], "
    "micro_batch: [1], zero: [1], recompute: [none, selective]}\n";

void write_text(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

class PlanStore : public ::testing::Test {
protected:
    PlanStore() { write_text(scenario(), kFew); }
    std::string scenario() const { return scratch_.path("kill.yaml"); }
    std::string path(const std::string& name) const { return scratch_.path(name); }
    Ended plan(const std::string& options, const std::string& before = "") const {
        return fabricast("plan '" + scenario() + "' --jobs 2 " + options, before);
    }

    // The program itself, not a shell that would outlive it.
    pid_t start(const std::string& store) const {
        const std::string file = scenario();
        const pid_t child = fork();
        if (child == 0) {
            const int nothing = open("/dev/null", O_WRONLY);
            dup2(nothing, STDOUT_FILENO);
            dup2(nothing, STDERR_FILENO);
            execl(FABRICAST_BINARY, FABRICAST_BINARY, "plan", file.c_str(), "--store", store.c_str(), "--jobs", "2",
                  static_cast<char*>(nullptr));
            _exit(127);
        }
        return child;
    }

    // False: it ended before.
    static bool until_writing(const std::string& store, pid_t child) {
        siginfo_t ended = {};
        while (!std::filesystem::exists(store + "-wal")) {
            if (waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                ended.si_pid == child)
                return false;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }

private:
    Scratch scratch_;
};

TEST_F(PlanStore, SurvivesKills) {
    const char* asked = std::getenv("FABRICAST_KILLS");
    const int kills = asked != nullptr ? std::atoi(asked) : 10;
    // Seconds, where nobody asked: slow builds are killed less often.
#ifdef NDEBUG
    constexpr double kLongest = 10;
#else
    constexpr double kLongest = 4;
#endif
    write_text(scenario(), kMany);
    const Ended alone = plan("--quiet");
    ASSERT_EQ(alone.code, 0) << alone.err;
    const auto since = [begin = std::chrono::steady_clock::now()] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    // What a run takes until it has a store, and in all.
    const pid_t whole_run = start(path("alone.db"));
    ASSERT_TRUE(until_writing(path("alone.db"), whole_run));
    const double before = since();
    ASSERT_EQ(waitpid(whole_run, nullptr, 0), whole_run);
    const double whole = since();
    const std::uint64_t evaluations = plan::Store(path("alone.db")).size();
    ASSERT_GT(evaluations, 50u);

    const std::string store = path("killed.db");
    std::uint64_t draw = 2026, had = 0, in_the_middle = 0;
    int killed = 0;
    const double kills_begin = since();
    const auto enough = [&] {
        return killed >= kills || (asked == nullptr && killed >= 3 && since() - kills_begin > kLongest);
    };
    while (!enough()) {
        const pid_t child = start(store);
        ASSERT_GT(child, 0);
        draw = mix(draw + 1);
        const double share = static_cast<double>(draw >> 11) / static_cast<double>(std::uint64_t{1} << 53);
        // At any moment of it, and every second time at one when it is writing.
        const bool writing = killed % 2 == 0 && until_writing(store, child);
        std::this_thread::sleep_for(std::chrono::duration<double>((writing ? whole - before : whole) * 0.8 * share));
        kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        const bool ended = WIFEXITED(status);
        ASSERT_TRUE(!ended || WEXITSTATUS(status) == 0);
        killed += ended ? 0 : 1;
        if (!std::filesystem::exists(store) || std::filesystem::file_size(store) == 0)
            continue;  // killed before it had made one
        std::uint64_t has = 0;
        try {
            plan::Store after(store);
            has = after.size();
            EXPECT_EQ(after.repeats(), 0u) << "after kill " << killed;
        } catch (const ScenarioError& error) {
            EXPECT_TRUE(contains(error.what(), "it is empty")) << error.what();
        }
        EXPECT_GE(has, had) << "after kill " << killed;
        had = has;
        in_the_middle += !ended && has > 0 && has < evaluations ? 1 : 0;
        if (has < evaluations && !enough())
            continue;
        // All there, or the last kill: the rest is evaluated, and the next kills begin anew.
        const Ended last = plan("--quiet --store '" + store + "'");
        EXPECT_EQ(last.code, 0) << last.err;
        EXPECT_EQ(last.out, alone.out);
        {
            plan::Store done(store);
            EXPECT_EQ(done.size(), evaluations);
            EXPECT_EQ(done.repeats(), 0u);
        }
        std::filesystem::remove(store);
        had = 0;
    }
    EXPECT_GE(in_the_middle, 1u) << "kills that struck a store half full";
    std::printf("%d kills, %d of them with a store half full, %d evaluations\n", killed,
                static_cast<int>(in_the_middle), static_cast<int>(evaluations));
}

TEST_F(PlanStore, IsWrittenByOneProcess) {
    plan("--quiet --store '" + path("p.db") + "'");
    const plan::Store held(path("p.db"));
    const Ended second = plan("--store '" + path("p.db") + "'");
    EXPECT_EQ(second.code, 2);
    EXPECT_EQ(second.out, "");
    EXPECT_EQ(second.err, path("p.db") + ": another process has it open; one at a time writes a store\n");
}

TEST_F(PlanStore, OfAnotherProgramsVersionIsRefused) {
    ASSERT_EQ(plan("--quiet --store '" + path("good.db") + "'").code, 0);
    // of a good one each time, so that one damage does not hide the next
    const auto change = [&](const char* sql) {
        std::filesystem::copy_file(path("good.db"), path("p.db"), std::filesystem::copy_options::overwrite_existing);
        sqlite3* database = nullptr;
        ASSERT_EQ(sqlite3_open(path("p.db").c_str(), &database), SQLITE_OK);
        ASSERT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
        sqlite3_close(database);
    };
    const auto err = [&] { return plan("--store '" + path("p.db") + "'").err; };
    change("PRAGMA user_version = 99");
    EXPECT_TRUE(contains(err(), "its format is 99, this program reads 1")) << err();
    change("UPDATE about SET value = 'x' WHERE key = 'model.layers'");
    EXPECT_TRUE(contains(err(), "what it says of itself does not fit its digest")) << err();
    change("DROP TABLE evaluations");
    EXPECT_TRUE(contains(err(), "it is damaged: no such table: evaluations")) << err();
    change("DROP TABLE about");
    EXPECT_TRUE(contains(err(), "it is damaged: no such table: about")) << err();
    change("UPDATE evaluations SET step_ps = step_ps + 1");
    EXPECT_TRUE(contains(err(), "does not fit its checksum")) << err();
    change("PRAGMA application_id = 7");
    EXPECT_TRUE(contains(err(), "not a store of fabricast plan")) << err();
    change("SELECT 1");
    EXPECT_FALSE(contains(err(), "p.db: ")) << err();
}

TEST_F(PlanStore, FullDiskIsToldAndWhatWasDoneIsKept) {
    // A limit on the size of files stands for a full disk: it strikes the same calls, and needs no rights.
    const Ended full =
        fabricast("plan '" + scenario() + "' --jobs 2 --store '" + path("p.db") + "'", "trap '' XFSZ; ulimit -f 60;");
    EXPECT_EQ(full.code, 2);
    EXPECT_EQ(full.out, "");
    EXPECT_TRUE(contains(full.err, "a full disk, a quota or a limit on the size of files")) << full.err;
    const Ended rest = plan("--store '" + path("p.db") + "'");
    EXPECT_EQ(rest.code, 0);
    EXPECT_EQ(rest.out, plan("").out);
    EXPECT_FALSE(contains(rest.err, " 0 known")) << rest.err;
    EXPECT_EQ(plan::Store(path("p.db")).repeats(), 0u);
    const Ended device = plan("--store /dev/full");
    EXPECT_EQ(device.code, 2);
    EXPECT_TRUE(contains(device.err, "/dev/full: ")) << device.err;
}

TEST_F(PlanStore, ShardsAndMergePrintTheTableOfOneProcess) {
    const std::string asked = "--top 40 --what-if 'nic 100 -> 50 Gb/s' --where 'bubble < 0.5'";
    const Ended alone = plan(asked);
    const std::string store = " --store '" + path("p.db") + "' " + asked;
    for (const char* shard : {"0/3", "2/3"}) {
        const Ended part = plan("--shard " + std::string(shard) + store);
        EXPECT_EQ(part.code, 0) << part.err;
        EXPECT_EQ(part.out, "");
    }
    const Ended early = fabricast("plan merge '" + path("p.db") + "'");
    EXPECT_EQ(early.code, 2);
    EXPECT_EQ(early.out, "");
    EXPECT_TRUE(contains(early.err, "of 3 shards, shard 1 was not begun and lacks ")) << early.err;
    EXPECT_TRUE(contains(early.err, "--array=1)")) << early.err;
    ASSERT_EQ(plan("--quiet --shard 1/3" + store).code, 0);
    const Ended merged = fabricast("plan merge '" + path("p.db") + "'");
    EXPECT_EQ(merged.code, 0) << merged.err;
    EXPECT_EQ(merged.out, alone.out);
    const Ended named = fabricast("plan merge '" + path("q.db") + "' '" + path("p.db.2") + "' '" + path("p.db.0") +
                                  "' '" + path("p.db.1") + "' --json");
    EXPECT_EQ(named.out, plan(asked + " --json").out) << named.err;
}

TEST_F(PlanStore, OptionsThatDoNotGoTogetherAreRefused) {
    for (const char* options :
         {"--shard 1/3", "--store p.db --shard 3/3", "--store p.db --shard x", "--store p.db --shard 1", "--submit",
          "--store p.db --shard 0/2 --json", "--slurm 0", "--slurm 1000000", "--slurm 2 --json"}) {
        const Ended ended = plan(options);
        EXPECT_EQ(ended.code, 2) << options;
        EXPECT_TRUE(contains(ended.err, "fabricast plan: ")) << options << ": " << ended.err;
    }
    EXPECT_EQ(fabricast("plan merge").code, 2);
    EXPECT_EQ(fabricast("plan merge a.db --where 'tp < 2'").code, 2);
}

TEST_F(PlanStore, SlurmScriptSaysWhatToRun) {
    const Ended ended = plan("--slurm 3 --store '" + path("p q.db") + "' --where 'tp <= 2'");
    ASSERT_EQ(ended.code, 0) << ended.err;
    EXPECT_TRUE(contains(ended.out, "begin:  sbatch '")) << ended.out;
    EXPECT_TRUE(contains(ended.out, "then:   fabricast plan merge '")) << ended.out;
    const std::string script = read_text(path("p q.db.sbatch"));
    for (const char* line : {"#SBATCH --array=0-2\n", "#SBATCH --requeue\n", "#SBATCH --cpus-per-task=2\n",
                             " --where 'tp <= 2' ", " --shard \"$SLURM_ARRAY_TASK_ID/3\" "})
        EXPECT_TRUE(contains(script, line)) << script;
    // The script is what a task runs: all three, in turn, and the table is that of one process.
    for (const char* task : {"0", "1", "2"}) {
        const std::string command =
            "SLURM_ARRAY_TASK_ID=" + std::string(task) + " bash '" + path("p q.db.sbatch") + "' 2>/dev/null";
        EXPECT_EQ(std::system(command.c_str()), 0);
    }
    EXPECT_EQ(fabricast("plan merge '" + path("p q.db") + "'").out, plan("--where 'tp <= 2'").out);
}

}  // namespace
}  // namespace fabricast::testing
