// MFU = model FLOPs / (step time x GPUs x dense peak); HFU the same with recomputation counted. Attention scores count
// in full; mfu_causal and hfu_causal count half of them. Packed sequences: scores of documents; mfu_whole and hfu_whole count
// those of whole sequences, as trainers do that do not know the documents. Steps before compression begins count in the run.
#include <cassert>

#include "sim/report/views.hpp"

namespace fabricast {
namespace {

bool is_exposed_communication(Account account) {
    switch (account) {
        case Account::comm_tp:
        case Account::comm_cp:
        case Account::comm_ep:
        case Account::comm_pp:
        case Account::comm_gradient:
        case Account::comm_parameter:
        case Account::comm_other:
        case Account::contention: return true;
        default: return false;
    }
}

}  // namespace

Headline headline(const Result& result) {
    assert(result.scenario != nullptr && "a result belongs to a scenario");
    const StepResult& step = result.step;
    Headline h;
    h.peak_tflops = step.peak_flops / 1e12;
    if (step.ps <= 0 || step.ranks <= 0)
        return h;

    const double gpus = static_cast<double>(step.ranks);
    h.step_s = seconds(step.ps);
    h.interval = step_interval(*result.scenario, h.step_s);
    h.tokens_per_s = step.tokens / h.step_s;
    h.tokens_per_s_per_gpu = h.tokens_per_s / gpus;
    const double model_flops_per_s = step.model_flops / h.step_s / gpus;
    h.model_tflops_per_gpu = model_flops_per_s / 1e12;
    if (step.peak_flops > 0) {
        h.mfu = model_flops_per_s / step.peak_flops;
        const double possible = h.step_s * gpus * step.peak_flops;
        h.hfu = step.hardware_flops / possible;
        h.mfu_causal = (step.model_flops - step.attention_flops / 2) / possible;
        h.mfu_whole = (step.model_flops + step.attention_flops_whole - step.attention_flops) / possible;
        const double again = step.attention_flops > 0 ? step.attention_hardware_flops / step.attention_flops : 1;
        h.hfu_whole = (step.hardware_flops + (step.attention_flops_whole - step.attention_flops) * again) / possible;
        h.hfu_causal = (step.hardware_flops - step.attention_hardware_flops / 2) / possible;
    }

    __int128 exposed = 0, total = 0;
    for (std::size_t i = 0; i < kAccountCount; ++i) {
        total += step.accounts[i];
        if (is_exposed_communication(static_cast<Account>(i)))
            exposed += step.accounts[i];
    }
    if (total > 0) {
        h.exposed_comm_fraction = static_cast<double>(exposed) / static_cast<double>(total);
        const __int128 bubble = step.accounts[static_cast<std::size_t>(Account::bubble)];
        h.bubble_fraction = static_cast<double>(bubble) / static_cast<double>(total);
        if (result.waiting)
            h.bubble_imbalance_fraction =
                static_cast<double>(result.waiting->bubble_imbalance) / static_cast<double>(total);
    }

    if (result.scenario->tokens > 0 && h.tokens_per_s > 0) {
        const double share = result.warmup_ps > 0 ? result.scenario->compression_warmup : 0;
        const double step_s = (1 - share) * h.step_s + share * seconds(result.warmup_ps);
        h.days = result.scenario->tokens / step.tokens * step_s / 86400;
        h.gpu_hours = h.days * 24 * gpus;
        h.cost = h.gpu_hours * result.scenario->price_per_gpu_hour;
    }
    return h;
}

}  // namespace fabricast
