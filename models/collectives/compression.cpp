#include "models/collectives/compression.hpp"

#include <array>
#include <cassert>

namespace fabricast {

namespace {

constexpr std::int64_t kFp8Block = 1024, kIntegerBlock = 4096, kSignBlock = 4096, kScale = 4, kFp32 = 4;
constexpr std::array kAll = {Compression::none, Compression::fp16, Compression::bf16,         Compression::fp8,
                             Compression::int8, Compression::int4, Compression::one_bit_adam, Compression::powersgd};

std::int64_t blocks(std::int64_t elements, std::int64_t block) { return (elements + block - 1) / block; }

}  // namespace

std::string_view compression_name(Compression method) {
    constexpr std::string_view kNames[] = {"none", "fp16", "bf16", "fp8", "int8", "int4", "1-bit-adam", "powersgd"};
    return kNames[static_cast<int>(method)];
}

std::span<const Compression> compressions() { return kAll; }

CompressedGradient compress(Compression method, TensorClass tensor, std::int64_t elements, bool warming_up,
                            Bytes width) {
    assert(elements >= 0 && "a tensor has no negative size");
    CompressedGradient out;
    out.wire = width * elements;
    if (method == Compression::none || method == Compression::powersgd || tensor != TensorClass::matrix ||
        (method == Compression::one_bit_adam && warming_up))
        return out;
    std::int64_t error = 0;
    switch (method) {
        case Compression::fp16:
        case Compression::bf16: out.wire = 2 * elements; break;
        case Compression::fp8: out.wire = elements + kScale * blocks(elements, kFp8Block); break;
        case Compression::int8: out.wire = elements + kScale * blocks(elements, kIntegerBlock); break;
        case Compression::int4: out.wire = blocks(elements, 2) + kScale * blocks(elements, kIntegerBlock); break;
        default:
            out.wire = blocks(elements, 8) + kScale * blocks(elements, kSignBlock);
            error = 2 * kFp32 * elements;
            break;
    }
    out.all_reduce = method == Compression::fp16 || method == Compression::bf16;
    out.memory = 2 * (width * elements + out.wire) + error;
    return out;
}

double encode_s(const CompressedGradient& gradient, double hbm_bytes_per_s) {
    return static_cast<double>(gradient.memory) / hbm_bytes_per_s;
}

}  // namespace fabricast
