#include "validate/fit/fit_site.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "validate/fit/fit_adapters.hpp"
#include "validate/fit/fit_host.hpp"
#include "validate/fit/fit_kernels.hpp"
#include "validate/fit/fit_steps.hpp"
#include "validate/fit/least_squares.hpp"
#include "validate/fit/leave_model_out.hpp"

namespace fabricast {
namespace {

/// Appends to what an owner has already; later values of a key win.
void merge(Calibration::Owned& into, const Calibration::Owned& from) {
    for (const auto& [owner, values] : from) {
        auto at = std::find_if(into.begin(), into.end(), [&o = owner](const auto& one) { return one.first == o; });
        if (at == into.end())
            at = into.emplace(into.end(), owner, Calibration::Values{});
        for (const auto& [key, value] : values) {
            std::erase_if(at->second, [&k = key](const auto& one) { return one.first == k; });
            at->second.emplace_back(key, value);
        }
    }
}

void take(std::vector<PartFit>&& parts, SiteFit& out) {
    for (PartFit& part : parts) {
        if (!part.kept)
            out.refused.push_back(part.reason);
        for (const FittedPoint& p : part.points) {
            if (p.outlier && part.kept)
                out.calibration.outliers.push_back(fmt::format(
                    "{}: predicted / measured {:.2f}, without weight in the fit", p.where, std::exp(p.fitted_error)));
        }
        out.parts.push_back(std::move(part));
    }
}

void add_fits(SiteFit& out) {
    for (const PartFit& part : out.parts) {
        if (!part.kept || out.calibration.fit(part.what) != nullptr)
            continue;
        std::vector<double> errors;
        for (const FittedPoint& p : part.points)
            errors.push_back(part.crossed ? p.cross_error : p.fitted_error);
        out.calibration.fits.push_back({part.what,
                                        static_cast<int>(part.points.size()),
                                        part.fitted_median,
                                        part.default_median,
                                        ratio_quantile(errors, .1),
                                        ratio_quantile(errors, .9),
                                        {}});
    }
}

void add_provenance(const std::vector<std::string>& files, const SiteInputs& in, SiteFit& out) {
    std::vector<std::string> devices, drivers, libraries, clocks, dates, methods, names;
    const auto add = [](std::vector<std::string>& list, const std::string& word) {
        if (!word.empty() && std::find(list.begin(), list.end(), word) == list.end())
            list.push_back(word);
    };
    for (const MeasurementFile& m : in.measurements) {
        add(dates, m.date);
        add(methods, m.method);
        for (const std::string& library : m.libraries)
            add(libraries, library);
        for (const MeasuredDevice& d : m.devices) {
            const auto same = std::count_if(m.devices.begin(), m.devices.end(),
                                            [&](const MeasuredDevice& other) { return other.name == d.name; });
            add(devices, fmt::format("{} x {}", same, d.name));
            add(drivers, d.driver);
            if (d.clock_mhz > 0)
                add(clocks, fmt::format("{:.0f} MHz, memory {:.0f} MHz, {:.0f} W of {:.0f} W", d.clock_mhz,
                                        d.memory_clock_mhz, d.power_w, d.power_limit_w));
        }
    }
    for (const std::string& file : files)
        add(names, std::filesystem::path(file).filename().string());
    add(methods, "robust least squares (Huber, then Tukey's biweight) of the logarithm of predicted / measured time");
    if (dates.empty())
        dates.push_back(utc_now());
    const std::pair<const char*, std::vector<std::string>*> rows[] = {
        {"date", &dates},          {"method", &methods}, {"devices", &devices}, {"driver", &drivers},
        {"libraries", &libraries}, {"clocks", &clocks},  {"files", &names}};
    for (const auto& [key, words] : rows) {
        if (!words->empty())
            out.calibration.provenance.emplace_back(key, std::move(*words));
    }
    out.calibration.provenance.push_back({"tool", {"fabricast-validate " FABRICAST_VERSION}});
}

}  // namespace

namespace {

/// Kernels, copies, links and adapters: what needs no job.
void fit_parts(const SiteInputs& in, SiteFit& out) {
    Calibration& c = out.calibration;
    KernelFit kernels = fit_kernels(in.kernels, in.kernel_file);
    merge(c.gpus, kernels.gpus);
    take(std::move(kernels.parts), out);
    for (const MeasurementFile& m : in.measurements) {
        const GpuSpec* gpu = m.devices.empty() ? nullptr : gpu_of_device(m.devices.front().name);
        if (const double rate = pinned_rate(m); gpu != nullptr && rate > 0)
            merge(c.gpus, {{gpu->name, {{"pcie", rate}}}});
    }
    CurveFit curves = fit_curves(in.curves);
    merge(c.gpus, curves.gpus);
    c.networks = std::move(curves.networks);
    c.collectives = std::move(curves.collectives);
    take(std::move(curves.parts), out);
    std::vector<std::string> with_curves;
    for (const RunCase& run : in.curves) {
        if (run.platform.nodes > 1)
            with_curves.emplace_back(run.carried_by());
    }
    for (const AdapterPoint& p : in.adapters) {
        if (p.kind == AdapterPoint::Kind::bandwidth &&
            std::find(with_curves.begin(), with_curves.end(), p.network) != with_curves.end()) {
            out.warnings.push_back(fmt::format(
                "{}: not used for the efficiency of {}, which collectives over it decide", p.run, p.network));
            break;
        }
    }
    AdapterFit adapters = fit_adapters(in.adapters, with_curves);
    merge(c.networks, adapters.networks);
    take(std::move(adapters.parts), out);
}

}  // namespace

void merge_constants(const StepFit& fit, Calibration& into) {
    merge(into.gpus, fit.gpus);
    merge(into.networks, fit.networks);
    merge(into.software, fit.software);
}

ModelsLeftOut leave_models_out(const std::vector<std::string>& files, const SiteOptions& options) {
    SiteFit known;
    known.calibration.name = known.calibration.file = options.name;
    const SiteInputs in = read_site_inputs(files, options, known.warnings);
    if (in.steps.empty())
        throw IngestError(files.front(), 0, "no step times of jobs in these files: there is no model to leave out");
    fit_parts(in, known);
    ModelsLeftOut out = leave_models_out(in.steps, known.calibration, options.jobs);
    out.warnings.insert(out.warnings.begin(), known.warnings.begin(), known.warnings.end());
    return out;
}

SiteFit fit_site(const std::vector<std::string>& files, const SiteOptions& options) {
    SiteFit out;
    Calibration& c = out.calibration;
    c.name = c.file = options.name;
    const SiteInputs in = read_site_inputs(files, options, out.warnings);
    fit_parts(in, out);
    if (!in.steps.empty()) {
        StepFit steps = fit_steps(in.steps, c, options.jobs);
        merge_constants(steps, c);
        c.fits = std::move(steps.fits);
        take(std::move(steps.parts), out);
        std::move(steps.warnings.begin(), steps.warnings.end(), std::back_inserter(out.warnings));
    }
    for (const MeasurementFile& m : in.measurements) {
        if (m.backend != "host")
            continue;
        HostFit host = fit_host(m);
        if (!host.constants.empty())
            c.hosts.emplace_back("cpu", std::move(host.constants));
        take(std::move(host.parts), out);
    }
    add_fits(out);
    add_provenance(files, in, out);
    if (out.parts.empty())
        throw IngestError(files.front(), 0,
                          "nothing in these files that constants can be fitted on" +
                              (out.warnings.empty() ? std::string() : "; " + out.warnings.back()));
    if (c.empty() && c.hosts.empty())
        throw IngestError(
            files.front(), 0,
            out.refused.empty() ? "no constant of the model is felt by these measurements" : out.refused.front());
    return out;
}

std::string fit_text(const SiteFit& fit) {
    std::string text;
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{:<36} {:>7} {:>10} {:>10} {:>10}\n", "median error of times", "points", "defaults", "fitted",
                   "left out");
    for (const PartFit& part : fit.parts) {
        fmt::format_to(out, "{:<36} {:>7} {:>9.1f}% {:>9.1f}% {:>10}{}\n", part.what, part.points.size(),
                       100 * part.default_median, 100 * part.fitted_median,
                       part.crossed ? fmt::format("{:.1f}%", 100 * part.cross_median) : "-",
                       part.kept ? "" : "  refused");
    }
    const Calibration& c = fit.calibration;
    const std::pair<const char*, const Calibration::Owned*> parts[] = {
        {"gpus", &c.gpus}, {"networks", &c.networks}, {"software", &c.software}, {"host", &c.hosts}};
    for (const auto& [part, owned] : parts) {
        for (const auto& [owner, values] : *owned) {
            for (const auto& [key, value] : values)
                fmt::format_to(out, "  {:<34} {}\n", fmt::format("{} {}", owner, key),
                               calibration_value_text(part, key, value));
        }
    }
    for (const Calibration::CollectiveRow& row : c.collectives)
        fmt::format_to(out, "  {:<34} {:.1f} us more, {:.3f} of the links' rate\n",
                       fmt::format("{} {}", row.link, collective_name(row.kind)), row.correction.latency_s * 1e6,
                       row.correction.rate);
    for (const std::string& one : c.outliers)
        fmt::format_to(out, "outlier  {}\n", one);
    for (const std::string& one : fit.refused)
        fmt::format_to(out, "refused  {}\n", one);
    return text;
}

}  // namespace fabricast
