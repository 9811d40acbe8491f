// One life of the job: runs, breaks, is noticed, comes back, until the work is done.
//
//        +--------- run_until(next event) <----------------------------+
//        |                                                             |
//   strike on a node of the job      condition, maintenance, limit ... |
//        v                                      v                      |
//   detect -> (wait for a node) -> locate, swap, start,  planned_stop -+
//             communicators -> load -> replay of lost steps -----------+
//
// A strike during any of it begins the recovery anew from its own detection (a restart clears every phase), except during
// detection itself, when the job is dead already. Replay is no state of its own: the steps since the last save that counts
// go from kept to lost, and are done again. Every step of time is a jump to the next event.
#pragma once

#include <optional>

#include "models/faults/random.hpp"
#include "sim/campaign/condition_clock.hpp"
#include "sim/campaign/fleet_clock.hpp"
#include "sim/campaign/node_pool.hpp"
#include "sim/campaign/progress.hpp"
#include "sim/campaign/replica_result.hpp"
#include "sim/campaign/step_times.hpp"

namespace fabricast::campaign {

class Replica {
public:
    /// `seed` is the replica's own. record: keep the incidents and the stretches.
    Replica(const CampaignSpec& spec, StepTimes& steps, std::uint64_t seed, bool record);
    ReplicaResult run();

private:
    using Kind = Incident::Kind;
    static constexpr std::uint32_t kNobody = UINT32_MAX;

    // running
    bool over() const;
    Nanoseconds next_event() const;
    void run_until(Nanoseconds time);
    void handle_event();
    void change_condition();
    void scheduled_fault();
    Nanoseconds step_time() const;
    void watch_step_time();

    // strikes
    struct Hit {
        std::uint32_t component, node;
    };
    std::optional<Hit> take_strike();
    std::uint32_t draw_component();
    void send_away(const Hit& hit);  ///< to repair, where the component makes it leave

    // standing still
    std::optional<Hit> stand(Spent why, Nanoseconds length);
    void spend(Spent why, Nanoseconds length);
    void keep_standing(Spent why, Nanoseconds begin);
    void keep_running(const Progress& before, Nanoseconds begin, Nanoseconds step, std::int64_t limit);

    // coming back (replica_recovery.cpp)
    void stop_by(Hit hit);
    void recover(Hit hit);
    void detect(const Hit& hit);
    Nanoseconds next_restart() const;
    std::optional<Hit> bring_back(bool planned);
    std::optional<Hit> wait_for_nodes();
    void planned_stop(Spent why, Nanoseconds length, bool saves);
    void false_alarm();
    void started();
    void lose_replica(Hit hit);
    void replica_comes_back();
    std::optional<Hit> stand_for_membership();
    std::uint32_t replicas_down() const;
    void corrupted(const Hit& hit);
    void found_corruption();
    void poisoned(std::int64_t last_good);
    void return_nodes(Nanoseconds until);

    void charge(const Hit& hit, Nanoseconds since, Nanoseconds lost_before);
    void note(Kind kind, std::uint32_t node, std::uint32_t which, Nanoseconds lasted = 0, std::int64_t lost = 0);

    const CampaignSpec& spec_;
    StepTimes& times_;
    FleetClock strikes_;
    ConditionClock conditions_;
    NodePool pool_;
    Progress progress_;
    faults::Draws components_, repairs_, recoveries_, saves_, queue_;
    double component_total_ = 0;
    double alarm_chance_ = 0;  ///< that a save looks like a hang
    bool record_;

    Nanoseconds now_ = 0;
    std::size_t phase_ = 0;
    std::vector<std::int64_t> phase_end_;  ///< in steps of the whole run
    std::int64_t alarm_step_ = INT64_MAX;
    Nanoseconds maintenance_, limit_, run_since_ = 0;
    bool copies_live_ = true;
    std::size_t scheduled_ = 0;              ///< the next of spec_.scheduled
    std::vector<Nanoseconds> replica_back_;  ///< style replicas: 0 up, else when it comes back
    Nanoseconds corruption_found_ = kNever;
    std::int64_t corrupt_step_ = 0;
    Hit corruption_ = {};
    bool planned_ = true;             ///< why the job stands, for the course
    bool membership_ = false;         ///< likewise
    std::uint32_t broken_ = kNobody;  ///< component
    int alert_ = 0;                   ///< 0 none, 1 warning, 2 critical
    std::uint32_t fruitless_ = 0;
    std::int64_t fruit_ = -1;  ///< step of the last start
    ReplicaResult result_;
};

}  // namespace fabricast::campaign
