#include "sim/monitor/fleet.hpp"

#include <algorithm>

#include "models/compute/math.hpp"
#include "models/compute/spread.hpp"
#include "models/hardware/clock.hpp"
#include "models/monitors/thermal.hpp"

namespace fabricast::monitor {
namespace {

constexpr std::uint32_t kNamed = 8;   // parts at the bad end that are followed one by one
constexpr double kNobodyBeyond = 99;  // sigma: a floor that no part passes, so that all are alike but for noise

/// What a GPU counts as nominal up to, in sigmas (models/compute/spread.hpp): the slowest of a node is so in the mean.
double nominal_up_to() { return mean_maximum(kJitterGpus); }

}  // namespace

Fleet fleet_of(const Scenario& s, const campaign::CampaignSpec& spec, double step_s) {
    Fleet f;
    f.nodes = s.nodes;
    f.gpus = s.node.gpus;
    f.nics = s.node.nics;
    f.pp = static_cast<std::uint32_t>(std::max<std::int64_t>(1, s.training.layout.pp));
    f.gpu_spread = s.gpu_spread;
    f.board_w = s.power_limit_w > 0 ? s.power_limit_w : s.gpu.power_w;
    f.clock_mhz = nominal_clock_mhz(s.gpu);
    f.port_bits_per_s = s.nodes > 1 && s.node.nics > 0 ? s.node.nic_bits_per_s : 0;
    const campaign::CheckpointSpec& c = spec.checkpoint;
    double pause = 0;
    if (c.mode != campaign::SaveMode::none) {
        const double until_next = static_cast<double>(c.every_steps) * step_s;
        pause = campaign::seconds_of(c.block + c.drag + c.memory_block) +
                std::max(0.0, campaign::seconds_of(c.write) - until_next);
    }
    if (spec.events.evaluate_every > 0)
        pause += campaign::seconds_of(spec.events.evaluation);
    f.longest_pause_s = pause;
    f.seed = spec.seed;
    return f;
}

Extremes::Extremes(const Fleet& fleet, const StepPicture& base, std::uint64_t seed, std::uint64_t entity)
    : fleet_(fleet), base_(base), draws_(seed, faults::Purpose::monitor, entity) {}

// Largest of n sums of a lasting and a passing part. The eight largest lasting parts are at their expected scores (Blom), each
// with noise of its own; of the others the largest noise is drawn, on top of the ninth score: never less than the truth.
double Extremes::scores(std::uint32_t n, double sigma_lasting, double floor, double sigma_noise) {
    if (n != count_ || floor != floor_) {
        count_ = n;
        floor_ = floor;
        lasting_.clear();
        for (std::uint32_t k = 1; k <= std::min(n, kNamed + 1); ++k)
            lasting_.push_back(std::max(0.0, normal_quantile(1 - (k - 0.375) / (n + 0.25)) - floor));
    }
    if (sigma_noise <= 0)
        return lasting_.empty() ? 0 : sigma_lasting * lasting_.front();
    double most = 0;
    for (std::size_t k = 0; k < std::min<std::size_t>(n, kNamed); ++k)
        most = std::max(most, sigma_lasting * lasting_[k] + sigma_noise * normal_quantile(draws_.next()));
    if (n > kNamed) {
        const double u = math::pow(draws_.next(), 1.0 / (n - kNamed));
        most = std::max(most, sigma_lasting * lasting_.back() + sigma_noise * normal_quantile(std::min(u, 1 - 1e-12)));
    }
    return most;
}

double Extremes::worst(Metric metric, double median, double steps, bool below) {
    const std::uint32_t gpus = fleet_.nodes * fleet_.gpus, of_stage = std::max(1u, gpus / fleet_.pp);
    const double noise = kStepNoise / std::sqrt(std::max(1.0, steps));
    switch (metric) {
        case Metric::port_rate: return median;
        case Metric::gpu_temp: {
            const double sigma = (median - monitors::kInletC) * monitors::kThermalSpread;
            return median + (below ? -1 : 1) * scores(gpus, sigma, 0, 0);
        }
        case Metric::sm_clock:
            return below ? median / (1 + scores(of_stage, fleet_.gpu_spread, nominal_up_to(), 0)) : median;
        case Metric::collective_time:
        case Metric::compute_time: {
            const double outside = metric == Metric::compute_time ? median : 1 - median;
            const bool slow = below == (metric == Metric::collective_time);
            const double by =
                outside * scores(of_stage, fleet_.gpu_spread, slow ? nominal_up_to() : kNobodyBeyond, noise);
            return median + (below ? -by : by);
        }
        case Metric::ib_busbw:
        case Metric::nvlink_busbw: {
            const std::uint32_t rings = metric == Metric::ib_busbw ? base_.net_rings : base_.node_rings;
            const double by = scores(rings, 0, 0, noise);
            return below ? median / (1 + by) : median * (1 + by);
        }
        default: return median;
    }
}

}  // namespace fabricast::monitor
