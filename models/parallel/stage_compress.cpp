// Traffic in fewer bytes (compressed_traffic.hpp): which collectives stand for a bucket, what codes cost.
#include <cmath>

#include <fmt/format.h>

#include "models/parallel/stage_program.hpp"
#include "models/parallel/stage_update.hpp"

namespace fabricast::stage {
namespace {

constexpr Bytes kFactor = 4;            // of an element of PowerSGD's factors
constexpr Bytes kPowerSgdTraffic = 32;  // memory bytes an element
constexpr Bytes kSum = 4;               // sums of codes are fp32

Bytes part(Bytes whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

Kernel codec(double bytes) {
    Kernel kernel;
    kernel.account = Account::memory_bound;
    kernel.bytes = std::llround(bytes);
    return kernel;
}

std::string named(std::string_view what, Compression method) {
    return fmt::format("{} ({})", what, compression_name(method));
}

}  // namespace

std::uint32_t LayerEmitter::tensor_call(Collective kind, Bytes bytes, std::string_view what, Phase phase,
                                        const std::vector<std::uint32_t>& waits, std::int64_t layer,
                                        std::int32_t share) {
    const Compression method = plan_.compression.tensor_parallel;
    const auto call = [&](Collective one, Bytes size, const std::string& name) {
        return collective(tensor_stream_, Slot::tp, one, size, name, Account::comm_tp, phase, waits, layer, share);
    };
    if (method == Compression::none || bytes < hidden_bytes())  // the loss, or one byte an element already
        return call(kind, bytes, std::string(what));
    const std::int64_t elements = shard_.tokens() * a_.hidden;
    const Bytes wire = compress(method, TensorClass::matrix, elements, false, activation_bytes_).wire;
    const Bytes own = part(bytes, layout_.tp), own_wire = part(wire, layout_.tp);
    const std::string name = named(what, method);
    std::uint32_t node = program::kNone;
    Bytes memory = 0;
    if (kind == Collective::all_gather) {
        node = call(kind, wire, name);
        memory = own + own_wire + wire + bytes;
    } else {
        node = call(Collective::all_to_all, wire, name);
        memory = bytes + wire + wire + own;
    }
    if (kind == Collective::all_reduce) {
        node = call(Collective::all_gather, wire, name);
        memory += own + own_wire + wire + bytes;
    }
    add({codec(static_cast<double>(memory) * share / 1000)});
    return node;
}

// Elements of a unit that are weight matrices of a layer.
Held StageBuilder::unit_matrices(const Unit& unit) const {
    if (unit.kind != Unit::Kind::layer && unit.kind != Unit::Kind::module)
        return {};
    Architecture held = a_;
    held.kv_heads = std::max(a_.kv_heads, layout_.tp);
    const LayerMatrices m =
        layer_matrices(held, layer_shape(a_, unit.layer), layout_.tp, layout_.ep, layout_.expert_tp());
    Held out{element_count(m.dense), element_count(m.experts)};
    if (unit.kind == Unit::Kind::module)
        out.dense += 2 * a_.hidden * a_.hidden / layout_.tp;
    return out;
}

// The same as a share of all a stage holds, for buckets that know no units.
double StageBuilder::matrix_share(bool expert) const {
    const LayerMatrices m = stage_matrices(a_, layout_, stage_);
    const Held held = parameters_.sum();
    const std::int64_t all = expert ? held.expert : held.dense;
    return all > 0 ? static_cast<double>(element_count(expert ? m.experts : m.dense)) / static_cast<double>(all) : 0;
}

// What a unit's parameters are on the wire, and the cost of codes.
Held StageBuilder::parameter_wire(const Unit& unit) const {
    Held wire{unit.parameters.dense * parameter_width(unit), unit.parameters.expert * activation_bytes_};
    const Compression method = plan_.compression.parameters;
    if (method == Compression::none)
        return wire;
    const Held matrices = unit_matrices(unit);
    const auto narrow = [&](std::int64_t elements, std::int64_t matrix, Bytes width) {
        return (elements - matrix) * width + compress(method, TensorClass::matrix, matrix, false, width).wire;
    };
    wire.dense = narrow(unit.parameters.dense, matrices.dense, activation_bytes_);
    wire.expert = narrow(unit.parameters.expert, matrices.expert, activation_bytes_);
    return wire;
}

void StageBuilder::add_parameter_codes(const Unit& unit) {
    if (plan_.compression.parameters == Compression::none)
        return;
    const Held m = unit_matrices(unit);
    const auto traffic = [&](std::int64_t elements, std::int64_t ranks) {
        const double each = static_cast<double>(activation_bytes_ + 1);  // wide on one side, a code on the other
        return ranks > 1 ? each * static_cast<double>(elements) * (1 + 1.0 / static_cast<double>(ranks)) : 0.0;
    };
    if (const double bytes = traffic(m.dense, dense_.ranks) + traffic(m.expert, experts_.ranks); bytes > 0)
        add({codec(bytes)});
}

StageBuilder::NarrowBucket StageBuilder::narrow_bucket(bool expert, Bytes bytes, double matrices) const {
    NarrowBucket out;
    out.plain = bytes;
    const CompressedTraffic& c = plan_.compression;
    const std::int64_t ranks = (expert ? experts_ : dense_).ranks;
    const auto elements =
        static_cast<std::int64_t>(std::floor(static_cast<double>(bytes / gradient_bytes_) * matrices));
    if (!c.narrow_gradients() || elements == 0 || ranks == 1)
        return out;
    out.plain = bytes - elements * gradient_bytes_;
    const Slot slot = expert ? Slot::expert_gradient : Slot::gradient;
    const std::string what = expert ? "expert gradient" : "gradient";
    const auto say = [&](Slot where, Collective kind, Bytes size, const std::string& how) {
        out.calls.push_back({named(what + " " + how, c.gradients), kind, where, size});
    };
    if (c.gradients == Compression::powersgd) {
        const LayerMatrices m = stage_matrices(a_, layout_, stage_);
        const std::vector<MatrixCount>& all = expert ? m.experts : m.dense;
        std::int64_t rows = 0, columns = 0;
        for (const MatrixCount& matrix : all) {
            rows += matrix.rows * matrix.count;
            columns += matrix.columns * matrix.count;
        }
        const double share = static_cast<double>(elements) / static_cast<double>(element_count(all));
        for (const std::int64_t lines : {rows, columns})
            say(slot, Collective::all_reduce, std::llround(static_cast<double>(kFactor * c.rank * lines) * share),
                "all-reduce");
        out.memory = kPowerSgdTraffic * elements;
        return out;
    }
    const CompressedGradient g = compress(c.gradients, TensorClass::matrix, elements, false, gradient_bytes_);
    out.memory = g.memory;
    if (g.all_reduce) {
        const bool reduce = layout_.zero == 0;
        say(slot, reduce ? Collective::all_reduce : Collective::reduce_scatter, g.wire,
            reduce ? "all-reduce" : "reduce-scatter");
        return out;
    }
    const std::int64_t inside = expert ? 1 : c.inside;
    if (inside > 1) {
        say(Slot::gradient_inside, Collective::all_to_all, g.wire, "all-to-all inside");
        say(Slot::gradient_across, Collective::all_to_all, part(g.wire, inside), "all-to-all across");
        out.memory += 2 * kSum * part(elements, inside) + 2 * part(g.wire, inside);
    } else {
        say(slot, Collective::all_to_all, g.wire, "all-to-all");
    }
    if (layout_.zero == 0)
        say(slot, Collective::all_gather, g.wire, "all-gather");
    return out;
}

}  // namespace fabricast::stage
