// Where the time of a rank goes. Every picosecond of every rank is in exactly one account.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fabricast {

/// Order is the order of the printed waterfall.
enum class Account : std::uint8_t {
    gemm_ideal,    ///< matrix products at the dense peak
    gemm_loss,     ///< what the same kernels take beyond that
    attention,     ///< attention cores
    memory_bound,  ///< norms, activations, residuals, loss, casts
    optimizer,     ///< weight update and gradient norm
    recompute,     ///< kernels run again for backward
    host_bound,    ///< the GPU waits for the CPU to issue work
    interference,  ///< compute slowed by concurrent communication
    comm_tp,       ///< exposed tensor-parallel traffic
    comm_cp,
    comm_ep,
    comm_pp,         ///< exposed pipeline sends and receives
    comm_gradient,   ///< exposed gradient reduction
    comm_parameter,  ///< exposed parameter gathering
    comm_other,      ///< norms, loss, barriers
    contention,      ///< exposed communication beyond its uncontended time
    straggler,       ///< waiting for a peer that was late by its own work
    bubble,          ///< waiting for a message or for a peer that itself waited
    offload,         ///< copies to and from host memory and updates on the host, exposed
    data_wait,
    checkpoint,
    idle,
    count
};
inline constexpr std::size_t kAccountCount = static_cast<std::size_t>(Account::count);

constexpr std::string_view account_name(Account account) {
    constexpr std::array<std::string_view, kAccountCount> names = {
        "gemm_ideal",    "gemm_loss",      "attention",  "memory_bound", "optimizer", "recompute",
        "host_bound",    "interference",   "comm_tp",    "comm_cp",      "comm_ep",   "comm_pp",
        "comm_gradient", "comm_parameter", "comm_other", "contention",   "straggler", "bubble",
        "offload",       "data_wait",      "checkpoint", "idle"};
    return names[static_cast<std::size_t>(account)];
}

/// Why memory is held.
enum class MemoryCause : std::uint8_t {
    weights,
    gradients,
    optimizer,
    activations,
    logits,
    gathered_parameters,
    communication,
    temporary,
    context,
    count
};
inline constexpr std::size_t kMemoryCauseCount = static_cast<std::size_t>(MemoryCause::count);

constexpr std::string_view memory_cause_name(MemoryCause cause) {
    constexpr std::array<std::string_view, kMemoryCauseCount> names = {
        "weights",       "gradients", "optimizer", "activations", "logits", "gathered_parameters",
        "communication", "temporary", "context"};
    return names[static_cast<std::size_t>(cause)];
}

}  // namespace fabricast
