#include "sim/report/atomic_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "sim/scenario/scenario.hpp"

namespace fabricast {
namespace {

[[noreturn]] void fail(const std::string& path, std::string_view why) {
    throw ScenarioError(fmt::format("cannot write {}: {}", path.empty() ? "''" : path, why));
}

std::string reason(int error) { return std::strerror(error); }

/// The file a chain of symbolic links ends at; it need not exist.
std::filesystem::path resolve(const std::string& path) {
    std::error_code error;
    std::filesystem::path target = path;
    for (int depth = 0; depth < 40 && std::filesystem::is_symlink(target, error); ++depth) {
        const std::filesystem::path next = std::filesystem::read_symlink(target, error);
        if (error)
            break;
        target = next.is_absolute() ? next : target.parent_path() / next;
    }
    return target;
}

struct Target {
    std::filesystem::path file;
    bool special = false;  ///< exists and is a device or pipe
};

Target checked_target(const std::string& path) {
    if (path.empty())
        fail(path, "the file name is empty");
    std::error_code error;
    Target target{resolve(path)};
    const auto status = std::filesystem::status(target.file, error);
    if (std::filesystem::is_directory(status))
        fail(path, "it is a directory");
    target.special = std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
    if (target.special)
        return target;
    std::filesystem::path folder = target.file.parent_path();
    if (folder.empty())
        folder = ".";
    if (!std::filesystem::exists(folder, error)) {
        fail(path, fmt::format("the directory {} does not exist", folder.string()));
    }
    if (!std::filesystem::is_directory(folder, error)) {
        fail(path, fmt::format("{} is not a directory", folder.string()));
    }
    if (access(folder.c_str(), W_OK | X_OK) != 0)
        fail(path, reason(errno));
    return target;
}

/// 0, or the errno of the call that failed.
int write_all(int file, std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = write(file, text.data(), text.size());
        if (written < 0) {
            if (errno == EINTR)
                continue;
            return errno;
        }
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
}

}  // namespace

void check_writable(const std::string& path) { checked_target(path); }

void write_file_atomically(const std::string& path, std::string_view text) {
    const Target target = checked_target(path);
    const std::filesystem::path temporary =
        target.special ? target.file : std::filesystem::path(fmt::format("{}.{}.tmp", target.file.string(), getpid()));
    const int flags = target.special ? O_WRONLY : O_WRONLY | O_CREAT | O_TRUNC;
    const int file = open(temporary.c_str(), flags | O_CLOEXEC, 0666);
    if (file < 0)
        fail(path, reason(errno));
    int error = write_all(file, text);
    if (error == 0 && !target.special && fsync(file) != 0)
        error = errno;
    if (close(file) != 0 && error == 0)
        error = errno;
    if (error == 0 && !target.special && std::rename(temporary.c_str(), target.file.c_str()) != 0)
        error = errno;
    if (error != 0) {
        if (!target.special)
            unlink(temporary.c_str());
        fail(path, reason(error));
    }
}

}  // namespace fabricast
