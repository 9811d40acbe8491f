// The rows of the table: the accounts, with bubble and waiting for peers split by cause.
#include "sim/report/explain_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

std::string_view group_of(Account account) {
    switch (account) {
        case Account::gemm_ideal:
        case Account::gemm_loss:
        case Account::attention:
        case Account::memory_bound:
        case Account::optimizer:
        case Account::recompute:
        case Account::host_bound: return "compute";
        case Account::interference: return "slowed";
        case Account::comm_tp:
        case Account::comm_cp:
        case Account::comm_ep:
        case Account::comm_pp:
        case Account::comm_gradient:
        case Account::comm_parameter:
        case Account::comm_other:
        case Account::contention: return "communication";
        case Account::straggler:
        case Account::bubble: return "waiting";
        default: return "other";
    }
}

}  // namespace

std::vector<CauseRow> cause_rows(const Explanation& e) {
    const StepResult& step = e.run.step;
    const WaitingSplit split = e.run.waiting.value_or(WaitingSplit{});
    std::vector<CauseRow> rows;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        const auto account = static_cast<Account>(a);
        CauseRow row = {std::string(account_name(account)), std::string(group_of(account)),
                        std::string(report::account_text(account)), step.accounts[a]};
        if (account == Account::straggler)
            row.rank_ps -= split.straggler_imbalance;
        if (account == Account::bubble) {
            rows.push_back(
                {"bubble_warmup", "waiting", "pipeline warm-up and drain", row.rank_ps - split.bubble_imbalance});
            row = {"stage_imbalance", "waiting", "imbalance of stages",
                   split.bubble_imbalance + split.straggler_imbalance};
        }
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace fabricast
