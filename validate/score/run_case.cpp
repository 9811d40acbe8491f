#include "validate/score/run_case.hpp"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;

Label label_of(const std::string& shows) {
    return shows.starts_with("healthy") ? Label::healthy : shows.starts_with("sick") ? Label::sick : Label::none;
}

void add_log(const fs::path& path, const PlatformHint& hint, Label label, bool before_trees, RunCases& out) {
    const std::string file = path.filename().string();
    for (NcclRun& run : read_nccl_log(path)) {
        if (run.verdict != NcclVerdict::usable) {
            out.refused.push_back({file, run.collective, run.reason, true, label});
            continue;
        }
        const auto kind = collective_named(run.collective);
        if (!kind) {
            out.refused.push_back(
                {file, run.collective, fmt::format("the model has no collective `{}`", run.collective), false, label});
            continue;
        }
        try {
            RunCase one{.file = file,
                        .run = std::move(run),
                        .platform = {},
                        .kind = *kind,
                        .label = label,
                        .settings = {},
                        .gpus_per_thread = 1};
            one.platform = find_platform(one.run, hint);
            one.settings = settings_for(one.platform, before_trees);
            if (one.run.parameters) {
                one.gpus_per_thread = one.run.parameters->gpus_per_thread;
            }
            out.cases.push_back(std::move(one));
        } catch (const PlatformError& error) {
            out.refused.push_back({file, std::string(collective_name(*kind)), error.what(), false, label});
        }
    }
}

void add_index(const fs::path& path, const PlatformHint& options, RunCases& out) {
    const Csv index = Csv::read(path);
    const auto text = [&](std::size_t row, const char* column) {
        return index.has(column) ? index.text(row, column) : std::string();
    };
    const auto count = [&](std::size_t row, const char* column) -> std::optional<int> {
        if (!index.has(column))
            return std::nullopt;
        const auto value = index.number_if_any(row, column);
        return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
    };
    for (std::size_t row = 0; row < index.size(); ++row) {
        PlatformHint hint = options;
        hint.hardware = text(row, "hardware");
        hint.network = text(row, "network");
        if (!hint.nodes)
            hint.nodes = count(row, "nodes");
        hint.gpus = count(row, "gpus");
        const fs::path log = path.parent_path() / index.text(row, "file");
        if (!fs::exists(log)) {
            throw IngestError(path.string(), index.line(row),
                              fmt::format("the log `{}` is not beside the index", index.text(row, "file")));
        }
        add_log(log, hint, label_of(text(row, "shows")),
                text(row, "format_notes").find("pre-2019") != std::string::npos, out);
    }
}

}  // namespace

CommSettings settings_for(const Platform& platform, bool before_trees) {
    CommSettings settings;
    const NetworkSpec* network = platform.nodes > 1 ? Catalogue::builtin().find_network(platform.expected) : nullptr;
    if (network != nullptr && !network->ll) {
        settings.protocols = {Protocol::simple};
    } else if (before_trees || (network != nullptr && !network->ll128)) {
        settings.protocols = {Protocol::ll, Protocol::simple};
    }
    settings.collnet = platform.sharp;
    if (before_trees) {
        settings.algorithms = {Algorithm::ring};
    }
    return settings;
}

RunCases read_cases(const std::vector<std::string>& arguments, const PlatformHint& hint) {
    RunCases out;
    for (const std::string& argument : arguments) {
        if (argument.ends_with(".csv")) {
            add_index(argument, hint, out);
        } else {
            add_log(argument, hint, Label::none, false, out);
        }
    }
    return out;
}

}  // namespace fabricast
