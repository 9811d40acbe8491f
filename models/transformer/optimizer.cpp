#include "models/transformer/optimizer.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace fabricast {
namespace {

constexpr Bytes kScale = 4;

struct Moments {
    StateType first = StateType::none, second = StateType::none;
};

Moments moments_of(const Optimizer& o) {
    switch (o.kind) {
        case OptimizerKind::adam:
        case OptimizerKind::muon: return {o.first, o.second};
        case OptimizerKind::adam_8bit: return {StateType::int8, StateType::int8};
        case OptimizerKind::lion:
        case OptimizerKind::sgd_momentum: return {o.first, StateType::none};
        case OptimizerKind::adafactor: return {StateType::none, StateType::fp32};  // of vectors
        case OptimizerKind::sgd: break;
    }
    return {};
}

StateType master_of(const Optimizer& o, Precision precision) {
    return precision == Precision::fp32 ? StateType::none : o.master;
}

Bytes weight_bytes(Precision precision) { return precision == Precision::fp32 ? 4 : 2; }

double width(StateType type, std::int64_t block) {
    const double scale = type == StateType::int8 ? static_cast<double>(kScale) / static_cast<double>(block) : 0;
    return static_cast<double>(state_bytes(type, 1, 1) - (type == StateType::int8 ? kScale : 0)) + scale;
}

/// Weight and its master: both are written, what is not derived from the other is read.
double weight_traffic(const Optimizer& o, Precision precision) {
    const StateType master = master_of(o, precision);
    const auto weight = static_cast<double>(weight_bytes(precision));
    return master == StateType::none ? 2 * weight : 2 * width(master, o.block) + weight;
}

Kernel pass(double bytes) {
    Kernel k;
    k.account = Account::optimizer;
    k.bytes = std::llround(bytes);
    return k;
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t count) {
    Kernel out;
    out.kind = KernelKind::gemm;
    out.account = Account::optimizer;
    out.m = m;
    out.n = n;
    out.k = k;
    out.count = count;
    return out;
}

void append_muon(const Optimizer& o, Precision precision, const Updated& u, Bytes gradient, std::vector<Kernel>& out) {
    constexpr double kNarrow = 2, kNormalise = 6;
    const auto elements = static_cast<double>(u.matrix_elements());
    out.push_back(pass(elements * (static_cast<double>(gradient) + 2 * width(o.first, o.block) + kNarrow)));
    for (const MatrixCount& matrix : u.matrices) {
        const std::int64_t m = std::min(matrix.rows, matrix.columns), n = std::max(matrix.rows, matrix.columns);
        Kernel scale = pass(kNormalise * static_cast<double>(m * n));
        scale.count = matrix.count;
        out.push_back(scale);
        const std::int64_t products = o.iterations * matrix.count;
        out.push_back(product(m, m, n, products));
        out.push_back(product(m, m, m, products));
        out.push_back(product(m, n, m, products));
    }
    out.push_back(pass(elements * (kNarrow + weight_traffic(o, precision))));
}

}  // namespace

std::string_view optimizer_name(OptimizerKind kind) {
    constexpr std::string_view kNames[] = {"adam", "adam-8bit", "lion", "sgd", "sgd-momentum", "adafactor", "muon"};
    return kNames[static_cast<int>(kind)];
}

std::string_view state_type_name(StateType type) {
    constexpr std::string_view kNames[] = {"none", "fp32", "bf16", "fp16", "fp8", "int8"};
    return kNames[static_cast<int>(type)];
}

std::string optimizer_text(const Optimizer& o) {
    std::string out(optimizer_name(o.kind));
    const Moments m = moments_of(o);
    const bool named = o.kind != OptimizerKind::adam_8bit && o.kind != OptimizerKind::adafactor;
    if (named && m.first != StateType::none && m.second != StateType::none && m.first != m.second)
        out += fmt::format(", moments {} and {}", state_type_name(m.first), state_type_name(m.second));
    else if (named && m.first != StateType::none && m.first != StateType::fp32)
        out += fmt::format(", moments {}", state_type_name(m.first));
    if (o.master == StateType::none)
        out += ", no master weights";
    else if (o.master != StateType::fp32)
        out += fmt::format(", master weights {}", state_type_name(o.master));
    return out;
}

std::int64_t Updated::matrix_elements() const {
    std::int64_t sum = 0;
    for (const MatrixCount& matrix : matrices)
        sum += matrix.elements();
    return sum;
}

Bytes state_bytes(StateType type, std::int64_t elements, std::int64_t block) {
    switch (type) {
        case StateType::none: break;
        case StateType::fp32: return 4 * elements;
        case StateType::bf16:
        case StateType::fp16: return 2 * elements;
        case StateType::fp8: return elements;
        case StateType::int8: return elements + kScale * ((elements + block - 1) / block);
    }
    return 0;
}

Bytes optimizer_bytes(const Optimizer& o, Precision precision, const Updated& u) {
    const Moments m = moments_of(o);
    const std::int64_t matrices = u.matrix_elements();
    return state_bytes(master_of(o, precision), u.total(), o.block) +
           state_bytes(m.first, u.elements + matrices, o.block) + state_bytes(m.second, u.elements, o.block) +
           state_bytes(StateType::fp32, u.factors, o.block);
}

double update_traffic(const Optimizer& o, Precision precision, Bytes gradient) {
    const Moments m = moments_of(o);
    return static_cast<double>(gradient) + weight_traffic(o, precision) +
           2 * (width(m.first, o.block) + width(m.second, o.block));
}

std::vector<Kernel> optimizer_kernels(const Optimizer& o, Precision precision, const Updated& u, Bytes gradient,
                                      bool clip) {
    std::vector<Kernel> out;
    const double gradients = static_cast<double>(gradient) * static_cast<double>(u.total());
    if (u.total() == 0)
        return out;
    if (clip)
        out.push_back(pass(gradients));
    if (u.elements > 0)
        out.push_back(pass(update_traffic(o, precision, gradient) * static_cast<double>(u.elements)));
    if (u.factored > 0) {
        const auto elements = static_cast<double>(u.factored);
        const double means = 2.0 * 4.0 * static_cast<double>(u.factors);
        out.push_back(pass(static_cast<double>(gradient) * elements + means));
        out.push_back(pass((static_cast<double>(gradient) + 4) * elements));
        out.push_back(pass((4 + weight_traffic(o, precision)) * elements));
    }
    if (!u.matrices.empty())
        append_muon(o, precision, u, gradient, out);
    out.push_back(pass(gradients));
    return out;
}

}  // namespace fabricast
