// State on the host: copies over PCIe and the update there (offload.hpp).
#include "models/parallel/stage_program.hpp"

namespace fabricast::stage {

std::uint32_t StageBuilder::host_copy(HostRoute route, Bytes bytes, std::string_view what, Phase phase,
                                      const std::vector<std::uint32_t>& waits) {
    Operation op;
    op.kind = OpKind::transfer;
    op.stream = route == HostRoute::down ? kDownload : kUpload;
    const auto slot = static_cast<std::uint16_t>(route);
    while (op.payload < p_.transfers.size() &&
           (p_.transfers[op.payload].route_slot != slot || p_.transfers[op.payload].bytes != bytes))
        ++op.payload;
    if (op.payload == p_.transfers.size())
        p_.transfers.push_back({slot, bytes});
    op.label = label(what, Account::offload, phase);
    for (const std::uint32_t wait : waits) {
        if (wait != program::kNone && t_.operations[t_.nodes[wait].operation].stream != op.stream)
            op.waits.push_back(wait);
    }
    return push(std::move(op));
}

std::uint32_t StageBuilder::host_update(std::int64_t elements, std::uint32_t after) {
    Operation op;
    op.kind = OpKind::host;
    op.stream = kHost;
    op.payload = static_cast<std::uint32_t>(p_.durations.size());
    const double bytes =
        static_cast<double>(elements) * update_traffic(plan_.optimizer, plan_.precision, gradient_bytes_);
    p_.durations.push_back(picoseconds_from_s(bytes / plan_.offload.host_bytes_per_s));
    op.label = label("update on the host", Account::offload, Phase::optimizer);
    if (after != program::kNone)
        op.waits.push_back(after);
    return push(std::move(op));
}

// Gradients that a reduction left on this rank.
void StageBuilder::gradients_down(Bytes bytes, std::uint32_t after) {
    const auto part = static_cast<Bytes>(plan_.offload.optimizer * static_cast<double>(bytes));
    down_ = host_copy(HostRoute::down, part, "gradients to host", Phase::reduce, {after});
}

// Emits the update of the host's elements; the node after which their weights are where the step needs them.
std::uint32_t StageBuilder::update_on_host(std::int64_t elements) {
    const std::int64_t whole = (elements + kHostPiece - 1) / kHostPiece;
    const std::int64_t pieces = plan_.offload.overlap ? std::clamp<std::int64_t>(whole, 1, kMostPieces) : 1;
    Operation begins;  // not before the step has: streams of their own would run ahead
    begins.payload = parts_.costs.intern({}, {});
    begins.label = label("optimizer", Account::gemm_ideal, Phase::optimizer);
    const std::uint32_t begin = push(std::move(begins));
    std::uint32_t ready = program::kNone;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::int64_t part = elements * (piece + 1) / pieces - elements * piece / pieces;
        std::uint32_t after = begin;
        if (!gradients_leave_)
            after = host_copy(HostRoute::down, part * gradient_bytes_, "gradients to host", Phase::optimizer, {begin});
        ready = host_update(part, after);
        if (!plan_.offload.parameters)
            ready = host_copy(HostRoute::up, part * activation_bytes_, "weights from host", Phase::optimizer, {ready});
    }
    return ready;
}

}  // namespace fabricast::stage
