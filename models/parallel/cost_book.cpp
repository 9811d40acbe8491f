#include "models/parallel/cost_book.hpp"

#include <algorithm>

namespace fabricast {

void CostBook::append_key(const Kernel& k, Key& key) {
    key.insert(key.end(), {static_cast<std::int64_t>(k.kind),
                           static_cast<std::int64_t>(k.account),
                           k.count,
                           k.m,
                           k.n,
                           k.k,
                           k.batch,
                           static_cast<std::int64_t>(k.precision),
                           k.tokens_in_k,
                           k.accumulate_fp32,
                           k.heads,
                           k.kv_heads,
                           k.sq,
                           k.sk,
                           k.head_dim,
                           k.value_dim,
                           k.window,
                           k.document,
                           k.causal,
                           k.balanced,
                           k.bytes,
                           static_cast<std::int64_t>(k.fusion)});
}

const CostBook::Price& CostBook::price(const Kernel& kernel) {
    Key key;
    append_key(kernel, key);
    const auto [at, fresh] = prices_.try_emplace(std::move(key));
    if (fresh) {
        for (std::size_t state = 0; state < kInterferenceCount; ++state) {
            const KernelTime time = compute_.time(kernel, static_cast<Interference>(state));
            at->second.time[state] = time.total_s;
            if (state == 0)
                at->second.ideal = std::min(time.ideal_s, time.total_s);
        }
    }
    return at->second;
}

std::uint32_t CostBook::intern(const std::vector<Kernel>& kernels, LayerPasses passes) {
    Key key;
    key.reserve(kernels.size() * 20 + 2);
    key.push_back(passes.forward);
    key.push_back(passes.backward);
    for (const Kernel& kernel : kernels)
        append_key(kernel, key);
    const auto [at, fresh] = ids_.try_emplace(std::move(key), static_cast<std::uint32_t>(classes_.size()));
    if (!fresh)
        return at->second;

    double state_s[kInterferenceCount] = {};
    double account_s[kAccountCount] = {};
    std::int64_t launches = 0;
    for (const Kernel& kernel : kernels) {
        const Price& p = price(kernel);
        for (std::size_t state = 0; state < kInterferenceCount; ++state)
            state_s[state] += p.time[state];
        if (kernel.account == Account::gemm_ideal) {
            account_s[static_cast<std::size_t>(Account::gemm_ideal)] += p.ideal;
            account_s[static_cast<std::size_t>(Account::gemm_loss)] += p.time[0] - p.ideal;
        } else {
            account_s[static_cast<std::size_t>(kernel.account)] += p.time[0];
        }
        launches += kernel.count;
    }
    program::CostClass cost;
    for (std::size_t a = 0; a < kAccountCount; ++a) {
        cost.parts[a] = picoseconds_from_s(account_s[a]);
        cost.work += cost.parts[a];
    }
    for (std::size_t state = 1; state < kInterferenceCount; ++state) {
        const double ratio = state_s[state] > 0 ? state_s[0] / state_s[state] : 1.0;
        cost.speed[state] = static_cast<std::uint32_t>(
            std::clamp(ratio * program::kFullSpeed, 1.0, static_cast<double>(program::kFullSpeed)));
    }
    if (!software_.cuda_graphs && launches > 0) {
        const double host = static_cast<double>(launches) * software_.host_per_kernel_s +
                            (passes.forward + passes.backward * software_.host_backward_share) *
                                software_.host_per_layer_s;
        cost.host = picoseconds_from_s(host);
        cost.host_first = picoseconds_from_s(software_.host_per_kernel_s);
        const Kernel& last = kernels.back();
        cost.tail = picoseconds_from_s(price(last).time[0] / static_cast<double>(last.count));
    }
    classes_.push_back(cost);
    return at->second;
}

}  // namespace fabricast
