// Field numbers: Perfetto's protos, perfetto/trace/track_event/*.proto and interned_data.proto.
#include <algorithm>
#include <array>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <utility>
#include <vector>

#include "sim/report/text.hpp"
#include "sim/report/timeline_views.hpp"

namespace fabricast {
namespace {

using protozero::pbf_writer;

constexpr std::uint32_t kSequence = 1;
enum class EventType : std::int32_t { begin = 1, end = 2, counter = 4 };
constexpr std::int32_t kExplicitOrder = 3;  ///< TrackDescriptor.child_ordering
constexpr std::int32_t kUnitBytes = 3;      ///< CounterDescriptor.unit

// Rows of a lane, as offsets from its track.
constexpr std::uint64_t kLaneTracks = 1 << 12;
constexpr std::uint64_t kStates = 1, kStreams = 2, kMemory = 100, kLinks = 200;
std::uint64_t track_of(std::uint32_t lane, std::uint64_t row) { return (lane + 1) * kLaneTracks + row; }

// Strings written once and named by number from then on.
class Names {
public:
    std::uint64_t id(const std::string& text) {
        const auto [at, fresh] = ids_.try_emplace(text, ids_.size() + 1);
        if (fresh)
            fresh_.push_back(text);
        return at->second;
    }
    /// Those that are new since the last call, as `field` of InternedData.
    void write_fresh(pbf_writer& interned, std::uint32_t field) {
        for (const std::string& text : fresh_) {
            pbf_writer entry(interned, field);
            entry.add_uint64(1, ids_.at(text));
            entry.add_string(2, text);
        }
        fresh_.clear();
    }
    bool has_fresh() const { return !fresh_.empty(); }

private:
    std::map<std::string, std::uint64_t> ids_;
    std::vector<std::string> fresh_;
};

struct Event {
    std::uint64_t at = 0;  ///< ns
    bool late = false;     ///< after others of the same instant: an arrow ends here
    EventType type = EventType::begin;
    std::uint64_t track = 0;
    std::uint64_t name = 0, category = 0;
    std::uint32_t slice = program::kNone;  ///< whose facts are told
    std::int64_t value = 0;                ///< of a counter
    std::vector<std::uint64_t> flows_out = {}, flows_in = {};
};

class PerfettoTrace {
public:
    explicit PerfettoTrace(const StepTimeline& timeline)
        : t_(timeline), origin_(report::timeline_origin(timeline)), out_(data_) {
        for (std::size_t a = 0; a <= kAccountCount; ++a)
            categories_.push_back(0);
    }

    std::string write() {
        describe_tracks();
        add_states();
        add_slices();
        add_counters();
        // Rows are in order each; viewers keep the order of equal times, so what ends an arrow comes after its begin.
        std::stable_sort(events_.begin(), events_.end(),
                         [](const Event& a, const Event& b) { return a.at != b.at ? a.at < b.at : a.late < b.late; });
        for (const Event& event : events_)
            write_event(event);
        return std::move(data_);
    }

private:
    std::uint64_t ns(Picoseconds at) const { return static_cast<std::uint64_t>((at - origin_) / 1000); }

    void describe(std::uint64_t track, std::uint64_t parent, const std::string& name, std::uint64_t rank,
                  const auto& more) {
        pbf_writer packet(out_, 1);
        packet.add_uint32(10, kSequence);
        if (std::exchange(first_, false))
            packet.add_uint32(13, 1);  // names are counted from here
        pbf_writer descriptor(packet, 60);
        descriptor.add_uint64(1, track);
        descriptor.add_string(2, name);
        if (parent != 0)
            descriptor.add_uint64(5, parent);
        descriptor.add_int32(12, static_cast<std::int32_t>(rank));
        more(descriptor);
    }

    void describe_tracks() {
        const auto nothing = [](pbf_writer&) {};
        for (std::uint32_t n = 0; n < t_.lanes.size(); ++n) {
            const StepTimeline::Lane& lane = t_.lanes[n];
            const std::uint64_t parent = track_of(n, 0);
            const std::string title = report::lane_title(lane);
            describe(parent, 0, title, n, [&](pbf_writer& descriptor) {
                descriptor.add_int32(11, kExplicitOrder);
                pbf_writer process(descriptor, 3);
                process.add_int32(1, static_cast<std::int32_t>(lane.rank) + 1);  // 0 is the kernel's
                process.add_string(6, title);
            });
            describe(track_of(n, kStates), parent, "where the time goes", 0, nothing);
            for (std::size_t s = 0; s < lane.streams.size(); ++s)
                describe(track_of(n, kStreams + s), parent, report::stream_title(lane, s), 1 + s, nothing);
            for (std::size_t c = 0; c < kMemoryCauseCount; ++c) {
                const auto cause = static_cast<MemoryCause>(c);
                describe(track_of(n, kMemory + c), parent, "memory: " + std::string(report::memory_cause_text(cause)),
                         100 + c, [](pbf_writer& descriptor) {
                             pbf_writer counter(descriptor, 8);
                             counter.add_int32(3, kUnitBytes);
                         });
            }
        }
        std::vector<std::uint64_t> links(t_.lanes.size(), 0);
        for (const StepTimeline::Link& link : t_.links) {
            const std::uint64_t row = kLinks + links[link.lane]++;
            link_track_.push_back(track_of(link.lane, row));
            describe(link_track_.back(), track_of(link.lane, 0), link.name, row, [](pbf_writer& descriptor) {
                pbf_writer counter(descriptor, 8);
                counter.add_string(6, "% of capacity");
            });
        }
    }

    std::uint64_t category(Account account) {
        std::uint64_t& id = categories_[static_cast<std::size_t>(account)];
        if (id == 0)
            id = category_names_.id(std::string(account_name(account)));
        return id;
    }

    void add(Event event) { events_.push_back(std::move(event)); }

    void add_states() {
        for (const StepTimeline::State& state : t_.states) {
            const std::uint64_t track = track_of(state.lane, kStates);
            std::string title = report::state_title(state);
            if (state.state == LaneState::computing && state.micro_batch >= 0)
                title += " mb " + std::to_string(state.micro_batch);
            const Account account = state.state == LaneState::moving            ? state.account
                                    : state.state == LaneState::waiting_members ? Account::straggler
                                    : state.state == LaneState::waiting_message ? Account::bubble
                                    : state.state == LaneState::idle            ? Account::idle
                                                                                : Account::gemm_ideal;
            const std::uint64_t kind =
                state.state == LaneState::computing ? category_names_.id("compute") : category(account);
            add({.at = ns(state.begin),
                 .type = EventType::begin,
                 .track = track,
                 .name = names_.id(title),
                 .category = kind});
            add({.at = ns(state.end), .type = EventType::end, .track = track});
        }
    }

    void add_slices() {
        std::vector<std::vector<std::uint64_t>> flows_out(t_.slices.size()), flows_in(t_.slices.size());
        for (std::size_t f = 0; f < t_.flows.size(); ++f) {
            if (!report::arrow_runs_forward(t_, t_.flows[f]))
                continue;
            flows_out[t_.flows[f].from].push_back(f + 1);
            flows_in[t_.flows[f].to].push_back(f + 1);
        }
        const std::uint64_t moving = names_.id("data move");
        std::uint64_t late_track = 0, late_at = 0;
        for (std::uint32_t i = 0; i < t_.slices.size(); ++i) {
            const StepTimeline::Slice& slice = t_.slices[i];
            const std::uint64_t track = track_of(slice.lane, kStreams + slice.stream);
            // Arrows start at the slice and end at the one inside it, so that two ranks that exchange at one instant can
            // be put in order.
            const bool inner = ns(slice.started) > ns(slice.issued) || !flows_in[i].empty();
            const auto place = [&](Event event) {
                if (!event.flows_in.empty()) {
                    late_track = track;
                    late_at = event.at;
                }
                event.track = track;
                event.late = late_track == track && late_at == event.at;
                add(std::move(event));
            };
            place({.at = ns(slice.issued),
                   .type = EventType::begin,
                   .name = names_.id(title(slice)),
                   .category = category(slice.account),
                   .slice = i,
                   .flows_out = std::move(flows_out[i])});
            if (inner) {
                place({.at = ns(slice.started),
                       .type = EventType::begin,
                       .name = moving,
                       .category = category(slice.account),
                       .flows_in = std::move(flows_in[i])});
                place({.at = ns(slice.finished), .type = EventType::end});
            }
            place({.at = ns(slice.finished), .type = EventType::end});
        }
    }

    void add_counters() {
        for (const StepTimeline::Memory& memory : t_.memory) {
            add({.at = ns(memory.at),
                 .type = EventType::counter,
                 .track = track_of(memory.lane, kMemory + static_cast<std::uint64_t>(memory.cause)),
                 .value = memory.bytes});
        }
        for (std::size_t l = 0; l < t_.links.size(); ++l) {
            for (const StepTimeline::Link::Sample& sample : t_.links[l].samples) {
                add({.at = ns(sample.at),
                     .type = EventType::counter,
                     .track = link_track_[l],
                     .value = static_cast<std::int64_t>(sample.use * 100 + 0.5)});
            }
        }
    }

    std::string title(const StepTimeline::Slice& slice) const { return report::slice_title(t_, slice); }

    void annotate(pbf_writer& event, const char* name, std::int64_t value) {
        pbf_writer annotation(event, 4);
        annotation.add_uint64(1, facts_.id(name));
        annotation.add_int64(4, value);
    }

    void write_event(const Event& event) {
        std::string body;
        pbf_writer track_event(body);
        if (event.slice != program::kNone) {
            const StepTimeline::Slice& slice = t_.slices[event.slice];
            if (slice.layer >= 0)
                annotate(track_event, "layer", slice.layer);
            if (slice.bytes > 0)
                annotate(track_event, "bytes", slice.bytes);
        }
        track_event.add_int32(9, static_cast<std::int32_t>(event.type));
        if (event.category != 0)
            track_event.add_uint64(3, event.category);
        if (event.name != 0)
            track_event.add_uint64(10, event.name);
        track_event.add_uint64(11, event.track);
        if (event.type == EventType::counter)
            track_event.add_int64(30, event.value);
        for (const std::uint64_t flow : event.flows_out)
            track_event.add_fixed64(47, flow);
        for (const std::uint64_t flow : event.flows_in)
            track_event.add_fixed64(48, flow);

        pbf_writer packet(out_, 1);
        packet.add_uint64(8, event.at);
        packet.add_uint32(10, kSequence);
        packet.add_uint32(13, 2);  // needs the names told before
        if (names_.has_fresh() || category_names_.has_fresh() || facts_.has_fresh()) {
            pbf_writer interned(packet, 12);
            category_names_.write_fresh(interned, 1);
            names_.write_fresh(interned, 2);
            facts_.write_fresh(interned, 3);
        }
        packet.add_message(11, body);
    }

    const StepTimeline& t_;
    Picoseconds origin_;
    std::string data_;
    pbf_writer out_;
    bool first_ = true;
    Names names_, category_names_, facts_;
    std::vector<std::uint64_t> categories_, link_track_;
    std::vector<Event> events_;
};

}  // namespace

std::string perfetto_trace(const StepTimeline& timeline) { return PerfettoTrace(timeline).write(); }

}  // namespace fabricast
