// Segments: how long one runs, what the CPU and concurrent communication do to it.
#include <algorithm>
#include <cmath>

#include "sim/engine/engine.hpp"

namespace fabricast::engine {

void Engine::start_compute(std::uint32_t rank, const Instruction& in) {
    RankState& r = ranks_[rank];
    const program::CostClass& cost = program_.costs[in.payload];
    if (rehearsal_)
        follow_compute_start(rank, cost);
    r.cost = in.payload;
    r.begun = now_;
    r.compute_from = std::max(now_, r.host_clock + cost.host_first);
    r.host_clock += cost.host;
    r.host_floor = cost.host > 0 ? r.host_clock + cost.tail : 0;
    r.work = static_cast<Picoseconds>((static_cast<__int128>(cost.work) * r.slowness) >> 16);
    if (options_.noise.sigma > 0)
        r.work = drawn_work(rank, r.work);
    r.remaining = static_cast<__int128>(r.work) << 16;
    r.updated = r.compute_from;
    r.computing = true;
    r.speed = 0;
    r.unfloored = r.announced = INT64_MAX;
    ledger_.computing(rank, true, now_);
    update_speed(rank);
}

// At least half the work, whatever is drawn.
Picoseconds Engine::drawn_work(std::uint32_t rank, Picoseconds work) {
    const EngineOptions::Noise& noise = options_.noise;
    const double sigma = noise.sigma * std::sqrt(static_cast<double>(work));
    const double z = noise.draw(noise.seed, rank / noise.ranks_together, ranks_[rank].segments++);
    return work + std::max<Picoseconds>(std::llround(sigma * z), -work / 2);
}

void Engine::update_speed(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    r.dirty = false;
    if (!r.computing || now_ >= r.unfloored)
        return;  // all work done: only the CPU is waited for
    const std::size_t state =
        r.on_network != 0 ? (r.on_nvlink != 0 ? 4 : 2) : (r.on_nvlink != 0 ? 3 : (r.kernels_waiting != 0 ? 1 : 0));
    const std::uint32_t speed = program_.costs[r.cost].speed[state];
    if (speed == r.speed)
        return;
    if (now_ > r.updated) {
        r.remaining -= static_cast<__int128>(now_ - r.updated) * r.speed;
        if (r.remaining < 0)
            r.remaining = 0;
        r.updated = now_;
    }
    r.speed = speed;
    const __int128 left = r.remaining + speed - 1;
    r.unfloored = r.updated + static_cast<Picoseconds>(speed == program::kFullSpeed ? left >> 16 : left / speed);
    r.ends = std::max(r.unfloored, r.host_floor);
    if (r.ends >= r.announced)
        return;
    r.announced = r.ends;
    queue_.push({r.ends, EventClass::compute_end, rank, ++r.version});
}

void Engine::update_speeds() {
    for (const std::uint32_t rank : dirty_ranks_)
        update_speed(rank);
    dirty_ranks_.clear();
}

void Engine::mark_dirty(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    if (r.dirty || !r.computing)
        return;
    r.dirty = true;
    dirty_ranks_.push_back(rank);
}

// Splits the segment's time: what its kernels take alone, what the CPU cost, what concurrent communication cost.
void Engine::end_compute(std::uint32_t rank) {
    RankState& r = ranks_[rank];
    const program::CostClass& cost = program_.costs[r.cost];
    r.computing = false;
    if (rehearsal_)
        follow_compute_end(rank);
    ledger_.computing(rank, false, now_);
    const Picoseconds duration = now_ - r.begun;
    const Picoseconds host = (r.compute_from - r.begun) + std::max<Picoseconds>(0, now_ - r.unfloored);
    ledger_.add_computing(rank, -duration);
    for (std::uint32_t part = first_part_[r.cost]; part < first_part_[r.cost + 1]; ++part) {
        ledger_.add(rank, parts_[part].account, parts_[part].time);
    }
    ledger_.add(rank, Account::host_bound, host);
    ledger_.add(rank, Account::straggler, r.work - cost.work);
    ledger_.add(rank, Account::interference, duration - r.work - host);
    complete(rank, 0);
    run_rank(rank);
}

// Communication of a stream beside the compute stream comes or goes on a rank.
void Engine::communication_on(std::uint32_t rank, std::uint8_t stream, bool network, bool nvlink, int change) {
    if (stream == 0)
        return;
    RankState& r = ranks_[rank];
    if (network)
        r.on_network = static_cast<std::uint16_t>(r.on_network + change);
    if (nvlink)
        r.on_nvlink = static_cast<std::uint16_t>(r.on_nvlink + change);
    mark_dirty(rank);
}

}  // namespace fabricast::engine
