// Output of nccl-tests (all_reduce_perf, ...) as typed runs, whatever launcher, version or web page it came through.
//
// One file may hold several runs. A run is a table of points: bytes, time, algbw, busbw, out of place and in place.
//     algbw = bytes / time                busbw = algbw x factor(collective, ranks)          GB/s = 1e9 bytes/s
//     factor: all_reduce 2(n-1)/n; all_gather, reduce_scatter, alltoall, gather, scatter (n-1)/n; others 1
// `bytes` of all_gather, reduce_scatter and alltoall is the whole buffer of one rank, `count` its share for one peer,
// so bytes is not count x element size.
//
// What a log does not say is recovered, and where it came from is kept: the collective from the start banner, the
// command line, the columns (redop, root, factor, unchecked in-place half), the file name; the rank count from the
// device list, NCCL's init lines, the ratio busbw / algbw, the file name.
//
// Every run gets a verdict. `usable` holds only when the table agrees with itself and nothing failed. A failed or
// suspicious run keeps its points to show, but curve() refuses to give them to a fit or a score.
//
// Not read: JSON output of nccl-tests (-J). Whether a usable run is fast enough is not asked here (health.hpp shows
// what a log alone reveals; comparing with the hardware is the business of validate/score).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/observed/text.hpp"
#include "validate/ingest/nccl_info.hpp"

namespace fabricast {

/// One "Rank ..." line of the device list.
struct NcclDevice {
    int rank = 0;
    std::string host;
    int index = 0;  ///< CUDA device on its host
    std::string bus_id;
    std::string name;  ///< empty for some RCCL builds
};

/// Out-of-place or in-place half of a row.
struct NcclHalf {
    Printed time_us;
    Printed algbw;                ///< GB/s
    Printed busbw;                ///< GB/s
    std::optional<double> wrong;  ///< wrong elements, or the largest error in old layouts; nothing for N/A
};

struct NcclPoint {
    std::int64_t bytes = 0;
    std::int64_t count = 0;
    NcclHalf out_of_place;
    std::optional<NcclHalf> in_place;
    int line = 0;
};

/// The "# nThread ..." line.
struct NcclParameters {
    int threads = 1, gpus_per_thread = 1;
    std::int64_t min_bytes = 0, max_bytes = 0;     ///< max_bytes after "Reducing maxBytes ..."
    std::int64_t step_factor = 0, step_bytes = 0;  ///< one of them is set
    std::optional<int> warmup_iterations, iterations, aggregated_iterations, validation, graph;
    std::map<std::string, std::string> others;  ///< keys that vendors and newer versions add
};

/// The lines after the table.
struct NcclFooter {
    std::optional<std::int64_t> out_of_bounds;
    bool out_of_bounds_ok = true;
    std::optional<double> average_busbw;  ///< over all sizes and both halves: never a plateau
};

enum class NcclVerdict { usable, failed, suspicious };
enum class NcclOrigin { unknown, banner, command_line, columns, device_list, init_lines, ratio, file_name };

std::string_view name_of(NcclVerdict verdict);
std::string_view name_of(NcclOrigin origin);

struct NcclRun {
    std::string file;
    int line = 0;            ///< first line of the run, from 1
    std::string collective;  ///< as nccl-tests names it: all_reduce, all_gather, alltoall, sendrecv ...; empty: unknown
    NcclOrigin collective_from = NcclOrigin::unknown;
    int ranks = 0;  ///< 0: unknown
    NcclOrigin ranks_from = NcclOrigin::unknown;
    std::optional<int> nodes;  ///< from host names, when the device list accounts for every rank
    std::vector<NcclDevice> devices;
    std::string datatype, redop;  ///< redop is empty in old layouts of collectives that have none
    std::optional<int> root;
    std::string nccl_version, cuda_version, nccl_tests_version;
    std::optional<NcclParameters> parameters;
    std::vector<NcclPoint> points;  ///< in the order of the log
    NcclFooter footer;
    NcclFacts facts;                 ///< from NCCL_DEBUG=INFO lines
    std::vector<std::string> notes;  ///< what was recovered, repaired or left out
    NcclVerdict verdict = NcclVerdict::failed;
    std::string reason;  ///< why it is not usable, one sentence
};

/// Every run in the file. Throws IngestError when the file cannot be read or holds no nccl-tests output at all.
std::vector<NcclRun> read_nccl_log(const std::filesystem::path& path);
std::vector<NcclRun> parse_nccl_log(std::string_view text, const std::string& file);

/// The points of a usable run. Throws IngestError with the reason for any other.
std::span<const NcclPoint> curve(const NcclRun& run);

/// The out-of-place half and, where there is one, the in-place half.
std::vector<const NcclHalf*> halves_of(const NcclPoint& point);

/// busbw / algbw; nothing for a collective that nccl-tests does not have.
std::optional<double> busbw_factor(std::string_view collective, int ranks);

}  // namespace fabricast
