// What a checkpoint interval costs, and which is best, for exponential failures.
//
//   delta  time training stands still for a save         M  mean time between failures of the job
//   tau    useful time between two saves                 R  from a failure to the first new step (itself restartable)
//
//   wall / useful = (M / tau) exp(R / M) (exp((tau + delta) / M) - 1)          exact; ETTR is its inverse
//   Young:  tau = sqrt(2 delta M)
//   Daly:   tau = sqrt(2 delta M) [1 + sqrt(delta / 2M) / 3 + (delta / 2M) / 9] - delta      delta < 2M, else M
//   first order: loss = delta / tau + (tau / 2 + R) / M
//
// Derivation of the first: a segment of length L = tau + delta that starts anew at each failure takes M (exp(L/M) - 1) up to
// its first success, and each of its failures costs a restart that itself takes M (exp(R/M) - 1).
// Sources: Young 1974; Daly 2006.
#pragma once

namespace fabricast::faults {

struct CheckpointCase {
    double save = 0;     ///< delta, s
    double mttf = 0;     ///< M, s; 0 or infinite: no failures
    double restart = 0;  ///< R, s
};

double young_interval(const CheckpointCase& c);
double daly_interval(const CheckpointCase& c);
/// Exact effective training time ratio at interval tau > 0.
double exact_ettr(const CheckpointCase& c, double tau);
double first_order_loss(const CheckpointCase& c, double tau);
/// Interval of the best exact ETTR, by golden section.
double best_interval(const CheckpointCase& c);

}  // namespace fabricast::faults
