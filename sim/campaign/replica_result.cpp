#include "sim/campaign/replica_result.hpp"

namespace fabricast::campaign {

std::string_view spent_name(Spent spent) {
    switch (spent) {
        case Spent::steps: return "steps";
        case Spent::lost: return "lost";
        case Spent::save: return "save";
        case Spent::evaluation: return "evaluation";
        case Spent::stall: return "stall";
        case Spent::detection: return "detection";
        case Spent::restart: return "restart";
        case Spent::load: return "load";
        case Spent::waiting: return "waiting";
        case Spent::maintenance: return "maintenance";
        case Spent::queue: return "queue";
        case Spent::false_alarm: return "false_alarm";
        case Spent::count: break;
    }
    return {};
}

std::string_view spent_text(Spent spent) {
    switch (spent) {
        case Spent::steps: return "steps that were kept";
        case Spent::lost: return "steps done and lost";
        case Spent::save: return "saving checkpoints";
        case Spent::evaluation: return "evaluation";
        case Spent::stall: return "stalls (flaps, membership)";
        case Spent::detection: return "until a fault is noticed";
        case Spent::restart: return "restart";
        case Spent::load: return "loading the checkpoint";
        case Spent::waiting: return "waiting for a node";
        case Spent::maintenance: return "maintenance";
        case Spent::queue: return "waiting for the scheduler";
        case Spent::false_alarm: return "saves that looked like a hang";
        case Spent::count: break;
    }
    return {};
}

std::string_view incident_name(Incident::Kind kind) {
    using Kind = Incident::Kind;
    switch (kind) {
        case Kind::fault: return "fault";
        case Kind::recovered: return "recovered";
        case Kind::degraded: return "degraded";
        case Kind::mended: return "mended";
        case Kind::congested: return "congested";
        case Kind::cleared: return "cleared";
        case Kind::warning: return "warning";
        case Kind::critical: return "critical";
        case Kind::false_alarm: return "false_alarm";
        case Kind::maintenance: return "maintenance";
        case Kind::limit: return "time_limit";
        case Kind::spare_fault: return "spare_fault";
        case Kind::replica_left: return "replica_left";
        case Kind::replica_back: return "replica_back";
        case Kind::silent_found: return "corruption_found";
        case Kind::none_left: return "no_spare_left";
        case Kind::poisoned: return "not_a_number";
        case Kind::from_zero: return "from_zero";
    }
    return {};
}

std::vector<CourseMark> course_of(const std::vector<Stretch>& stretches) {
    std::vector<CourseMark> course;
    const auto mark = [&](Nanoseconds time, std::int64_t steps) {
        const std::size_t n = course.size();
        if (n > 0 && course[n - 1].time == time && course[n - 1].steps == steps)
            return;
        if (n > 1 && course[n - 1].steps == steps && course[n - 2].steps == steps)
            course.back() = {time, steps};  // while nothing is done the last one moves along
        else
            course.push_back({time, steps});
    };
    for (const Stretch& s : stretches) {
        Progress progress = s.progress;
        mark(s.begin, progress.steps());
        if (s.why == Spent::steps)
            progress.run(s.begin, s.end - s.begin, s.step, s.limit);
        mark(s.end, progress.steps());
    }
    return course;
}

double ReplicaResult::ettr() const {
    return wall > 0 ? static_cast<double>(spent[static_cast<std::size_t>(Spent::steps)]) / static_cast<double>(wall)
                    : 0;
}

}  // namespace fabricast::campaign
