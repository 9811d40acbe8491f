// The timeline in result.json: what a page draws, small enough to mail.
//
// States cover a lane's step without gaps, so a lane is a list of (duration, kind, micro-batch). Durations below the
// resolution are not drawn one by one: their times add up by kind, and each time a stretch of one resolution is full it is
// given to the kind that is owed most. So the kinds keep their totals to within one stretch, and a stretch of a lane shows
// the mixture of what happened in it.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/report/timeline_views.hpp"

namespace fabricast {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t kMostStates = 24000;  ///< of all lanes; 10 bytes each

struct Piece {
    Picoseconds length = 0;
    std::size_t kind = 0;
    std::int32_t micro_batch = -1;
    bool operator<(const Piece& other) const {
        return kind != other.kind ? kind < other.kind : micro_batch < other.micro_batch;
    }
};

class Coarsened {
public:
    explicit Coarsened(Picoseconds resolution) : resolution_(resolution) {}

    void add(const Piece& piece) {
        if (piece.length >= resolution_) {
            flush();
            append(piece);
            return;
        }
        owed_[{0, piece.kind, piece.micro_batch}] += piece.length;
        open_ += piece.length;
        if (open_ >= resolution_)
            flush();
    }
    std::vector<Piece> finish() {
        flush();
        return std::move(pieces_);
    }

private:
    void flush() {
        if (open_ == 0)
            return;
        auto most = owed_.begin();
        for (auto at = owed_.begin(); at != owed_.end(); ++at) {
            if (at->second > most->second)
                most = at;
        }
        Piece piece = most->first;
        piece.length = open_;
        most->second -= open_;
        open_ = 0;
        append(piece);
    }
    void append(const Piece& piece) {
        if (!pieces_.empty() && pieces_.back().kind == piece.kind && pieces_.back().micro_batch == piece.micro_batch)
            pieces_.back().length += piece.length;
        else
            pieces_.push_back(piece);
    }

    Picoseconds resolution_, open_ = 0;
    std::map<Piece, Picoseconds> owed_;  ///< time seen and not drawn yet; negative: drawn too much
    std::vector<Piece> pieces_;
};

std::string kind_of(const StepTimeline::State& state) {
    switch (state.state) {
        case LaneState::computing: return std::string("compute ") + std::string(report::phase_text(state.phase));
        case LaneState::moving: return std::string(account_name(state.account));
        case LaneState::waiting_members: return "waiting_members";
        case LaneState::waiting_message: return "waiting_message";
        case LaneState::idle: break;
    }
    return "idle";
}

}  // namespace

std::string with_timeline(const std::string& result, const StepTimeline& timeline) {
    const Picoseconds span = timeline.end - timeline.begin;
    const auto most = static_cast<Picoseconds>(kMostStates / std::max<std::size_t>(timeline.lanes.size(), 1));
    const Picoseconds resolution = timeline.states.size() <= kMostStates ? 1 : std::max<Picoseconds>(span / most, 1);
    std::vector<std::string> kinds;
    std::map<std::string, std::size_t> kind_number;
    ordered_json lanes = ordered_json::array();
    std::size_t at = 0;
    for (std::uint32_t n = 0; n < timeline.lanes.size(); ++n) {
        const StepTimeline::Lane& lane = timeline.lanes[n];
        Coarsened coarse(resolution);
        for (; at < timeline.states.size() && timeline.states[at].lane == n; ++at) {
            const StepTimeline::State& state = timeline.states[at];
            const auto [number, fresh] = kind_number.try_emplace(kind_of(state), kinds.size());
            if (fresh)
                kinds.push_back(number->first);
            coarse.add({state.end - state.begin, number->second, state.micro_batch});
        }
        ordered_json states = ordered_json::array();
        for (const Piece& piece : coarse.finish())
            states.push_back({piece.length / 1000, piece.kind, piece.micro_batch});
        lanes.push_back({{"rank", lane.rank},
                         {"copies", lane.copies},
                         {"node", lane.node},
                         {"stage", lane.stage},
                         {"place", lane.place},
                         {"begin_ns", (lane.begin - timeline.begin) / 1000},
                         {"states", std::move(states)}});
    }
    ordered_json links = ordered_json::array();
    for (const StepTimeline::Link& link : timeline.links) {
        links.push_back({{"rank", timeline.lanes[link.lane].rank},
                         {"name", link.name},
                         {"place", link.place},
                         {"capacity_bytes_per_s", bytes_per_s(link.capacity)},
                         {"mean_use", link.mean}});
    }
    ordered_json whole = ordered_json::parse(result);
    whole["timeline"] = {{"span_ns", span / 1000},
                         {"resolution_ns", resolution / 1000},
                         {"classes", timeline.classes},
                         {"state_fields", {"duration_ns", "kind", "micro_batch"}},
                         {"kinds", kinds},
                         {"lanes", std::move(lanes)},
                         {"links", std::move(links)}};
    return whole.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
