// Prices segments: kernel lists in, cost classes out, equal lists once.
//
// A segment's work is the sum of its kernels alone on the GPU, split by account: GEMMs into ideal (FLOPs at the dense
// peak) and loss, kernels tagged recompute as a whole into recompute. Seconds become picoseconds here, per account, once.
// Speeds: work / (sum of the same kernels in an interference state), in 1/65536.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/compute/compute_model.hpp"
#include "models/program/program.hpp"
#include "models/transformer/layer.hpp"

namespace fabricast {

/// Passes of layers, counted where they begin. Forward: the run again of recomputation too.
struct LayerPasses {
    int forward = 0, backward = 0;
};

class CostBook {
public:
    CostBook(const ComputeModel& compute, const SoftwareFeatures& software) : compute_(compute), software_(software) {}

    /// kernels in issue order; passes: layer passes the segment holds (host time).
    std::uint32_t intern(const std::vector<Kernel>& kernels, LayerPasses passes);
    const program::CostClass& at(std::uint32_t id) const { return classes_[id]; }
    std::vector<program::CostClass> take() { return std::move(classes_); }

private:
    using Key = std::vector<std::int64_t>;
    struct Price {
        double time[kInterferenceCount];
        double ideal;
    };
    const Price& price(const Kernel& kernel);
    static void append_key(const Kernel& kernel, Key& key);

    const ComputeModel& compute_;
    const SoftwareFeatures& software_;
    std::map<Key, Price> prices_;
    std::map<Key, std::uint32_t> ids_;
    std::vector<program::CostClass> classes_;
};

}  // namespace fabricast
