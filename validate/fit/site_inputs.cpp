#include "validate/fit/site_inputs.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/observed/csv.hpp"
#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"
#include "validate/fit/fit_kernels.hpp"
#include "validate/fit/measured_curves.hpp"

namespace fabricast {
namespace {

bool named(const std::vector<std::string>& list, const std::string& word) {
    return list.empty() || std::find(list.begin(), list.end(), word) != list.end();
}

void add_kernels(const std::string& file, KernelPoints points, const SiteOptions& options, SiteInputs& in) {
    std::erase_if(points.points,
                  [&](const KernelPoint& p) { return !options.gpu.empty() && p.gpu->name != options.gpu; });
    for (KernelPoint& p : points.points) {
        p.where = file + " " + p.where;
        if (!in.kernels.empty() && in.kernels.front().gpu != p.gpu) {
            throw IngestError(file, 0,
                              fmt::format("mixed GPUs, {} and {}: one calibration is of one site; choose with --gpu",
                                          in.kernels.front().gpu->name, p.gpu->name));
        }
        in.kernels.push_back(std::move(p));
    }
    in.kernel_file = file;
}

void leave_out_models(const std::string& file, const SiteOptions& options, std::vector<PublishedRun>& runs) {
    std::set<std::string> models;
    for (const PublishedRun& run : runs)
        models.insert(run.model);
    for (const std::string& model : options.without_models) {
        if (!models.contains(model))
            throw IngestError(file, 0,
                              fmt::format("no model `{}` to leave out; its rows have {}", model,
                                          models.empty() ? "none" : fmt::format("{}", fmt::join(models, ", "))));
    }
    std::erase_if(runs, [&](const PublishedRun& r) {
        return !options.without_models.empty() && named(options.without_models, r.model);
    });
}

void add_table(const std::string& file, const SiteOptions& options, SiteInputs& in) {
    const Csv table = Csv::read(file);
    if (table.has("measured_step_s")) {
        std::vector<PublishedRun> runs = read_published_runs(file);
        std::erase_if(runs, [&](const PublishedRun& r) {
            return !named(options.rows, r.id) || !named(options.sources, r.source_key) ||
                   (!options.without_rows.empty() && named(options.without_rows, r.id)) || !(r.step_s > 0);
        });
        leave_out_models(file, options, runs);
        for (StepCase& one : step_cases(runs, file))
            in.steps.push_back(std::move(one));
    } else if (table.has("m") && table.has("n") && table.has("k") && table.has("dtype")) {
        add_kernels(file, read_gemm_points(file), options, in);
    } else if (table.has("heads") && table.has("head_dim")) {
        add_kernels(file, read_attention_points(file), options, in);
    } else if (table.has("file") && table.has("tool")) {
        in.measurements.push_back(measurement_of_perftest({file}, options.hint));
    } else if (table.has("file")) {
        in.measurements.push_back(measurement_of_logs({file}, options.hint));
    } else {
        throw IngestError(
            file, 1,
            "no table that constants are fitted on; known are kernels (columns gpu, dtype, m, n, k), attention "
            "(heads, head_dim), runs (measured_step_s) and an index of logs (file; tool, link for perftest)");
    }
}

}  // namespace

SiteInputs read_site_inputs(const std::vector<std::string>& files, const SiteOptions& options,
                            std::vector<std::string>& warnings) {
    SiteInputs in;
    for (const std::string& file : files) {
        if (file.ends_with(".json"))
            in.measurements.push_back(read_measurement(file));
        else if (file.ends_with(".csv"))
            add_table(file, options, in);
        else if (is_perftest_log(read_text_file(file)))
            in.measurements.push_back(measurement_of_perftest({file}, options.hint));
        else
            in.measurements.push_back(measurement_of_logs({file}, options.hint));
    }
    for (const MeasurementFile& m : in.measurements) {
        if (!m.complete)
            warnings.push_back(fmt::format("{}: the measurement is partial ({}); what is there is used", m.file,
                                           m.reason.empty() ? "interrupted" : m.reason));
        for (const std::string& note : m.notes)
            warnings.push_back(fmt::format("{}: {}", m.file, note));
        for (RunCase& run : cases_of(m, options.hint))
            in.curves.push_back(std::move(run));
        for (AdapterPoint& point : adapter_points(m, options.hint, warnings))
            in.adapters.push_back(std::move(point));
        KernelPoints points;
        points.points = kernel_points(m);
        if (!points.points.empty())
            add_kernels(m.file, std::move(points), options, in);
        for (StepCase& one : step_cases(m))
            in.steps.push_back(std::move(one));
    }
    const GpuSpec* gpu = in.kernels.empty() ? nullptr : in.kernels.front().gpu;
    for (const RunCase& run : in.curves) {
        const std::string& first = gpu != nullptr ? gpu->name : in.curves.front().platform.gpu.name;
        if (run.platform.gpu.name != first) {
            throw IngestError(
                run.file, 0,
                fmt::format("mixed GPUs, {} and {}: one calibration is of one site", first, run.platform.gpu.name));
        }
    }
    return in;
}

}  // namespace fabricast
