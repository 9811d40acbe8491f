// Traces read back: what a viewer would see.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>
#include <set>

#include <gtest/gtest.h>

#include "sim/report/timeline_views.hpp"
#include "sim/step/record_timeline.hpp"

namespace fabricast {
namespace {

using protozero::pbf_reader;

const StepTimeline& sample_timeline() {
    static const StepTimeline timeline = [] {
        const Scenario scenario =
            load_scenario(FABRICAST_SOURCE_DIR "/scenarios/quickstart.yaml",
                          {"cluster.nodes=2", "training.layout.tp=2", "training.layout.pp=4", "training.layout.dp=2",
                           "training.layout.zero=1", "training.schedule=1f1b", "training.global_batch=16 sequences"});
        return record_timeline(scenario, true, {});
    }();
    return timeline;
}

struct Event {
    std::uint64_t at = 0, track = 0, name = 0, category = 0;
    int type = 0;
    std::int64_t value = 0;
    std::vector<std::uint64_t> flows, ending_flows;
};

// A Perfetto trace taken apart again.
struct Decoded {
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, std::uint64_t> parents;
    std::map<std::uint64_t, std::string> names, categories;
    std::vector<Event> events;
    int cleared = 0;

    explicit Decoded(const std::string& data) {
        pbf_reader trace(data);
        while (trace.next(1))
            read_packet(trace.get_message());
    }

private:
    void read_packet(pbf_reader packet) {
        Event event;
        bool has_event = false, named = false;
        while (packet.next()) {
            switch (packet.tag()) {
                case 8: event.at = packet.get_uint64(); break;
                case 10: EXPECT_NE(packet.get_uint32(), 0u); break;
                case 13: {
                    const std::uint32_t flags = packet.get_uint32();
                    cleared += (flags & 1u) != 0;
                    named = (flags & 2u) != 0;
                    break;
                }
                case 12: read_interned(packet.get_message()); break;
                case 11:
                    has_event = true;
                    read_event(packet.get_message(), event);
                    break;
                case 60: read_track(packet.get_message()); break;
                default: ADD_FAILURE() << "field " << packet.tag(); packet.skip();
            }
        }
        if (has_event) {
            EXPECT_TRUE(named) << "a packet that uses names must say so";
            events.push_back(event);
        }
    }
    void read_interned(pbf_reader interned) {
        while (interned.next()) {
            const auto field = interned.tag();  // gone once the message is taken
            pbf_reader entry = interned.get_message();
            std::uint64_t id = 0;
            std::string text;
            while (entry.next()) {
                if (entry.tag() == 1)
                    id = entry.get_uint64();
                else
                    text = entry.get_string();
            }
            if (field <= 2) {
                EXPECT_TRUE((field == 1 ? categories : names).emplace(id, text).second) << text;
            }
        }
    }
    void read_event(pbf_reader message, Event& event) {
        while (message.next()) {
            switch (message.tag()) {
                case 3: event.category = message.get_uint64(); break;
                case 9: event.type = message.get_int32(); break;
                case 10: event.name = message.get_uint64(); break;
                case 11: event.track = message.get_uint64(); break;
                case 30: event.value = message.get_int64(); break;
                case 47: event.flows.push_back(message.get_fixed64()); break;
                case 48: event.ending_flows.push_back(message.get_fixed64()); break;
                default: message.skip();
            }
        }
        EXPECT_TRUE(tracks.contains(event.track)) << "described before it is used";
        EXPECT_TRUE(event.name == 0 || names.contains(event.name)) << "named before it is used";
    }
    void read_track(pbf_reader descriptor) {
        std::uint64_t id = 0, parent = 0;
        std::string name;
        while (descriptor.next()) {
            switch (descriptor.tag()) {
                case 1: id = descriptor.get_uint64(); break;
                case 2: name = descriptor.get_string(); break;
                case 5: parent = descriptor.get_uint64(); break;
                default: descriptor.skip();
            }
        }
        EXPECT_TRUE(tracks.emplace(id, name).second);
        EXPECT_TRUE(parent == 0 || tracks.contains(parent));
        parents[id] = parent;
    }
};

TEST(PerfettoTrace, SlicesNestOnTheirRowsInOrderOfTime) {
    const Decoded trace(perfetto_trace(sample_timeline()));
    EXPECT_EQ(trace.cleared, 1);
    std::map<std::uint64_t, int> depth;
    std::uint64_t at = 0;
    std::size_t begins = 0;
    for (const Event& event : trace.events) {
        EXPECT_GE(event.at, at);
        at = event.at;
        if (event.type == 1) {
            ++begins;
            EXPECT_NE(event.name, 0u);
            EXPECT_LE(++depth[event.track], 2);
        } else if (event.type == 2) {
            EXPECT_GE(--depth[event.track], 0);
        }
    }
    for (const auto& [track, open] : depth)
        EXPECT_EQ(open, 0) << trace.tracks.at(track);
    EXPECT_GE(begins, sample_timeline().slices.size() + sample_timeline().states.size());
}

TEST(PerfettoTrace, EveryRankIsAProcessWithItsRows) {
    const StepTimeline& timeline = sample_timeline();
    const Decoded trace(perfetto_trace(timeline));
    std::size_t processes = 0;
    std::set<std::pair<std::uint64_t, std::string>> siblings;
    for (const auto& [id, parent] : trace.parents) {
        processes += parent == 0;
        EXPECT_TRUE(siblings.emplace(parent, trace.tracks.at(id)).second) << "viewers merge rows of equal name";
    }
    EXPECT_EQ(processes, timeline.lanes.size());
    for (const StepTimeline::Link& link : timeline.links) {
        EXPECT_TRUE(std::any_of(trace.tracks.begin(), trace.tracks.end(), [&](const auto& track) {
            return track.second == link.name;
        })) << link.name;
    }
    std::set<std::string> categories;
    for (const auto& [id, text] : trace.categories)
        categories.insert(text);
    for (const char* account : {"compute", "comm_tp", "comm_pp"})
        EXPECT_TRUE(categories.contains(account)) << account;
}

TEST(PerfettoTrace, ArrowsBeginOnceAndEndOnceLater) {
    const StepTimeline& timeline = sample_timeline();
    const Decoded trace(perfetto_trace(timeline));
    std::set<std::uint64_t> open, closed;
    for (const Event& event : trace.events) {
        for (const std::uint64_t flow : event.flows)
            EXPECT_TRUE(open.insert(flow).second);
        for (const std::uint64_t flow : event.ending_flows) {
            EXPECT_TRUE(open.contains(flow)) << "an arrow ends after its begin, in the order of the file too";
            EXPECT_TRUE(closed.insert(flow).second);
        }
    }
    EXPECT_EQ(open, closed);
    EXPECT_EQ(open.size(), timeline.flows.size()) << "no arrow of this job is left out";
}

TEST(PerfettoTrace, CountersHoldTheMemory) {
    const StepTimeline& timeline = sample_timeline();
    const Decoded trace(perfetto_trace(timeline));
    std::int64_t highest = 0, expected = 0;
    for (const Event& event : trace.events) {
        if (event.type == 4 && trace.tracks.at(event.track) == "memory: activations")
            highest = std::max(highest, event.value);
    }
    for (const StepTimeline::Memory& memory : timeline.memory) {
        if (memory.cause == MemoryCause::activations)
            expected = std::max(expected, memory.bytes);
    }
    EXPECT_GT(expected, 0);
    EXPECT_EQ(highest, expected);
}

TEST(ChromeTrace, IsJsonWithNestedSlicesAndPairedArrows) {
    const StepTimeline& timeline = sample_timeline();
    const nlohmann::json trace = nlohmann::json::parse(chrome_trace(timeline));
    std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
    std::map<int, int> arrows;
    std::size_t processes = 0;
    for (const nlohmann::json& event : trace["traceEvents"]) {
        const std::string phase = event["ph"];
        if (phase == "X")
            rows[{event["pid"], event["tid"]}].emplace_back(event["ts"], event["dur"]);
        else if (phase == "s" || phase == "f")
            arrows[event["id"]] += phase == "s" ? 1 : 100;
        else if (phase == "M" && event["name"] == "process_name")
            ++processes;
    }
    EXPECT_EQ(processes, timeline.lanes.size());
    EXPECT_EQ(arrows.size(), timeline.flows.size());
    for (const auto& [id, ends] : arrows)
        EXPECT_EQ(ends, 101) << id;
    for (auto& [row, slices] : rows) {
        std::stable_sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
            return a.first != b.first ? a.first < b.first : a.second > b.second;
        });
        std::vector<double> ends;
        for (const auto& [begin, length] : slices) {
            while (!ends.empty() && ends.back() <= begin + 1e-6)
                ends.pop_back();
            EXPECT_TRUE(ends.empty() || begin + length <= ends.back() + 1e-6) << "overlaps on row " << row.second;
            ends.push_back(begin + length);
        }
    }
}

TEST(TimelineJson, MergedStatesKeepTheStep) {
    const StepTimeline& timeline = sample_timeline();
    const nlohmann::json json = nlohmann::json::parse(with_timeline("{}", timeline))["timeline"];
    ASSERT_EQ(json["lanes"].size(), timeline.lanes.size());
    for (std::size_t n = 0; n < timeline.lanes.size(); ++n) {
        std::int64_t sum = 0;
        for (const nlohmann::json& state : json["lanes"][n]["states"])
            sum += state[0].get<std::int64_t>();
        const std::int64_t step = (timeline.lanes[n].end - timeline.lanes[n].begin) / 1000;
        EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(step),
                    static_cast<double>(json["lanes"][n]["states"].size()));
    }
}

}  // namespace
}  // namespace fabricast
