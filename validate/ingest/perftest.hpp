// Output of perftest (ib_write_bw, ib_read_lat, ib_send_bw, ...) as typed points.
//
// A file is one or more blocks: title, parameters, addresses, column header, rows. Bandwidths become Gb/s (1e9 bit/s):
//     "Gb/sec" as it is;  "MB/sec" and "MiB/sec" both mean 2^20 bytes/s;  "GB/sec" 1e9 bytes/s
// The side that was not told --report_gbits prints the other side's Gb/s figure under "MB/sec", so the unit of the
// header is checked against message rate x bytes and the unit that agrees is taken (noted when it is the other one).
//
// A log of both sides holds every line twice, block after block or line by line: it is told as one run. With
// --run_infinitely or a duration, rows of one size repeat and peaks are 0: the rows stay, the peak is unset.
// Not read: --out_json files, the extra columns of --report-per-port beyond the first bandwidth pair.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

enum class PerftestKind { bandwidth, latency };
enum class PerftestVerdict { usable, failed, suspicious };

struct PerftestPoint {
    std::int64_t bytes = 0;
    std::int64_t iterations = 0;
    int line = 0;
    // bandwidth
    std::optional<double> peak_gbit_per_s;
    double average_gbit_per_s = 0;
    std::optional<double> message_rate_mpps;
    // latency, us; one way for write and send, there and back for read and atomic
    std::optional<double> minimum_us, maximum_us, typical_us, deviation_us, p99_us, p999_us;
    double average_us = 0;
};

struct PerftestRun {
    std::string file;
    int line = 0;           ///< of the title
    std::string title;      ///< "RDMA_Write BW Test"
    std::string operation;  ///< write, read, send, atomic
    PerftestKind kind = PerftestKind::bandwidth;
    std::string device, transport, connection;
    std::string link_type;  ///< "IB" or "Ethernet" (RoCE)
    std::optional<int> mtu_bytes, queue_pairs, gid_index, tx_depth;
    std::optional<bool> rdma_cm;
    bool both_sides = false;      ///< client and server printed the same rows
    bool both_ways = false;       ///< bandwidths of the two directions summed ("Bidirectional BW Test")
    bool loopback = false;        ///< both ends are one InfiniBand port (equal LIDs)
    bool run_infinitely = false;  ///< one size again and again, no peak
    std::vector<PerftestPoint> points;
    std::vector<std::string> warnings;  ///< as printed, each once; CPU frequency warnings make small sizes unreliable
    std::vector<std::string> notes;
    PerftestVerdict verdict = PerftestVerdict::failed;
    std::string reason;
};

std::string_view name_of(PerftestVerdict verdict);

/// The text has a title of one of these tests.
bool is_perftest_log(std::string_view text);

/// Throws IngestError when the file cannot be read or holds no perftest output.
std::vector<PerftestRun> read_perftest_log(const std::filesystem::path& path);
std::vector<PerftestRun> parse_perftest_log(std::string_view text, const std::string& file);

}  // namespace fabricast
