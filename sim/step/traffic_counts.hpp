// How often a rank makes each call and sends each message in one step, by account.
#pragma once

#include <cstdint>
#include <vector>

#include "models/program/account.hpp"
#include "models/program/program.hpp"

namespace fabricast {

struct CallCount {
    std::uint32_t call;
    Account account;
    std::int64_t times;
};
struct MessageCount {
    std::uint16_t slot;
    bool is_send;
    Bytes bytes;
    Account account;
    std::int64_t times;
};
struct TrafficCounts {
    std::vector<CallCount> calls;
    std::vector<MessageCount> messages;
};

/// Of ranks with this template and these bindings.
TrafficCounts traffic_counts(const program::Program& program, const program::Rank& rank);

}  // namespace fabricast
