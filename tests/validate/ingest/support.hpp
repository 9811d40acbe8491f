// Shared by the tests of validate/ingest: the sample files, and made-up nccl-tests tables that are right by default.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "sim/observed/text.hpp"
#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

inline std::filesystem::path sample(const std::string& name) {
    return std::filesystem::path(FABRICAST_SOURCE_DIR) / "tests/validate/ingest/data" / name;
}

/// A table of an all-reduce on `ranks` GPUs of one host at a constant 100 GB/s algbw, 1 MiB and up, doubling.
struct MadeUpLog {
    int ranks = 8;
    int rows = 6;
    bool parameters = true, devices = true, header = true, footer = true;
    std::string device_name = "NVIDIA H100 80GB HBM3";
    std::string redop = "sum", root = "-1";
    double factor = -1;  ///< below 0: that of all_reduce
    std::string in_place_wrong = "0";

    static std::string row_values(double bytes, double factor, const std::string& wrong) {
        const double time = bytes / 100e3;  // 100 GB/s
        const double algbw = bytes / time / 1e3;
        return fmt::format("{:>9.2f} {:>7.2f} {:>7.2f} {:>6}", time, algbw, algbw * factor, wrong);
    }
    std::string row(std::int64_t bytes) const {
        const double f = factor < 0 ? 2.0 * (ranks - 1) / ranks : factor;
        return fmt::format("{:>12} {:>12}     float {:>7} {:>7} {} {}", bytes, bytes / 4, redop, root,
                           row_values(static_cast<double>(bytes), f, "0"),
                           row_values(static_cast<double>(bytes), f, in_place_wrong));
    }
    std::vector<std::string> lines() const {
        std::vector<std::string> out;
        const std::int64_t first = 1 << 20;
        if (parameters) {
            out.push_back(
                fmt::format("# nThread 1 nGpus 1 minBytes {} maxBytes {} step: 2(factor) warmup iters: 5 iters: "
                            "20 agg iters: 1 validation: 1 graph: 0",
                            first, first << std::max(0, rows - 1)));
            out.emplace_back("#");
        }
        if (devices) {
            out.emplace_back("# Using devices");
            for (int rank = 0; rank < ranks; ++rank) {
                out.push_back(
                    fmt::format("#  Rank {:>2} Group  0 Pid {:>6} on    host-01 device {:>2} [0000:{:02x}:00] {}", rank,
                                1000 + rank, rank, rank + 16, device_name));
            }
        }
        if (header) {
            out.emplace_back("#");
            out.emplace_back("#                                  out-of-place                       in-place");
            out.emplace_back(
                "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
                "time   algbw   busbw #wrong");
            out.emplace_back(
                "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)"
                "  (GB/s)  (GB/s)");
        }
        for (int i = 0; i < rows; ++i) {
            out.push_back(row(first << i));
        }
        if (footer) {
            out.emplace_back("# Out of bounds values : 0 OK");
            out.emplace_back("# Avg bus bandwidth    : 175");
        }
        return out;
    }
    std::string text() const { return fmt::format("{}\n", fmt::join(lines(), "\n")); }
    std::vector<NcclRun> runs(const std::string& file = "log.txt") const { return parse_nccl_log(text(), file); }
};

inline std::string joined(const std::vector<std::string>& lines, const std::string& end = "\n") {
    return fmt::format("{}{}", fmt::join(lines, end), end);
}

/// Replaces the first occurrence; the text must be there.
inline std::string with(std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
}

}  // namespace fabricast
