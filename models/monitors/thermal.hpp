// Temperature of a GPU from its power: one resistance, one capacity.
//
//   tau dT/dt = T_settled - T       T_settled = T_inlet + R P
//   over an interval dt of constant power:  T' = T_settled + (T - T_settled) exp(-dt / tau)
//   R = (T_loaded - T_inlet) / board power: a cooler is built for its board
//
// Parts of one kind differ: R is normal with kSpread. A GPU whose cooling fails is held at its slowdown temperature by its
// own clock. Not modelled: heat of neighbours, fans that follow the load, seasons; memory temperature.
// Sources: inlet, middle of ASHRAE's recommended range 18-27 C. Loaded, 65-75 C told of H100 boards in training; against it
// 27 C at 70 W idle (NVIDIA/nccl issue 1967), which the model gives within 1 K. tau: the rise is over within 60 s, three
// time constants (bradrlaw/ai-server pull request 15, V100 under load for 75 s). Slowdown, nvidia-smi of A100 and H100 SXM
// nodes. Spread: estimate; GPUs of one node at 129-152 W lie 34-38 C (NVIDIA/nccl issue 1550), 7 % of the rise a watt.
// Waiting power: 129-152 W of 700 W with all kernels waiting in a collective at 100 % utilisation (the same issue).
#pragma once

#include "models/compute/math.hpp"

namespace fabricast::monitors {

inline constexpr double kInletC = 22.5, kLoadedC = 70, kSlowdownC = 89, kThermalTauS = 20, kThermalSpread = 0.05;
inline constexpr double kWaitingPower = 0.2;  ///< of board power, a GPU whose kernels wait; 140 W of 700 W

inline double settled_temperature(double power, double board_power, double resistance = 1) {
    return kInletC + (kLoadedC - kInletC) * resistance * power / board_power;
}
inline double temperature_after(double now, double settled, double seconds) {
    return settled + (now - settled) * math::exp(-seconds / kThermalTauS);
}

}  // namespace fabricast::monitors
