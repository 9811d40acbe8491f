// The best pattern of each family in a series (picture.hpp). Rows are those of the picture.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/observed/picture.hpp"

namespace fabricast {

/// What fits are made on: ln(step time) with what was found before taken off.
struct Rows {
    std::span<const double> y, time_s;
    std::span<const std::size_t> attempts;
    robust::Noise noise;

    /// Sum of losses of y - fitted, nats.
    double loss(std::span<const double> fitted) const;
    double cost(double parameters) const;  ///< 1/2 ln n each
    /// Nats over one level for all rows.
    double gain(std::span<const double> fitted, double parameters) const;
};

/// All levels; the gain of each is that of all of them together. The base is the lowest level that lasts.
std::vector<Pattern> fit_levels(const Rows& rows);
std::optional<Pattern> fit_ramp(const Rows& rows);
std::optional<Pattern> fit_wave(const Rows& rows);
std::optional<Pattern> fit_periodic(const Rows& rows);
std::optional<Pattern> fit_spikes(const Rows& rows);

}  // namespace fabricast
