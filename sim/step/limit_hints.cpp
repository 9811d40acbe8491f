#include "sim/step/limit_hints.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace fabricast {

std::vector<std::string> limit_hints(const Result& result) {
    constexpr double kWorthSaying = 0.1;  // of the step
    const double whole = static_cast<double>(static_cast<__int128>(result.step.ps) * result.step.ranks);
    if (!(whole > 0))
        return {};
    const double host = static_cast<double>(result.step.accounts[static_cast<std::size_t>(Account::offload)]) / whole;
    if (host > kWorthSaying)
        return {
            fmt::format("host memory is the limit: copies and updates there are exposed {:.0f} % of the step; a rank "
                        "has {:.1f} GB/s of its server's memory for them (offload.fraction lessens it)",
                        100 * host, result.scenario->training.offload.host_bytes_per_s / 1e9)};
    const auto share = [&](const CommRow& row) {
        return row.account == Account::count || row.account == Account::offload
                   ? 0.0
                   : static_cast<double>(result.step.accounts[static_cast<std::size_t>(row.account)]) / whole;
    };
    double gradients_and_parameters = 0;
    for (const Account account : {Account::comm_gradient, Account::comm_parameter})
        gradients_and_parameters +=
            static_cast<double>(result.step.accounts[static_cast<std::size_t>(account)]) / whole;
    const auto row = std::max_element(result.communication.begin(), result.communication.end(),
                                      [&](const CommRow& a, const CommRow& b) { return share(a) < share(b); });
    if (row == result.communication.end() || !row->limiting_place.ends_with("inside the node") ||
        row->limiting_place.starts_with("NVLink"))
        return {};
    const bool data_parallel = row->account == Account::comm_gradient || row->account == Account::comm_parameter;
    const double exposed = data_parallel ? gradients_and_parameters : share(*row);
    if (exposed < kWorthSaying)
        return {};
    return {fmt::format("the {} is the limit: {} reaches {:.1f} GB/s busbw there; {} are exposed {:.0f} % of the step",
                        row->limiting_place, row->what, row->busbw_bytes_per_s / 1e9,
                        data_parallel ? "gradients and parameters" : "such messages", exposed * 100)};
}

}  // namespace fabricast
