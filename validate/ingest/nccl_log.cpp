#include "validate/ingest/nccl_log.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/ingest/nccl_check.hpp"
#include "validate/ingest/nccl_line.hpp"

namespace fabricast {
namespace {

/// The order in which the parts of a run are printed. A part that comes again, or too early, begins the next run.
enum class Stage { none, version, banner, parameters, devices, header, rows, footer };

/// A run while it is read.
struct Draft {
    NcclRun run;
    NcclTrace trace;
    Stage stage = Stage::none;
};

/// Reads line by line; each kind of line has its function.
class Reader {
public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    void take(std::string_view raw, int line);
    std::vector<NcclRun> finish();

private:
    /// The run that a line of this stage belongs to; begins one where the order of the parts asks for it.
    Draft& at_stage(Stage stage, int line, std::string_view name = "");
    bool begins_another(const Draft& draft, Stage stage, std::string_view name) const;
    bool may_be_another_process(const Draft& draft, std::string_view name) const;
    void open(int line);
    void close();

    void table_line(std::string_view text, int line);
    void version_banner(std::string_view text, int line);
    void device(std::string_view text, int line);
    void header(std::string_view text, int line);
    void footer(NcclLineKind kind, std::string_view text);
    void failure(std::string_view text, int line, bool of_test);
    void begin_row(std::string_view text, int line);
    void end_row();
    void add_row(const NcclRow& row);

    std::string file_;
    std::vector<NcclRun> runs_;
    std::optional<Draft> draft_;
    NcclFacts early_facts_;         ///< said before the run they belong to
    std::string early_command_;     ///< NAME_perf in a command line before the run
    std::vector<std::string> row_;  ///< words of the row being read; empty: none
    int row_line_ = 0;
    bool header_goes_on_ = false;  ///< the last line was a header: a wrapped one continues
};

void Reader::open(int line) {
    close();
    draft_.emplace();
    draft_->run.file = file_;
    draft_->run.line = line;
    draft_->trace.command_name = early_command_;
    draft_->run.facts = std::move(early_facts_);
    early_command_.clear();
    early_facts_ = {};
}

void Reader::close() {
    end_row();
    if (draft_) {
        judge(draft_->run, draft_->trace);
        runs_.push_back(std::move(draft_->run));
        draft_.reset();
    }
}

bool Reader::may_be_another_process(const Draft& draft, std::string_view name) const {
    if (!draft.trace.failures.empty() || !draft.run.points.empty() || draft.stage > Stage::header ||
        (!name.empty() && !draft.trace.banner_name.empty() && name != draft.trace.banner_name)) {
        return false;
    }
    // A device list longer than one process can hold: that run was one MPI job and died without a word.
    const NcclParameters parameters = draft.run.parameters.value_or(NcclParameters{});
    const std::int64_t held = std::int64_t{parameters.threads} * parameters.gpus_per_thread;
    return std::all_of(draft.run.devices.begin(), draft.run.devices.end(),
                       [&](const NcclDevice& device) { return device.rank < held; });
}

bool Reader::begins_another(const Draft& draft, Stage stage, std::string_view name) const {
    if (draft.stage < stage) {  // parts printed late by a run that failed still belong to it, starts do not
        return !draft.trace.failures.empty() && stage < Stage::devices;
    }
    switch (stage) {
        case Stage::devices:
        case Stage::header: return draft.stage > Stage::header;
        default: return !may_be_another_process(draft, name);
    }
}

Draft& Reader::at_stage(Stage stage, int line, std::string_view name) {
    if (stage != Stage::rows) {
        end_row();
    }
    if (!draft_ || begins_another(*draft_, stage, name)) {
        open(line);
    }
    draft_->stage = std::max(draft_->stage, stage);
    return *draft_;
}

void Reader::take(std::string_view raw, int line) {
    const std::string clean = clean_line(raw);
    std::string_view text = clean;
    if (const std::optional<std::size_t> message = nccl_message_start(text)) {
        const bool over = !draft_ || draft_->stage == Stage::footer;
        gather_facts(text.substr(*message), over ? early_facts_ : draft_->run.facts);
        text = trimmed(text.substr(0, *message));  // another rank wrote into this line
    } else if (starts_with(without_hash(text), "NCCL version ")) {
        gather_facts(without_hash(text), draft_ ? draft_->run.facts : early_facts_);
        return;
    }
    if (!text.empty()) {
        table_line(table_part(text), line);
    }
}

void Reader::table_line(std::string_view text, int line) {
    using Kind = NcclLineKind;
    const Kind kind = kind_of(text);
    const bool after_header = header_goes_on_;
    header_goes_on_ = kind == Kind::header;
    switch (kind) {
        case Kind::version_banner: version_banner(text, line); break;
        case Kind::start_banner: {
            const std::string name = collective_in_command(text);
            Draft& draft = at_stage(Stage::banner, line, name);
            draft.trace.banner_name = name;
            break;
        }
        case Kind::parameters:
            if (const std::optional<NcclParameters> parameters = parse_parameters(text)) {
                Draft& draft = at_stage(Stage::parameters, line);
                draft.run.parameters = parameters;
                ++draft.trace.starts;
            }
            break;
        case Kind::device: device(text, line); break;
        case Kind::header: header(text, line); break;
        case Kind::row_start: begin_row(text, line); break;
        case Kind::row_rest:
            if (!row_.empty()) {
                for (const std::string_view word : words(text)) {
                    row_.emplace_back(word);
                }
            }
            break;
        case Kind::out_of_bounds:
        case Kind::average:
        case Kind::concluded: footer(kind, text); break;
        case Kind::reduced_max:
            if (draft_ && draft_->run.parameters) {
                const std::optional<std::int64_t> bytes = whole_number(words(text).at(3));
                draft_->run.parameters->max_bytes = bytes.value_or(draft_->run.parameters->max_bytes);
            }
            break;
        case Kind::elided:
            if (draft_) {
                draft_->trace.elided = true;
            }
            break;
        case Kind::test_failure: failure(text, line, true); break;
        case Kind::launcher_failure: failure(text, line, false); break;
        case Kind::noise:
            if (after_header && draft_) {  // the rest of a wrapped header
                draft_->trace.header_halves += contains(text, "time ") || contains(text, "time\t") ? 1 : 0;
            }
            if (const std::string name = collective_in_command(text); !name.empty()) {
                early_command_ = name;
            }
            break;
    }
}

void Reader::version_banner(std::string_view text, int line) {
    Draft& draft = at_stage(Stage::version, line);
    for (const std::string_view part : words(text)) {
        if (starts_with(part, "nccl-library=")) {
            draft.run.nccl_version = version_from_code(part.substr(13));
        }
    }
    draft.run.nccl_tests_version = words(text).size() > 2 ? std::string(words(text)[2]) : "";
}

void Reader::device(std::string_view text, int line) {
    const std::optional<NcclDevice> device = parse_device(text);
    if (!device) {
        return;
    }
    Draft& draft = at_stage(Stage::devices, line);
    std::vector<NcclDevice>& devices = draft.run.devices;
    const bool in_order = devices.empty() || devices.back().rank < device->rank;
    if (!in_order && std::any_of(devices.begin(), devices.end(),
                                 [&](const NcclDevice& other) { return other.rank == device->rank; })) {
        ++draft.trace.repeated_ranks;
    } else {
        devices.push_back(*device);
    }
}

void Reader::header(std::string_view text, int line) {
    Draft& draft = at_stage(Stage::header, line);
    const std::vector<std::string_view> columns = words(text);
    const auto count = [&](std::string_view name) {
        return static_cast<int>(std::count(columns.begin(), columns.end(), name));
    };
    ++draft.trace.headers;
    draft.trace.header_halves = count("time") + count("cputime");
    draft.trace.cpu_time = count("cputime") > 0;
    draft.trace.redop_column = count("redop") > 0;
    draft.trace.root_column = count("root") > 0;
}

void Reader::footer(NcclLineKind kind, std::string_view text) {
    end_row();
    if (!draft_ || draft_->stage < Stage::devices) {
        return;  // a page that shows only the end of a run
    }
    Draft& draft = *draft_;
    draft.stage = Stage::footer;
    draft.trace.concluded = draft.trace.concluded || kind == NcclLineKind::concluded;
    const std::size_t colon = text.find(':');
    const std::vector<std::string_view> parts =
        words(colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1));
    if (kind == NcclLineKind::out_of_bounds) {
        ++draft.trace.footers;
        draft.run.footer.out_of_bounds = parts.empty() ? std::nullopt : whole_number(parts[0]);
        draft.run.footer.out_of_bounds_ok = parts.size() < 2 || parts[1] != "FAILED";
    } else if (kind == NcclLineKind::average && !parts.empty()) {
        const std::optional<Printed> average = printed_number(parts[0]);
        draft.run.footer.average_busbw = average ? std::optional(average->value) : std::nullopt;
    }
}

void Reader::failure(std::string_view text, int line, bool of_test) {
    end_row();
    const bool finished = draft_ && draft_->stage == Stage::footer;
    if (draft_ && (of_test || !finished)) {  // a launcher that complains after the table changes nothing in it
        draft_->trace.failures.push_back({std::string(text), line, of_test});
    }
}

void Reader::begin_row(std::string_view text, int line) {
    end_row();
    if (!draft_ || draft_->stage < Stage::rows) {
        at_stage(Stage::rows, line);
    }
    for (const std::string_view word : words(text)) {
        row_.emplace_back(word);
    }
    row_line_ = line;
}

void Reader::end_row() {
    if (row_.empty() || !draft_) {
        return;
    }
    const NcclTrace& trace = draft_->trace;
    const std::optional<NcclRow> row =
        parse_row(row_, row_line_, trace.headers > 0 ? std::optional(trace.root_column) : std::nullopt);
    row_.clear();
    const bool half_missing = row && !row->point.in_place && trace.header_halves == 2;
    if (!row || half_missing) {
        draft_->trace.torn_lines.push_back(row_line_);
    } else {
        add_row(*row);
    }
}

void Reader::add_row(const NcclRow& row) {
    NcclRun& run = draft_->run;
    const bool other = run.datatype != row.datatype || run.redop != row.redop || run.root != row.root;
    if (!run.points.empty() && other) {  // -d all, -o all: one table, several curves
        Draft rest = *draft_;
        rest.run.points.clear();
        rest.run.line = row.point.line;
        rest.trace.torn_lines.clear();
        rest.trace.split = true;
        draft_->trace.split = true;
        judge(draft_->run, draft_->trace);
        runs_.push_back(std::move(draft_->run));
        draft_ = std::move(rest);
    }
    draft_->run.datatype = row.datatype;
    draft_->run.redop = row.redop;
    draft_->run.root = row.root;
    draft_->run.points.push_back(row.point);
}

std::vector<NcclRun> Reader::finish() {
    close();
    if (runs_.empty()) {
        throw IngestError(file_, 0, "holds no nccl-tests output: no start line, device list, column header or row");
    }
    return std::move(runs_);
}

}  // namespace

std::string_view name_of(NcclVerdict verdict) {
    static constexpr std::array<std::string_view, 3> kNames = {"usable", "failed", "suspicious"};
    return kNames.at(static_cast<std::size_t>(verdict));
}

std::string_view name_of(NcclOrigin origin) {
    static constexpr std::array<std::string_view, 8> kNames = {
        "unknown", "banner", "command line", "columns", "device list", "init lines", "busbw/algbw", "file name"};
    return kNames.at(static_cast<std::size_t>(origin));
}

std::vector<NcclRun> read_nccl_log(const std::filesystem::path& path) {
    return parse_nccl_log(read_text_file(path), path.string());
}

std::vector<NcclRun> parse_nccl_log(std::string_view text, const std::string& file) {
    Reader reader(file);
    int number = 0;
    for (const std::string_view line : lines_of(text)) {
        reader.take(line, ++number);
    }
    return reader.finish();
}

std::span<const NcclPoint> curve(const NcclRun& run) {
    if (run.verdict != NcclVerdict::usable) {
        throw IngestError(run.file, run.line,
                          fmt::format("no curve from a {} run: {}", name_of(run.verdict), run.reason));
    }
    return run.points;
}

std::vector<const NcclHalf*> halves_of(const NcclPoint& point) {
    std::vector<const NcclHalf*> halves = {&point.out_of_place};
    if (point.in_place) {
        halves.push_back(&*point.in_place);
    }
    return halves;
}

std::optional<double> busbw_factor(std::string_view collective, int ranks) {
    const double share = ranks > 0 ? (ranks - 1.0) / ranks : 0.0;
    static constexpr std::array<std::string_view, 6> kShared = {"all_gather", "reduce_scatter", "alltoall",
                                                                "alltoallv",  "gather",         "scatter"};
    if (collective == "all_reduce") {
        return 2 * share;
    }
    if (std::find(kShared.begin(), kShared.end(), collective) != kShared.end()) {
        return share;
    }
    const bool whole = collective == "broadcast" || collective == "reduce" || collective == "sendrecv";
    return whole ? std::optional(1.0) : std::nullopt;
}

}  // namespace fabricast
