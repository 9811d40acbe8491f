// `fabricast explain --network --json`: result.json of the run and the key `network`.
#include <nlohmann/json.hpp>

#include "sim/report/exact.hpp"
#include "sim/report/network_views.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

ordered_json sent_json(const NetworkNeed& need, const SentBytes& sent) {
    ordered_json rows = ordered_json::array();
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        if (sent.from_gpus[a] + sent.over_network[a] == 0)
            continue;
        rows.push_back({{"account", account_name(static_cast<Account>(a))},
                        {"bytes", report::exact(sent.from_gpus[a])},
                        {"network_bytes", report::exact(sent.over_network[a])},
                        {"bytes_per_gpu", need.per_gpu(sent.from_gpus[a])},
                        {"network_bytes_per_gpu", need.per_gpu(sent.over_network[a])},
                        {"network_bytes_per_node", need.per_node(sent.over_network[a])},
                        {"network_bytes_busiest_node", report::exact(sent.busiest[a])}});
    }
    return rows;
}

std::string_view bound_name(NetworkRow::Bound bound) {
    switch (bound) {
        case NetworkRow::Bound::smallest_is_enough: return "smallest_is_enough";
        case NetworkRow::Bound::largest_is_short: return "largest_is_short";
        case NetworkRow::Bound::between: break;
    }
    return "between";
}

ordered_json row_json(const NetworkNeed& need, const NetworkRow& row) {
    ordered_json out = {{"micro_batch", row.micro_batch},
                        {"micro_batches", row.micro_batches},
                        {"tokens", row.tokens},
                        {"own", row.own},
                        {"refused", row.refused}};
    if (!row.refused.empty())
        return out;
    const bool never = row.bound == NetworkRow::Bound::largest_is_short;
    const auto gpus = static_cast<double>(need.gpus_per_node);
    out["memory_bytes"] = row.memory;
    out["fits"] = row.fits;
    out["network_bytes_per_gpu"] = need.per_gpu(SentBytes::sum(row.sent.over_network));
    out["ps"] = row.step;
    out["infinite_network_ps"] = row.infinite;
    out["waits_fraction"] = row.waits();
    out["exposed_with_infinite_network_fraction"] = row.exposed;
    out["needs"] = bound_name(row.bound);
    out["needs_bits_per_s_per_node"] = never ? ordered_json() : ordered_json(row.needs_bits_per_s);
    out["needs_bits_per_s_per_gpu"] = never ? ordered_json() : ordered_json(row.needs_bits_per_s / gpus);
    out["short_bits_per_s_per_node"] = row.short_bits_per_s > 0 ? ordered_json(row.short_bits_per_s) : ordered_json();
    return out;
}

}  // namespace

std::string network_json(const NetworkNeed& need) {
    ordered_json json = ordered_json::parse(result_json(need.run));
    ordered_json network = {{"verdict", network_verdict(need)},
                            {"has_bits_per_s_per_node", need.has_bits_per_s},
                            {"has_bits_per_s_per_gpu", need.has_bits_per_s / static_cast<double>(need.gpus_per_node)},
                            {"efficiency", need.efficiency},
                            {"sent", ordered_json::array()},
                            {"curve", ordered_json::array()},
                            {"smallest_bits_per_s_per_node", need.smallest},
                            {"largest_bits_per_s_per_node", need.largest},
                            {"hidden_within", kHiddenWithin},
                            {"resolution", kNeedResolution},
                            {"steps_simulated", need.steps},
                            {"events", need.events}};
    if (const NetworkRow* own = need.own(); own != nullptr && own->refused.empty())
        network["sent"] = sent_json(need, own->sent);
    for (const NetworkRow& row : need.rows)
        network["curve"].push_back(row_json(need, row));
    network["definitions"] = {
        {"sent",
         "wire bytes of one step, protocol overhead included: bytes leave GPUs over NVLink or PCIe, network_bytes "
         "leave "
         "adapters; of the scenario's micro-batch"},
        {"needs",
         "line rate of a node's adapters, one direction, at which the step is at most hidden_within times the step "
         "with "
         "an infinite network; simulated, the highest crossing; short: the next rate below that was simulated and does "
         "not hide"},
        {"infinite_network_ps",
         "same layout and software with links between nodes of 1 PB/s; latency, NVLink, PCIe and the library's "
         "channels "
         "as they are"},
        {"waits_fraction", "1 - infinite_network_ps / ps"}};
    json["network"] = std::move(network);
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
