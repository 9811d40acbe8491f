#include "validate/fit/fit_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "models/compute/attention.hpp"
#include "models/compute/compute_model.hpp"
#include "models/compute/gemm.hpp"
#include "models/compute/memory_bound.hpp"
#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"
#include "validate/fit/least_squares.hpp"

namespace fabricast {
namespace {

constexpr double kSigma = 0.3;
constexpr std::size_t kFewest = 6;  ///< points of a class
constexpr std::size_t kGroups = 5;
constexpr double kOverPeak = 1.02;  ///< clocks above the nominal one, timer resolution

using Points = std::vector<const KernelPoint*>;

bool is_copy(const KernelPoint& p) { return p.kernel.kind == KernelKind::memory_bound && p.group.ends_with(" copy"); }

std::vector<double> errors(const Points& points, const GpuSpec& gpu) {
    std::vector<double> out;
    for (const KernelPoint* p : points)
        out.push_back(std::log(kernel_s(*p, gpu) / p->measured_s));
    return out;
}

/// Constants as keys of a calibration.
std::vector<FitParameter> parameters_of(const std::vector<std::string>& keys, GpuSpec gpu) {
    std::vector<FitParameter> out;
    for (const std::string& key : keys) {
        const double start = *calibrated_value(gpu, key);
        const double most = key == "gemm.emax"                                                          ? 1.5
                            : key.ends_with(".t0") || key.ends_with(".floor") || key.ends_with("c_pro") ? 90e-6
                            : key.ends_with(".s0")                                                      ? 5000
                                                                                                        : 1;
        out.push_back({key, start, start / 20, most, kSigma, 0});
    }
    return out;
}

GpuSpec with(GpuSpec gpu, const std::vector<std::string>& keys, const std::vector<double>& values) {
    for (std::size_t k = 0; k < keys.size(); ++k)
        *calibrated_value(gpu, keys[k]) = values[k];
    return gpu;
}

RobustFit fit_keys(const Points& points, const std::vector<std::string>& keys, const GpuSpec& gpu) {
    return robust_least_squares(parameters_of(keys, gpu), [&](const std::vector<double>& values) {
        return errors(points, with(gpu, keys, values));
    });
}

/// Fits, cross-checks and writes; returns the spec with what was kept.
GpuSpec fit_part(const std::string& what, const Points& points, const std::vector<std::string>& keys,
                 const GpuSpec& gpu, Calibration::Values& values, std::vector<PartFit>& parts) {
    PartFit part;
    part.what = fmt::format("gpus {} {}", gpu.name, what);
    const std::vector<double> before = errors(points, gpu);
    const RobustFit fit = fit_keys(points, keys, gpu);
    for (std::size_t i = 0; i < points.size(); ++i) {
        part.points.push_back({fmt::format("{} {}", points[i]->group, points[i]->where), fmt::format("{}", i % kGroups),
                               before[i], fit.residuals[i], fit.residuals[i], fit.weights[i] == 0});
    }
    part.crossed = points.size() >= 2 * kGroups;
    for (std::size_t group = 0; part.crossed && group < kGroups; ++group) {
        Points others, own;
        for (std::size_t i = 0; i < points.size(); ++i)
            (i % kGroups == group ? own : others).push_back(points[i]);
        const std::vector<double> left_out = errors(own, with(gpu, keys, fit_keys(others, keys, gpu).values));
        for (std::size_t i = 0; i < own.size(); ++i)
            part.points[group + i * kGroups].cross_error = left_out[i];
    }
    settle(part);
    const bool kept = part.kept;
    parts.push_back(std::move(part));
    if (!kept)
        return gpu;
    for (std::size_t k = 0; k < keys.size(); ++k)
        values.emplace_back(keys[k], fit.values[k]);
    return with(gpu, keys, fit.values);
}

void fit_gpu(const GpuSpec& catalogue, const Points& all, KernelFit& out) {
    GpuSpec gpu = catalogue;
    Calibration::Values values;
    std::map<std::string, Points> attention;
    Points burst, loops, memory;
    bool fused = false, copies = false;
    for (const KernelPoint* p : all) {
        const KernelKind kind = p->kernel.kind;
        if (kind == KernelKind::gemm)
            (p->sustained ? loops : burst).push_back(p);
        else if (kind == KernelKind::memory_bound)
            memory.push_back(p);
        else
            attention[p->attention].push_back(p);
        if (kind == KernelKind::memory_bound)
            (is_copy(*p) ? copies : fused) = true;
    }
    if (burst.size() >= kFewest)
        gpu = fit_part("gemm", burst, {"gemm.t0", "gemm.c_pro", "gemm.emax", "gemm.bandwidth", "gemm.cap"}, gpu, values,
                       out.parts);
    std::vector<double> ratios;
    for (const KernelPoint* p : loops) {
        if (p->training_size && p->counts)
            ratios.push_back(std::log(kernel_s(*p, gpu) / p->measured_s));
    }
    if (ratios.size() >= kFewest)  // a site that throttles more, or less, than loops of such GPUs do
        values.emplace_back("gemm.sustained", std::clamp(gpu.gemm.sustained * ratio_quantile(ratios, .5), .3, 1.0));
    if (memory.size() >= kFewest) {
        std::vector<std::string> keys = {"memory_bound.floor"};
        if (fused)
            keys.emplace_back("memory_bound.fused");
        if (copies)
            keys.emplace_back("memory_bound.copy");
        gpu = fit_part("memory", memory, keys, gpu, values, out.parts);
    }
    for (const auto& [name, points] : attention) {
        if (points.size() < kFewest)
            continue;
        bool wide = false, narrow = false, backward = false;
        for (const KernelPoint* p : points) {
            wide |= p->kernel.head_dim > 64;
            narrow |= p->kernel.head_dim < 128;
            backward |= p->kernel.kind == KernelKind::attention_backward;
        }
        std::vector<std::string> keys = {"t0", "s0"};
        if (wide)
            keys.emplace_back("e128");
        if (narrow)
            keys.emplace_back("e64");
        if (backward)
            keys.emplace_back("backward_rate");
        for (std::string& key : keys)
            key = fmt::format("attention.{}.{}", name, key);
        gpu = fit_part("attention " + name, points, keys, gpu, values, out.parts);
    }
    if (!values.empty())
        out.gpus.emplace_back(gpu.name, std::move(values));
}

double peak_of(const GpuSpec& gpu, Precision precision) {
    return precision == Precision::fp8    ? gpu.peak_fp8
           : precision == Precision::fp32 ? gpu.peak_fp32
           : precision == Precision::tf32 ? gpu.peak_tf32
                                          : gpu.peak_bf16;
}

constexpr std::string_view kTypes[] = {"fp32", "tf32", "bf16", "fp16", "fp8"};

std::optional<Precision> precision_named(std::string_view name) {
    for (std::size_t i = 0; i < std::size(kTypes); ++i) {
        if (kTypes[i] == name)
            return static_cast<Precision>(i);
    }
    return std::nullopt;
}

std::optional<KernelPoint> kernel_point(const MeasuredPoint& m, const GpuSpec& gpu, std::size_t index) {
    KernelPoint out;
    out.gpu = &gpu;
    out.measured_s = m.time.median_us * 1e-6;
    out.where = fmt::format("points[{}]", index);
    out.group = m.test + " " + m.what;
    Kernel& k = out.kernel;
    if (m.test == "gemm") {
        const auto precision = precision_named(m.what);
        if (!precision || !(peak_of(gpu, *precision) > 0))
            return std::nullopt;
        k.kind = KernelKind::gemm;
        k.precision = *precision;
        k.m = m.at("m");
        k.n = m.at("n");
        k.k = m.at("k");
        k.batch = m.at("batch", 1);
        out.sustained = m.mode == "sustained";
        out.training_size = std::min({k.m, k.n, k.k}) >= 1024;
        out.counts = *precision != Precision::fp8;
    } else if (m.test == "memory") {
        k.kind = KernelKind::memory_bound;
        k.bytes = m.at("bytes");
        if (m.what == "copy" || m.what == "axpy")
            out.group = "memory copy";
        if (static_cast<double>(k.bytes) < 2 * gpu.l2_bytes && static_cast<double>(k.bytes) > .02 * gpu.l2_bytes)
            return std::nullopt;  // what stays in the cache is faster than memory
    } else {
        return std::nullopt;
    }
    return out;
}

}  // namespace

double kernel_s(const KernelPoint& point, const GpuSpec& gpu) {
    if (point.kernel.kind != KernelKind::memory_bound)
        return predicted_s(point, gpu);
    GpuSpec priced = gpu;
    if (is_copy(point))
        priced.memory.fused = priced.memory.copy;
    return memory_bound_time(priced, point.kernel, available(priced, Interference::alone)) - kKernelGapSeconds;
}

const GpuSpec* gpu_of_device(const std::string& device) {
    struct Name {
        std::string_view parts[3], gpu;
    };
    // words that must all occur, most special first
    static constexpr Name kNames[] = {
        {{"gb300", "", ""}, "GB300"},
        {{"gb200", "", ""}, "GB200"},
        {{"b300", "", ""}, "B300"},
        {{"b200", "", ""}, "B200"},
        {{"gh200", "", ""}, "GH200"},
        {{"h200", "", ""}, "H200-SXM-141G"},
        {{"h800", "", ""}, "H800-SXM-80G"},
        {{"h100", "80gb", "hbm3"}, "H100-SXM-80G"},
        {{"h100", "sxm", ""}, "H100-SXM-80G"},
        {{"h100", "96gb", ""}, "H100-HBM2e-96G"},
        {{"a800", "sxm", ""}, "A800-SXM-80G"},
        {{"a100", "sxm", "80gb"}, "A100-SXM-80G"},
        {{"a100", "sxm", "40gb"}, "A100-SXM-40G"},
        {{"a100", "80gb", ""}, "A100-SXM-80G"},
        {{"v100", "32gb", ""}, "V100-SXM2-32G"},
        {{"l40s", "", ""}, "L40S"},
    };
    if (const GpuSpec* exact = Catalogue::builtin().find_gpu(device))
        return exact;
    const std::string words = lower(device);
    for (const Name& name : kNames) {
        const bool all = std::all_of(std::begin(name.parts), std::end(name.parts),
                                     [&](std::string_view part) { return words.find(part) != std::string::npos; });
        if (!all)
            continue;
        for (const GpuSpec& gpu : Catalogue::builtin().gpus()) {
            if (gpu.name.starts_with(name.gpu))
                return &gpu;
        }
    }
    return nullptr;
}

std::vector<KernelPoint> kernel_points(const MeasurementFile& m) {
    std::vector<KernelPoint> out;
    const bool any = std::any_of(m.points.begin(), m.points.end(), [](const auto& p) { return p.test != "adapter"; });
    if (!any || m.backend == "host")
        return out;
    if (m.devices.empty())
        throw IngestError(m.file, 0, "its points name no device");
    const GpuSpec* gpu = gpu_of_device(m.devices.front().name);
    if (gpu == nullptr)
        throw IngestError(m.file, 0,
                          fmt::format("the catalogue has no GPU `{}`; known are those of `fabricast presets`",
                                      m.devices.front().name));
    for (std::size_t i = 0; i < m.points.size(); ++i) {
        if (auto point = kernel_point(m.points[i], *gpu, i))
            out.push_back(std::move(*point));
    }
    return out;
}

double pinned_rate(const MeasurementFile& m) {
    constexpr std::int64_t kLarge = 64 << 20;
    std::vector<double> rates;
    for (const MeasuredPoint& p : m.points) {
        if (p.test == "transfer" && p.what.ends_with("pinned") && p.at("bytes") >= kLarge)
            rates.push_back(static_cast<double>(p.at("bytes")) / (p.time.median_us * 1e-6));
    }
    if (rates.empty())
        return 0;
    std::sort(rates.begin(), rates.end());
    return rates[rates.size() / 2];
}

std::string above_peak(const GpuSpec& gpu, const KernelPoint& p) {
    const Kernel& k = p.kernel;
    if (k.kind == KernelKind::memory_bound) {
        const double rate = static_cast<double>(k.bytes) / p.measured_s;
        if (rate <= kOverPeak * gpu.hbm_bytes_per_s || static_cast<double>(k.bytes) < 2 * gpu.l2_bytes)
            return {};
        return fmt::format(
            "{} bytes in {:.3f} us imply {:.1f} % of the nominal memory bandwidth of {}, {:.1f} GB/s: no GPU "
            "can be above its peak; check what is counted as moved and the unit of time",
            k.bytes, p.measured_s * 1e6, 100 * rate / gpu.hbm_bytes_per_s, gpu.name, gpu.hbm_bytes_per_s * 1e-9);
    }
    const bool gemm = k.kind == KernelKind::gemm || k.kind == KernelKind::grouped_gemm;
    const double peak = peak_of(gpu, gemm ? k.precision : Precision::bf16);
    const double flops = gemm ? gemm_flops(k) : attention_flops(k);
    const double rate = flops / p.measured_s;
    if (rate <= kOverPeak * peak)
        return {};
    return fmt::format(
        "{:.1f} TFLOP/s imply {:.1f} % of the dense {} peak of {}, {:.1f} TFLOP/s: no GPU can be above its "
        "peak; check shape, type and unit of time",
        rate * 1e-12, 100 * rate / peak, kTypes[static_cast<std::size_t>(gemm ? k.precision : Precision::bf16)],
        gpu.name, peak * 1e-12);
}

KernelFit fit_kernels(const std::vector<KernelPoint>& points, const std::string& file) {
    std::map<std::string, Points> by_gpu;
    for (const KernelPoint& p : points) {
        if (const std::string why = above_peak(*p.gpu, p); !why.empty())
            throw IngestError(file, 0, fmt::format("{} {}: {}", p.group, p.where, why));
        by_gpu[p.gpu->name].push_back(&p);
    }
    KernelFit out;
    for (const auto& [name, own] : by_gpu)
        fit_gpu(*Catalogue::builtin().find_gpu(name), own, out);
    return out;
}

}  // namespace fabricast
