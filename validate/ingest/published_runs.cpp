#include "validate/ingest/published_runs.hpp"

#include <charconv>

#include <fmt/format.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

class RowReader {
public:
    RowReader(const Csv& table, std::size_t row, const std::string& file) : table_(table), row_(row), file_(file) {}

    const std::string& text(std::string_view column) const { return table_.text(row_, column); }
    std::int64_t size(std::string_view column) const {
        const std::int64_t value = table_.integer(row_, column);
        if (value < 1)
            refuse(fmt::format("column {}: {} must be 1 or more", column, value));
        return value;
    }
    std::optional<std::int64_t> size_if_any(std::string_view column) const {
        if (text(column).empty())
            return std::nullopt;
        return size(column);
    }
    [[noreturn]] void refuse(const std::string& sentence) const {
        throw IngestError(file_, table_.line(row_), sentence);
    }

private:
    const Csv& table_;
    std::size_t row_;
    const std::string& file_;
};

PublishedRun read_row(const RowReader& row, const Csv& table, std::size_t index, bool timed) {
    PublishedRun run;
    run.id = row.text("id");
    run.source_key = row.text("source_key");
    run.source = row.text("source");
    run.notes = row.text("notes");
    run.line = table.line(index);
    run.full = timed;
    run.gpu = row.text("gpu");
    run.intranode = row.text("intranode");
    run.internode = row.text("internode");
    run.gpus = row.size("gpus");
    run.gpus_per_node = row.size_if_any("gpus_per_node").value_or(run.gpus);
    run.model = row.text("model");
    run.params_b = table.number_if_any(index, "params_b");
    run.layers = row.size("layers");
    run.hidden = row.size("hidden");
    run.heads = row.size("heads");
    run.sequence = row.size("seq_len");
    run.kv_heads = row.size_if_any("kv_heads");
    run.ffn = row.size_if_any("ffn_hidden");
    run.vocab = row.size_if_any("vocab");
    run.experts = row.size_if_any("experts");
    run.top_k = row.size_if_any("topk");
    run.precision = row.text("precision");
    run.zero = row.text("zero_stage_or_fsdp");
    run.recompute = row.text("recompute");
    run.flash_attention = row.text("flash_attention");
    run.overlap = row.text("overlap");
    run.sp = row.text("sp");
    run.tp = row.size("tp");
    run.pp = row.size("pp");
    run.cp = row.size_if_any("cp").value_or(1);
    run.ep = row.size_if_any("ep").value_or(1);
    run.dp = row.size("dp");
    run.vpp = row.size_if_any("vpp");
    run.micro_batch = row.size("micro_batch");
    run.global_batch = row.size("global_batch");
    run.mfu = table.number_if_any(index, "mfu");
    run.hfu = table.number_if_any(index, "hfu");
    if (timed)
        run.step_s = table.number(index, "measured_step_s");
    if (timed && !(run.step_s > 0))
        row.refuse(fmt::format("measured_step_s: {} s is no step time", run.step_s));
    if (run.tp * run.pp * run.cp * run.dp != run.gpus)
        row.refuse(fmt::format("tp {} x pp {} x cp {} x dp {} is not the {} GPUs of the row", run.tp, run.pp, run.cp,
                               run.dp, run.gpus));
    return run;
}

std::vector<PublishedRun> read(const Csv& table, const std::string& file) {
    std::vector<PublishedRun> runs;
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (table.text(i, "config") == "full")
            runs.push_back(read_row(RowReader(table, i, file), table, i, true));
    }
    return runs;
}

// "peak alloc 66.55 GiB measured" among other notes.
std::optional<double> allocated_in(const std::string& notes) {
    constexpr std::string_view kWords = "peak alloc ";
    const std::size_t at = notes.find(kWords);
    if (at == std::string::npos)
        return std::nullopt;
    const std::size_t begin = at + kWords.size(), end = notes.find(" GiB", begin);
    double value = 0;
    if (end == std::string::npos ||
        std::from_chars(notes.data() + begin, notes.data() + end, value).ptr != notes.data() + end)
        return std::nullopt;
    return value;
}

std::vector<PublishedRun> read_memory(const Csv& table, const std::string& file) {
    std::vector<PublishedRun> runs;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const bool full = table.text(i, "config") == "full";
        std::string status = table.has("status") ? table.text(i, "status") : "";
        if (status.empty() && full)
            status = "ok";  // it has a step time
        if (status.empty())
            continue;
        const RowReader row(table, i, file);
        if (status != "ok" && status != "oom")
            row.refuse(fmt::format("column status: `{}` is neither ok nor oom", status));
        PublishedRun run = read_row(row, table, i, full);
        run.status = status;
        run.allocated_gib = allocated_in(run.notes);
        if (table.has("mem_reserved_gib"))
            run.reserved_gib = table.number_if_any(i, "mem_reserved_gib");
        if (table.has("mem_allocated_gib"))
            run.allocated_gib = table.number_if_any(i, "mem_allocated_gib");
        runs.push_back(std::move(run));
    }
    return runs;
}

}  // namespace

std::vector<PublishedRun> read_memory_runs(const std::filesystem::path& path) {
    return read_memory(Csv::read(path), path.string());
}

std::vector<PublishedRun> parse_memory_runs(std::string_view text, const std::string& file) {
    return read_memory(Csv::parse(text, file), file);
}

std::vector<PublishedRun> read_published_runs(const std::filesystem::path& path) {
    return read(Csv::read(path), path.string());
}

std::vector<PublishedRun> parse_published_runs(std::string_view text, const std::string& file) {
    return read(Csv::parse(text, file), file);
}

}  // namespace fabricast
