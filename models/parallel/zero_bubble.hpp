// Zero-bubble schedules: the backward is cut into input gradients B and weight gradients W, and W fills the gaps.
//
// Hand-made orders for F = B = W (F forward, per stage s of p); they stay close to the best when the three differ:
//
//   ZB-H1   p - s forwards; then (B W F) repeats, W lagging s rounds, so that every stage holds p micro-batches
//           bubble (p - 1)(F + B - W), memory of 1F1B
//   ZB-H2   2 (p - s) - 1 forwards; W lags 2 s rounds; every stage holds 2 p - 1 micro-batches
//           bubble 0 when the optimizer does not wait for the other stages (m >= 2 p - 1)
//   ZB-V    two chunks a stage (placement.hpp), each half the work: 2 (p - s) - 1 forwards of chunk 0, s times (F1 F0),
//           p - s times (F1 B1 W1), then rounds of F0 B0 W0 F1 B1 W1; held: 2 p half-size activations
//           bubble 0, as ZB-H2 (m >= 2 p)
//
// A receive that is posted long before its message spins on multiprocessors, a send whose receive comes late does too. So
// lists are run once on an ideal pipeline with F = B = W, and a receive is posted between the two steps where its
// message leaves the sender there (ScheduleStep::ahead); implementations plan their messages in the same way.
//
// The validation of gradients (norm, overflow) that a barrier before the optimizer would do follows the update of ZB-H2
// and ZB-V; a rollback is too rare to model. ZB-H1 keeps the barrier: all its stages end together anyway.
// Sources: arXiv:2401.10241 (H1, H2, post-validation), arXiv:2405.15362 (V); counts of the V order as in PyTorch's
// ScheduleZBVZeroBubble.
//
// DualPipe: micro-batches enter at both ends, m / 2 each; chunk 0 runs down, chunk 1 up. A stage of the upper half sees
// the mirror image of the lower half. In the middle, forwards and backwards of opposite directions come in pairs that
// may overlap (ScheduleStep::paired); at the ends the backward is cut and W fills gaps. p even, m even and >= 2 p.
// Bubble (p/2 - 1)(F&B + B - 3 W), F&B the time of a pair and B the whole backward; p + 1 micro-batches held.
// Source: DeepSeek-V3 report arXiv:2412.19437 and the published schedule of github.com/deepseek-ai/DualPipe.
#pragma once

#include <cstdint>
#include <vector>

#include "models/parallel/schedule.hpp"

namespace fabricast {

/// Lists of all p stages. schedule: zb_h1, zb_h2, zb_v or dual_pipe; p >= 1 (zb_v: 2), m >= 1, both as check_layout
/// asks for dual_pipe.
std::vector<std::vector<ScheduleStep>> split_schedule(Schedule schedule, std::int64_t p, std::int64_t m);

}  // namespace fabricast
