#include "models/compute/compute_model.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include <fmt/format.h>

#include "models/compute/attention.hpp"
#include "models/compute/gemm.hpp"
#include "models/compute/memory_bound.hpp"

namespace fabricast {

namespace {

/// The 16-bit peak also for fp8 training: attention cores stay in 16 bits there.
Precision attention_precision(Precision precision) { return precision == Precision::fp8 ? Precision::bf16 : precision; }

/// Nothing to do, so nothing is launched. Negative sizes are a caller's mistake.
bool empty(const Kernel& k) {
    const auto any_zero = [](std::initializer_list<std::int64_t> sizes) {
        if (*std::min_element(sizes.begin(), sizes.end()) < 0)
            throw std::invalid_argument("a kernel has a negative size");
        return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
    };
    switch (k.kind) {
        case KernelKind::gemm:
        case KernelKind::grouped_gemm: return any_zero({k.count, k.batch, k.m, k.n, k.k});
        case KernelKind::attention_forward:
        case KernelKind::attention_backward:
            return any_zero({k.count, k.batch, k.heads, k.kv_heads, k.sq, k.sk, k.head_dim});
        case KernelKind::memory_bound: return any_zero({k.count, k.bytes});
    }
    return true;
}

}  // namespace

ComputeModel::ComputeModel(const GpuSpec& gpu, ComputeOptions options)
    : gpu_(&gpu), options_(std::move(options)), attention_(nullptr) {
    const auto found = gpu.attention.find(options_.attention);
    if (found == gpu.attention.end()) {
        std::string known;
        for (const auto& [name, constants] : gpu.attention)
            known += (known.empty() ? "" : ", ") + name;
        throw std::invalid_argument(
            fmt::format("{} has no attention implementation '{}'; known are: {}", gpu.name, options_.attention, known));
    }
    if (!(options_.power_fraction > 0))
        throw std::invalid_argument(fmt::format("power_fraction is {}; it must be positive", options_.power_fraction));
    attention_ = &found->second;
}

double ComputeModel::peak_flops(Precision precision) const {
    double peak = 0;
    const char* name = "";
    switch (precision) {
        case Precision::fp32: peak = gpu_->peak_fp32, name = "fp32"; break;
        case Precision::tf32: peak = gpu_->peak_tf32, name = "tf32"; break;
        case Precision::bf16: peak = gpu_->peak_bf16, name = "bf16"; break;
        case Precision::fp16: peak = gpu_->peak_bf16, name = "fp16"; break;
        case Precision::fp8: peak = gpu_->peak_fp8, name = "fp8"; break;
    }
    if (!(peak > 0))
        throw std::invalid_argument(fmt::format("{} has no {} peak", gpu_->name, name));
    return peak;
}

KernelTime ComputeModel::time(const Kernel& kernel, Interference state) const {
    KernelTime out;
    if (empty(kernel))
        return out;
    const auto price = [&](Interference in) {
        const Available left = available(*gpu_, in);
        switch (kernel.kind) {
            case KernelKind::gemm:
            case KernelKind::grouped_gemm: return gemm_time(*gpu_, kernel, peak_flops(kernel.precision), left);
            case KernelKind::attention_forward:
            case KernelKind::attention_backward:
                return attention_time(*gpu_, *attention_, kernel, peak_flops(attention_precision(kernel.precision)),
                                      left);
            case KernelKind::memory_bound: break;
        }
        return memory_bound_time(*gpu_, kernel, left);
    };
    const double alone = price(Interference::alone);
    double seconds = state == Interference::alone ? alone : std::clamp(price(state), alone, kMaxSlowdown * alone);

    const double count = static_cast<double>(kernel.count);
    if (kernel.kind == KernelKind::gemm || kernel.kind == KernelKind::grouped_gemm) {
        // Clock follows the square root of power near the cap; a bigger board never beats the burst rate.
        const double rate = (options_.sustained ? gpu_->gemm.sustained : 1) * std::sqrt(options_.power_fraction);
        seconds /= std::min(1.0, rate);
        if (kernel.kind == KernelKind::grouped_gemm)
            seconds /= grouped_efficiency(*gpu_, std::min(kernel.m, kernel.k));
        out.flops = gemm_flops(kernel) * count;
        out.ideal_s = out.flops / peak_flops(kernel.precision);
    } else if (kernel.kind != KernelKind::memory_bound) {
        out.flops = attention_flops(kernel) * count;
    }
    out.total_s = seconds * count;
    if (options_.gemm_at_peak && out.ideal_s > 0)
        out.total_s = std::min(out.total_s, out.ideal_s * gpu_->sms / available(*gpu_, state).sms);
    return out;
}

}  // namespace fabricast
