// Environment variables of the communication library: what each one does to a forecast.
//
// NCCL_ALGO, NCCL_PROTO, the channel (CTA) bounds and NCCL_NVLS_ENABLE change the choice and go into
// CommSettings. NCCL_ALGO and NCCL_PROTO as of 2.24: lists parted by `;`, each but the first headed by the function it is
// for ("ring;allreduce:tree,ring;broadcast:ring"; a headless first list is for all); `^` takes names away from what the
// function has so far (at first everything). Unknown names, a second headless list and an empty choice are errors.
// All other known variables are checked for range and produce a note: no effect, default anyway,
// deprecated, clamped, or only for faults. Values NCCL itself would refuse (an unknown algorithm, since 2.24)
// are errors. Defaults and ranges: NCCL user guide and source, 2.28; version steps noted in the table.
//   IB timeout: one attempt waits 4.096 us x 2^value; an error comes after 7 to 8 attempts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/collectives/comm_model.hpp"
#include "sim/scenario/diagnostics.hpp"

namespace fabricast {

struct EnvEntry {
    std::string name, value;
    Place place;
};

struct CommContext {
    int sms = 132;  ///< of the GPU: one channel takes one
    bool nvlink = true, nvls = false;
    bool network = true;  ///< several nodes
};

/// "nccl 2.28" -> 228 (2.28.9 too); 0 when it is not NCCL or has no version.
int nccl_version(const std::string& library);

/// settings.library must be set.
void apply_comm_env(std::span<const EnvEntry> env, const CommContext& context, CommSettings& settings,
                    std::vector<std::string>& notes, Diagnostics& diagnostics);

}  // namespace fabricast
