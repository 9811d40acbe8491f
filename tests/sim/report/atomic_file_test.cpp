#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "sim/report/atomic_file.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;

class AtomicFile : public ::testing::Test {
protected:
    void SetUp() override {
        folder_ = fs::temp_directory_path() / ("fabricast-atomic-" + std::to_string(getpid()));
        fs::create_directories(folder_);
    }
    void TearDown() override { fs::remove_all(folder_); }

    static std::string read(const fs::path& path) {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
    }
    fs::path folder_;
};

std::string error_of(const std::string& path) {
    try {
        write_file_atomically(path, "x");
    } catch (const ScenarioError& error) {
        return error.what();
    }
    return "";
}

TEST_F(AtomicFile, WritesReplacesAndLeavesNothingElse) {
    const std::string path = folder_ / "result.json";
    write_file_atomically(path, "first");
    EXPECT_EQ(read(path), "first");
    const std::string large(3'000'000, 'x');
    write_file_atomically(path, large);
    EXPECT_EQ(read(path), large);
    EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, FailureNamesTheReasonAndKeepsTheOldFile) {
    EXPECT_NE(error_of(folder_ / "none" / "result.json").find("does not exist"), std::string::npos);
    EXPECT_NE(error_of(folder_).find("it is a directory"), std::string::npos);
    EXPECT_NE(error_of("").find("empty"), std::string::npos);
    write_file_atomically(folder_ / "plain", "kept");
    EXPECT_NE(error_of(folder_ / "plain" / "result.json").find("cannot write"), std::string::npos);
    EXPECT_EQ(read(folder_ / "plain"), "kept");
    EXPECT_NE(error_of(folder_ / std::string(250, 'n')).find("cannot write"), std::string::npos);
    EXPECT_EQ(files(), 1u);
}

TEST_F(AtomicFile, FullDiskIsTold) { EXPECT_NE(error_of("/dev/full").find("No space left"), std::string::npos); }

TEST_F(AtomicFile, FollowsALinkAndWritesToDevices) {
    fs::create_symlink("target.json", folder_ / "link.json");
    write_file_atomically(folder_ / "link.json", "through");
    EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
    EXPECT_EQ(read(folder_ / "target.json"), "through");
    EXPECT_NO_THROW(write_file_atomically("/dev/null", "gone"));
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(AtomicFile, NewFilesHaveOrdinaryPermissions) {
    const mode_t mask = umask(0022);
    write_file_atomically(folder_ / "result.json", "x");
    umask(mask);
    struct stat status {};
    ASSERT_EQ(stat((folder_ / "result.json").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777u, 0644u);
}

}  // namespace
}  // namespace fabricast
