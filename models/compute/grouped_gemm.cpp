#include "models/compute/grouped_gemm.hpp"

#include <cmath>

#include "models/compute/math.hpp"

namespace fabricast {

double grouped_gemm_time(const GpuSpec& gpu, const Kernel& kernel, double peak, const Available& left, double spread) {
    if (kernel.batch <= 1)
        return gemm_time(gpu, kernel, peak, left);
    const double experts = static_cast<double>(kernel.batch);
    const double tokens = static_cast<double>(kernel.tokens_in_k ? kernel.k : kernel.m);
    const double variance = spread * tokens * (1 - 1 / experts);

    Uneven uneven;
    if (spread > 0)
        uneven.visited = 1 - math::exp(experts * tokens * math::log(1 - 1 / experts));
    if (kernel.tokens_in_k) {
        uneven.k_variance = variance;
        uneven.longest_k = std::sqrt(2 * variance * math::log(experts));
    } else {
        uneven.m_variance = variance;
    }
    const double weights = static_cast<double>(kernel.n) *
                           (kernel.tokens_in_k ? static_cast<double>(kernel.m) * result_bytes(kernel)
                                               : static_cast<double>(kernel.k) * operand_bytes(kernel.precision));
    uneven.exposed_s =
        gpu.gemm.expert_reads * (experts - 1) * uneven.visited * weights / (left.hbm_bytes_per_s * gpu.gemm.bandwidth);
    return gemm_time(gpu, kernel, peak, left, uneven);
}

}  // namespace fabricast
