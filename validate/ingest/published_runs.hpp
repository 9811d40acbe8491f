// Measured training step times that others published, with the configuration of the run: one row of
// published_runs.csv.
//
// Step time is what is compared. `measured_step_s` is published, or arithmetic on published tokens per second
// (`derived_fields` of the file says which). A row is complete (`config` = full) when GPU, GPU count, shape, sequence,
// layout, batch and step time are there; recomputation, interleaving, fabric and overlap may still be blank, and what is
// blank stays blank here (empty text, no value): filling is the business of validate/score/run_score_rules.
//
// Checked on reading: numbers are numbers, sizes are positive, tp pp cp dp = gpus. Refused with file and line otherwise.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

struct PublishedRun {
    std::string id;          ///< "dgxc-023"
    std::string source_key;  ///< "dgxc": rows of one source share its bias
    std::string source;      ///< where the number was read
    std::string notes;
    int line = 0;  ///< of the file
    bool full = false;
    // cluster
    std::string gpu, intranode, internode;
    std::int64_t gpus = 0, gpus_per_node = 0;
    // model
    std::string model;
    std::optional<double> params_b;
    std::int64_t layers = 0, hidden = 0, heads = 0, sequence = 0;
    std::optional<std::int64_t> kv_heads, ffn, vocab, experts, top_k;
    // training
    std::string precision, zero, recompute, flash_attention, overlap, sp;
    std::int64_t tp = 1, pp = 1, cp = 1, ep = 1, dp = 1, micro_batch = 0, global_batch = 0;
    std::optional<std::int64_t> vpp;
    // result
    double step_s = 0;                                  ///< 0: the row is a verdict on memory alone
    std::string status;                                 ///< "ok", "oom"; empty when read for its step time
    std::optional<double> reserved_gib, allocated_gib;  ///< peaks, as logged
    std::optional<double> mfu, hfu;                     ///< as published; definitions differ

    std::int64_t micro_batches() const { return global_batch / (micro_batch * dp); }
};

/// The complete rows, in file order. Throws IngestError for a file that is no such table or a row that contradicts
/// itself.
std::vector<PublishedRun> read_published_runs(const std::filesystem::path& path);
std::vector<PublishedRun> parse_published_runs(std::string_view text, const std::string& file);

/// The rows that say something on memory: a status, or a step time (the run fitted: status ok). Peaks where the table has
/// them: columns mem_reserved_gib, mem_allocated_gib, or "peak alloc X GiB" in the notes. Those that ran out of memory have
/// no step time.
std::vector<PublishedRun> read_memory_runs(const std::filesystem::path& path);
std::vector<PublishedRun> parse_memory_runs(std::string_view text, const std::string& file);

}  // namespace fabricast
