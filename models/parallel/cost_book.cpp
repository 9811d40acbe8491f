#include "models/parallel/cost_book.hpp"

#include <algorithm>

#include "models/program/mix.hpp"

namespace fabricast {

std::size_t KernelKeyHash::operator()(const KernelKey& key) const {
    std::uint64_t hash = key.size();
    for (const std::int64_t part : key) {
        hash = (hash ^ static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
    }
    return static_cast<std::size_t>(mix(hash));
}

bool KernelPrices::find(const KernelKey& key, KernelPrice& price) const {
    const std::lock_guard lock(mutex_);
    const auto at = prices_.find(key);
    if (at == prices_.end())
        return false;
    price = at->second;
    return true;
}

void KernelPrices::add(const KernelKey& key, const KernelPrice& price) {
    const std::lock_guard lock(mutex_);
    prices_.emplace(key, price);
}

void CostBook::append_key(const Kernel& k, KernelKey& key) {
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

const KernelPrice& CostBook::price(const Kernel& kernel) {
    key_.clear();
    append_key(kernel, key_);
    const auto known = prices_.find(key_);
    if (known != prices_.end())
        return known->second;
    KernelPrice found = {};
    if (shared_ == nullptr || !shared_->find(key_, found)) {
        for (std::size_t state = 0; state < kInterferenceCount; ++state) {
            const KernelTime time = compute_.time(kernel, static_cast<Interference>(state));
            found.time[state] = time.total_s;
            if (state == 0)
                found.ideal = std::min(time.ideal_s, time.total_s);
        }
        if (shared_ != nullptr)
            shared_->add(key_, found);
    }
    return prices_.emplace(key_, found).first->second;
}

std::uint32_t CostBook::intern(const std::vector<Kernel>& kernels, LayerPasses passes) {
    key_.clear();
    key_.push_back(passes.forward);
    key_.push_back(passes.backward);
    for (const Kernel& kernel : kernels)
        append_key(kernel, key_);
    const auto known = ids_.find(key_);
    if (known != ids_.end())
        return known->second;
    const auto id = static_cast<std::uint32_t>(segments_.size());
    ids_.emplace(key_, id);
    segments_.push_back({kernels, passes});
    return id;
}

const program::CostClass& CostBook::at(std::uint32_t id) {
    price_up_to(std::size_t{id} + 1);
    return classes_[id];
}

std::vector<program::CostClass> CostBook::take() {
    price_up_to(segments_.size());
    return std::move(classes_);
}

void CostBook::price_up_to(std::size_t end) {
    while (classes_.size() < end)
        classes_.push_back(priced(segments_[classes_.size()]));
}

program::CostClass CostBook::priced(const Segment& segment) {
    const std::vector<Kernel>& kernels = segment.kernels;
    const LayerPasses passes = segment.passes;
    double state_s[kInterferenceCount] = {};
    double account_s[kAccountCount] = {};
    std::int64_t launches = 0;
    for (const Kernel& kernel : kernels) {
        const KernelPrice& p = price(kernel);
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
        const double host =
            static_cast<double>(launches) * software_.host_per_kernel_s +
            (passes.forward + passes.backward * software_.host_backward_share) * software_.host_per_layer_s;
        cost.host = picoseconds_from_s(host);
        cost.host_first = picoseconds_from_s(software_.host_per_kernel_s);
        const Kernel& last = kernels.back();
        cost.tail = picoseconds_from_s(price(last).time[0] / static_cast<double>(last.count));
    }
    return cost;
}

}  // namespace fabricast
