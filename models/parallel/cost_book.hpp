// Prices segments: kernel lists in, cost classes out, equal lists once.
//
// A segment's work is the sum of its kernels alone on the GPU, split by account: GEMMs into ideal (FLOPs at the dense
// peak) and loss, kernels tagged recompute as a whole into recompute. Seconds become picoseconds here, per account, once.
// Speeds: work / (sum of the same kernels in an interference state), in 1/65536.
//
// A list is priced when somebody asks for its class: whoever wants memory alone pays for no price. Prices of kernels are a
// function of the kernel and the compute model; books of one compute model may share them (KernelPrices), from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "models/compute/compute_model.hpp"
#include "models/program/program.hpp"
#include "models/transformer/layer.hpp"

namespace fabricast {

/// Passes of layers, counted where they begin. Forward: the run again of recomputation too.
struct LayerPasses {
    int forward = 0, backward = 0;
};

/// All fields of kernels one after the other; looked up only.
using KernelKey = std::vector<std::int64_t>;
struct KernelKeyHash {
    std::size_t operator()(const KernelKey& key) const;
};
struct KernelPrice {
    double time[kInterferenceCount];
    double ideal;
};

class KernelPrices {
public:
    bool find(const KernelKey& key, KernelPrice& price) const;
    void add(const KernelKey& key, const KernelPrice& price);

private:
    mutable std::mutex mutex_;
    std::unordered_map<KernelKey, KernelPrice, KernelKeyHash> prices_;
};

class CostBook {
public:
    /// shared: prices of this compute model, or null.
    CostBook(const ComputeModel& compute, const SoftwareFeatures& software, KernelPrices* shared = nullptr)
        : compute_(compute), software_(software), shared_(shared) {}

    /// kernels in issue order; passes: layer passes the segment holds (host time).
    std::uint32_t intern(const std::vector<Kernel>& kernels, LayerPasses passes);
    /// Holds until the next at().
    const program::CostClass& at(std::uint32_t id);
    std::vector<program::CostClass> take();

private:
    struct Segment {
        std::vector<Kernel> kernels;
        LayerPasses passes;
    };
    program::CostClass priced(const Segment& segment);
    void price_up_to(std::size_t end);
    const KernelPrice& price(const Kernel& kernel);
    static void append_key(const Kernel& kernel, KernelKey& key);

    const ComputeModel& compute_;
    const SoftwareFeatures& software_;
    KernelPrices* shared_;
    std::unordered_map<KernelKey, KernelPrice, KernelKeyHash> prices_;
    std::unordered_map<KernelKey, std::uint32_t, KernelKeyHash> ids_;
    std::vector<Segment> segments_;
    KernelKey key_;                            ///< scratch
    std::vector<program::CostClass> classes_;  ///< of the first segments
};

}  // namespace fabricast
