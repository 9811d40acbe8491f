#include <fmt/format.h>

#include "sim/report/network_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using Bound = NetworkRow::Bound;

constexpr double kWorthSaying = 0.05;  // of a step

/// "2 040 Gb/s", "37.5 Gb/s": three digits.
std::string rate(double bits_per_s) {
    double unit = 1e6;
    while (bits_per_s >= 1000 * unit)
        unit *= 10;
    const double gigabits = static_cast<double>(static_cast<std::int64_t>(bits_per_s / unit + 0.5)) * unit / 1e9;
    return (gigabits < 100 ? fmt::format("{:g}", gigabits) : report::grouped(gigabits)) + " Gb/s";
}

std::string sequences(std::int64_t micro_batch) {
    return fmt::format("a micro-batch of {} {}", micro_batch, micro_batch == 1 ? "sequence" : "sequences");
}

std::string answer(const NetworkNeed& need, const NetworkRow& own) {
    const std::string has = rate(need.has_bits_per_s);
    const std::string waits = report::percent(own.waits());
    if (SentBytes::sum(own.sent.over_network) == 0)
        return "nothing of this step crosses the network: any does";
    switch (own.bound) {
        case Bound::largest_is_short:
            return fmt::format(
                "even {} a node do not hide its communication; it has {}: {} of the step waits for the "
                "network",
                rate(need.largest), has, waits);
        case Bound::smallest_is_enough:
            return fmt::format("{} a node, the least looked at, already hide its communication; it has {}",
                               rate(need.smallest), has);
        case Bound::between: break;
    }
    const std::string needs =
        fmt::format("needs {} a node ({} a GPU) for its communication to hide", rate(own.needs_bits_per_s),
                    rate(own.needs_bits_per_s / static_cast<double>(need.gpus_per_node)));
    if (static_cast<double>(own.step) > kHiddenWithin * static_cast<double>(own.infinite))
        return fmt::format("{}, has {}: {} of the step waits for the network", needs, has, waits);
    return fmt::format("{}, has {}: it hides; {} of the step waits for the network", needs, has, waits);
}

bool enough(const NetworkNeed& need, const NetworkRow& row) {
    return row.refused.empty() && row.bound != Bound::largest_is_short && row.needs_bits_per_s <= need.has_bits_per_s;
}

}  // namespace

std::vector<std::string> network_verdict(const NetworkNeed& need) {
    const NetworkRow* own = need.own();
    if (own == nullptr || !own->refused.empty())
        return {};
    std::vector<std::string> out = {answer(need, *own)};
    if (own->exposed > kWorthSaying) {
        out.push_back(
            fmt::format("no network mends it all: with an infinite one {} of the step still is exposed communication, "
                        "held by latency, links inside the nodes or the library",
                        report::percent(own->exposed)));
    }
    for (const NetworkRow& row : need.rows) {
        if (row.micro_batch > own->micro_batch && row.fits && enough(need, row) && !enough(need, *own)) {
            out.push_back(fmt::format("with {} it would hide on what there is: {} a node are needed",
                                      sequences(row.micro_batch), rate(row.needs_bits_per_s)));
            break;
        }
    }
    return out;
}

}  // namespace fabricast
