#include "sim/step/traffic_counts.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace fabricast {

TrafficCounts traffic_counts(const program::Program& p, const program::Rank& rank) {
    const program::Template& t = p.templates[rank.tmpl];
    const std::vector<std::int64_t> runs = program::executions(t, rank.bindings);
    std::map<std::pair<std::uint32_t, Account>, std::int64_t> calls;
    std::map<std::tuple<std::uint16_t, bool, Bytes, Account>, std::int64_t> messages;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        const program::Operation& op = t.operations[i];
        const Account account = p.labels[op.label].account;
        if (op.kind == program::OpKind::collective)
            calls[{op.payload, account}] += runs[i];
        if (op.kind == program::OpKind::p2p_batch) {
            for (const program::MessageHalf& half : p.batches[op.payload].halves)
                messages[{half.peer_slot, half.is_send, half.bytes, account}] += runs[i];
        }
    }
    TrafficCounts out;
    for (const auto& [key, times] : calls)
        out.calls.push_back({key.first, key.second, times});
    for (const auto& [key, times] : messages) {
        const auto& [slot, is_send, bytes, account] = key;
        out.messages.push_back({slot, is_send, bytes, account, times});
    }
    return out;
}

}  // namespace fabricast
