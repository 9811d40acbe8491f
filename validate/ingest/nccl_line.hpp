// One cleaned line of nccl-tests output: which kind it is, and its parts.
//
// Rows are taken from the right and never by columns of the screen: size count type [redop] [root] and then one or two
// halves of time algbw busbw wrong, each followed by four per-iteration columns in newer reports; a date and a time of
// day may end the line. A row printed in pieces (another rank wrote in between) is put together from its words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/ingest/nccl_log.hpp"

namespace fabricast {

enum class NcclLineKind {
    noise,
    version_banner,    ///< nccl-tests version V nccl-headers=N nccl-library=N
    start_banner,      ///< Collective test starting: NAME_perf
    parameters,        ///< nThread ...
    device,            ///< Rank ...
    header,            ///< size count type ...
    row_start,         ///< size count type, perhaps all of the row
    row_rest,          ///< numbers only: goes on with a row that was cut in pieces
    out_of_bounds,     ///< first footer line
    average,           ///< Avg bus bandwidth
    concluded,         ///< Collective test concluded
    reduced_max,       ///< Reducing maxBytes to N due to memory limitation
    elided,            ///< "..."
    test_failure,      ///< Test NCCL failure, Test CUDA failure, Test failure
    launcher_failure,  ///< mpirun, srun or MPI say that a process ended badly
};

/// Without a leading '#'.
std::string_view without_hash(std::string_view line);
/// The part of a cleaned line that nccl-tests printed: without '#', and without a label of a launcher that clean_line
/// does not know ("node7: # nThread ...", "worker-3 |  8 2 float ...").
std::string_view table_part(std::string_view line);
/// `line` is cleaned and has no '#'.
NcclLineKind kind_of(std::string_view line);

std::optional<NcclParameters> parse_parameters(std::string_view line);
std::optional<NcclDevice> parse_device(std::string_view line);

/// A row from its words.
struct NcclRow {
    NcclPoint point;
    std::string datatype, redop;
    std::optional<int> root;
};
/// Nothing when words are missing or are not numbers where numbers belong. root_column: whether the header has a root.
std::optional<NcclRow> parse_row(const std::vector<std::string>& row_words, int line, std::optional<bool> root_column);

/// "all_reduce" from "all_reduce_perf" or "all_reduce_perf_mpi" anywhere in a line; empty when none or several are named.
std::string collective_in_command(std::string_view line);
/// From "...allreduce..." or "all-reduce" in a file name; empty when none or more than one is named.
std::string collective_in_file_name(std::string_view name);
/// 2.29.3 from 22903.
std::string version_from_code(std::string_view code);

}  // namespace fabricast
