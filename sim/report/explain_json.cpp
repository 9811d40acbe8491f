// `fabricast explain --json`: result.json of the run and the key `explain`.
#include <nlohmann/json.hpp>

#include "sim/report/exact.hpp"
#include "sim/report/explain_views.hpp"
#include "sim/report/views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

ordered_json causes_json(const Explanation& e) {
    const double whole = static_cast<double>(static_cast<__int128>(e.run.step.ps) * e.run.step.ranks);
    ordered_json rows = ordered_json::array();
    for (const CauseRow& row : cause_rows(e)) {
        rows.push_back({{"cause", row.key},
                        {"group", row.group},
                        {"rank_ps", report::exact(row.rank_ps)},
                        {"fraction", static_cast<double>(row.rank_ps) / whole}});
    }
    return rows;
}

ordered_json communication_json(const Explanation& e) {
    ordered_json rows = ordered_json::array();
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        const __int128 total = e.communication[a], exposed = e.run.step.accounts[a];
        if (total == 0)
            continue;
        const double hidden = total > exposed ? 1 - static_cast<double>(exposed) / static_cast<double>(total) : 0;
        rows.push_back({{"account", account_name(static_cast<Account>(a))},
                        {"total_rank_ps", report::exact(total)},
                        {"exposed_rank_ps", report::exact(exposed)},
                        {"hidden_fraction", hidden}});
    }
    return rows;
}

ordered_json ceilings_json(const Explanation& e) {
    ordered_json rows = ordered_json::array();
    for (const Ceiling& c : e.ceilings) {
        rows.push_back({{"ceiling", c.key},
                        {"present", c.present},
                        {"ps", c.ps},
                        {"rerun_ps", c.rerun_ps},
                        {"time_s", seconds(c.ps)},
                        {"mfu", c.mfu},
                        {"how", c.how},
                        {"note", c.note}});
    }
    return rows;
}

}  // namespace

std::string explain_json(const Explanation& e) {
    ordered_json json = ordered_json::parse(result_json(e.run));
    ordered_json explain = {{"causes", ordered_json::array()},
                            {"communication", ordered_json::array()},
                            {"ceilings", ceilings_json(e)},
                            {"events", e.events}};
    if (e.run.step.ps > 0) {
        explain["causes"] = causes_json(e);
        explain["communication"] = communication_json(e);
    }
    explain["definitions"] = {
        {"causes",
         "rank-picoseconds over all GPUs; they sum to step.ps x engine.ranks exactly. The accounts of the waterfall, "
         "with "
         "bubble and straggler split by the re-run with equal stages"},
        {"communication",
         "total: every call alone on the network, exposed or not; exposed: the account, contention apart"},
        {"ceilings",
         "each a re-run with one cause removed; ps is never above the run, rerun_ps is what the re-run took; a cause "
         "that "
         "is not present was not re-run"}};
    json["explain"] = std::move(explain);
    return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
