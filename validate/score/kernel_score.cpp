#include "validate/score/kernel_score.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "models/compute/attention.hpp"
#include "models/compute/compute_model.hpp"
#include "models/compute/gemm.hpp"
#include "sim/observed/csv.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;

/// "H100-SXM" is the entry that begins with it; the shortest one when several do.
const GpuSpec* gpu_named(const std::string& name) {
    if (const GpuSpec* exact = Catalogue::builtin().find_gpu(name))
        return exact;
    const GpuSpec* best = nullptr;
    for (const GpuSpec& gpu : Catalogue::builtin().gpus())
        if (gpu.name.starts_with(name + "-") && (best == nullptr || gpu.name.size() < best->name.size()))
            best = &gpu;
    return best;
}

std::string text_if(const Csv& table, std::size_t row, std::string_view column) {
    return table.has(column) ? table.text(row, column) : std::string();
}

std::int64_t number_after(const std::string& notes, std::string_view key, std::int64_t otherwise) {
    const std::size_t at = notes.find(key);
    return at == std::string::npos ? otherwise : std::stoll(notes.substr(at + key.size()));
}

/// Seconds of a measured point; nothing when neither time nor rate is given.
std::optional<double> measured_s(const Csv& table, std::size_t row, double flops) {
    if (table.has("latency_us"))
        if (const auto us = table.number_if_any(row, "latency_us"); us && *us > 0)
            return *us * 1e-6;
    if (const auto rate = table.number_if_any(row, "tflops"); rate && *rate > 0)
        return flops / (*rate * 1e12);
    return std::nullopt;
}

struct Errors {
    std::map<std::string, std::vector<double>> all, big;
    std::vector<double> total_all, total_big;
    void add(const std::string& name, double error, bool is_big, bool counts) {
        all[name].push_back(error);
        if (is_big)
            big[name].push_back(error);
        if (counts)
            total_all.push_back(error);
        if (counts && is_big)
            total_big.push_back(error);
    }
    void finish(KernelScore& score) const {
        for (const auto& [name, errors] : all)
            score.all[name] = error_stats(errors);
        for (const auto& [name, errors] : big)
            score.big[name] = error_stats(errors);
        score.total_all = error_stats(total_all);
        score.total_big = error_stats(total_big);
    }
};

// A loop of one product at the power limit against a few replays of it (kernels/README of the tables: large 16-bit shapes,
// H200 685 burst and 697 sustained, GB200 1519 and 1397). The catalogue's `sustained` is another thing: products inside
// training steps, with cold operands.
double loop_rate(const GpuSpec& gpu) { return gpu.generation == GpuGeneration::blackwell ? 0.92 : 1.0; }

// Prefill timings of serving engines write keys and values into the cache (read and written once, 8 bytes an element of
// one of them) and prepare the batch; the catalogue's start is that of a training kernel.
constexpr double kServingStart = 6e-6;

std::string attention_key(const std::string& kernel, const GpuSpec& gpu) {
    constexpr std::pair<std::string_view, std::string_view> kNames[] = {
        {"FA3-fp8", ""},     {"Triton", ""}, {"triton", ""}, {"fiprefill", ""},    {"fa4", "fa4"},
        {"FA4", "fa4"},      {"fa3", "fa3"}, {"FA3", "fa3"}, {"trtllm", "cudnn"},  {"cuDNN", "cudnn"},
        {"Engine", "cudnn"}, {"fa2", "fa2"}, {"FA2", "fa2"}, {"flash_attn", "fa2"}};
    if (kernel == "vllm_flash_attn" && gpu.generation == GpuGeneration::hopper)
        return "fa3";  // what that engine runs there
    for (const auto& [part, key] : kNames)
        if (kernel.find(part) != std::string::npos)
            return key.empty() || !gpu.attention.contains(key) ? std::string() : std::string(key);
    return {};
}

}  // namespace

KernelPoints read_gemm_points(const std::filesystem::path& path) {
    const Csv table = Csv::read(path);
    KernelPoints out;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const std::string &name = table.text(row, "gpu"), &dtype = table.text(row, "dtype");
        const std::string notes = text_if(table, row, "notes");
        const GpuSpec* gpu = gpu_named(name);
        const bool fp8 = dtype == "fp8" || dtype == "fp8_block";
        if (gpu == nullptr) {
            ++out.left_out["GPU not in the catalogue: " + name];
            continue;
        }
        if (!(fp8 || dtype == "bf16" || dtype == "fp16") || (fp8 && !(gpu->peak_fp8 > 0))) {
            ++out.left_out["type not priced: " + dtype];
            continue;
        }
        if (notes.find("ZERO") != std::string::npos || notes.find("not randomised") != std::string::npos) {
            ++out.left_out["operands never filled"];
            continue;
        }
        if (table.has("batch_or_groups") && table.integer(row, "batch_or_groups") != 1) {
            ++out.left_out["grouped"];
            continue;
        }
        if (text_if(table, row, "source").find("MAMF") != std::string::npos) {
            ++out.left_out["best shape of a search, not a typical one"];
            continue;
        }
        KernelPoint point;
        Kernel& kernel = point.kernel;
        kernel.kind = KernelKind::gemm;
        kernel.m = table.integer(row, "m");
        kernel.n = table.integer(row, "n");
        kernel.k = table.integer(row, "k");
        kernel.precision = fp8 ? Precision::fp8 : Precision::bf16;
        kernel.accumulate_fp32 = notes.find("accumulate=True") != std::string::npos;
        const std::string protocol = text_if(table, row, "protocol");
        point.sustained = protocol == "sustained" || notes.find("sustained") != std::string::npos;
        point.gpu = gpu;
        point.where = fmt::format("line {}", table.line(row));
        point.group = fmt::format("{} {}{}", name, dtype, point.sustained ? " sustained" : "");
        if (fp8)
            point.extra_bytes = 3 * kernel.m * kernel.k;
        const auto measured = measured_s(table, row, gemm_flops(kernel));
        if (!measured)
            continue;
        point.measured_s = *measured;
        point.training_size = std::min({kernel.m, kernel.n, kernel.k}) >= 1024;
        point.counts = !fp8;
        out.points.push_back(std::move(point));
    }
    return out;
}

KernelPoints read_attention_points(const std::filesystem::path& path) {
    const Csv table = Csv::read(path);
    KernelPoints out;
    for (std::size_t row = 0; row < table.size(); ++row) {
        const std::string& name = table.text(row, "gpu");
        const std::string impl = table.has("impl") ? table.text(row, "impl") : table.text(row, "kernel");
        const std::string notes = text_if(table, row, "notes");
        const GpuSpec* gpu = gpu_named(name);
        if (gpu == nullptr) {
            ++out.left_out["GPU not in the catalogue: " + name];
            continue;
        }
        const std::string key = attention_key(impl, *gpu);
        if (key.empty()) {
            ++out.left_out["kernel without constants: " + impl];
            continue;
        }
        if (table.has("window") && table.integer(row, "window") != 0) {
            ++out.left_out["sliding window"];
            continue;
        }
        KernelPoint point;
        Kernel& kernel = point.kernel;
        const bool backward = text_if(table, row, "direction") == "bwd";
        kernel.kind = backward ? KernelKind::attention_backward : KernelKind::attention_forward;
        kernel.account = Account::attention;
        kernel.sq = kernel.sk = table.integer(row, table.has("seq") ? "seq" : "seq_len");
        kernel.heads = table.integer(row, "heads");
        kernel.head_dim = table.integer(row, "head_dim");
        constexpr std::int64_t kTokens = 16384;  // figures of papers: batch x sequence
        kernel.batch = table.text(row, "batch").empty() ? std::max<std::int64_t>(1, kTokens / kernel.sq)
                                                        : table.integer(row, "batch");
        kernel.kv_heads =
            table.has("kv_heads") ? table.integer(row, "kv_heads") : number_after(notes, "kv_heads=", kernel.heads);
        const std::string& causal = table.text(row, "causal");
        kernel.causal = causal == "True" || causal == "1" || causal == "true";
        if (impl.starts_with("vllm") && kernel.causal) {
            point.extra_bytes = 8 * kernel.batch * kernel.sq * kernel.kv_heads * kernel.head_dim;
            point.extra_s = kServingStart;
        }
        const auto measured = measured_s(table, row, attention_flops(kernel));
        if (!measured)
            continue;
        point.measured_s = *measured;
        point.gpu = gpu;
        point.attention = key;
        point.where = fmt::format("line {}", table.line(row));
        point.group = fmt::format("{} {} {}", name, impl, backward ? "backward" : "forward");
        point.training_size = kernel.sq >= 2048;
        point.counts = !backward;
        out.points.push_back(std::move(point));
    }
    return out;
}

double predicted_s(const KernelPoint& point, const GpuSpec& gpu) {
    const std::string attention = point.attention.empty() ? gpu.attention.begin()->first : point.attention;
    const ComputeModel model(gpu, {.attention = attention, .sustained = false});
    double predicted = model.time(point.kernel).total_s / (point.sustained ? loop_rate(gpu) : 1) + point.extra_s;
    if (point.extra_bytes > 0) {
        Kernel pass;
        pass.bytes = point.extra_bytes;
        predicted += model.time(pass).total_s;
    }
    return predicted;
}

KernelScore score_points(const std::string& what, const KernelPoints& points) {
    KernelScore score;
    score.what = what;
    score.left_out = points.left_out;
    Errors errors;
    for (const KernelPoint& point : points.points)
        errors.add(point.group, predicted_s(point, *point.gpu) / point.measured_s - 1, point.training_size,
                   point.counts);
    errors.finish(score);
    return score;
}

KernelScore score_gemm(const std::filesystem::path& path) { return score_points("gemm", read_gemm_points(path)); }
KernelScore score_attention(const std::filesystem::path& path) {
    return score_points("attention", read_attention_points(path));
}

std::string kernel_score_text(const KernelScore& score) {
    std::string text;
    const auto out = std::back_inserter(text);
    const bool gemm = score.what == "gemm";
    fmt::format_to(out, "{:<46} {:>6} {:>7} {:>7} {:>7}   {:>6} {:>7} {:>7} {:>7}\n", score.what, "all", "median",
                   "p90", "bias", gemm ? ">=1024" : ">=2k", "median", "p90", "bias");
    const auto line = [&](const std::string& name, const ErrorStats& all, const ErrorStats& big) {
        fmt::format_to(out, "{:<46} {:>6} {:>6.1f}% {:>6.1f}% {:>+6.1f}%   {:>6} {:>6.1f}% {:>6.1f}% {:>+6.1f}%\n",
                       name, all.n, 100 * all.median, 100 * all.p90, 100 * all.bias, big.n, 100 * big.median,
                       100 * big.p90, 100 * big.bias);
    };
    for (const auto& [name, all] : score.all) {
        const auto big = score.big.find(name);
        line(name, all, big == score.big.end() ? ErrorStats{} : big->second);
    }
    line(gemm ? "all 16-bit points" : "all forward points", score.total_all, score.total_big);
    for (const auto& [reason, points] : score.left_out)
        fmt::format_to(out, "left out  {:>6}  {}\n", points, reason);
    return text;
}

Json kernel_score_json(const KernelScore& score) {
    const auto stats = [](const ErrorStats& s) {
        return Json{{"n", s.n}, {"mape", s.mape}, {"median_ape", s.median}, {"p90_ape", s.p90}, {"bias", s.bias}};
    };
    Json classes = Json::object();
    for (const auto& [name, all] : score.all) {
        const auto big = score.big.find(name);
        classes[name] = {{"all", stats(all)},
                         {"training_size", stats(big == score.big.end() ? ErrorStats{} : big->second)}};
    }
    Json left_out = Json::object();
    for (const auto& [reason, points] : score.left_out)
        left_out[reason] = points;
    return {{"schema", "fabricast-kernel-score/1"},
            {"what", score.what},
            {"total", {{"all", stats(score.total_all)}, {"training_size", stats(score.total_big)}}},
            {"classes", classes},
            {"left_out", left_out}};
}

}  // namespace fabricast
