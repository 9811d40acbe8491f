#include <fmt/format.h>

#include <array>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/report/text.hpp"
#include "sim/report/timeline_views.hpp"

namespace fabricast {
namespace {

constexpr int kStatesRow = 0, kStreamsRow = 1;

class ChromeTrace {
public:
    explicit ChromeTrace(const StepTimeline& timeline) : t_(timeline), origin_(report::timeline_origin(timeline)) {}

    std::string write() {
        text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
        name_rows();
        for (const StepTimeline::State& state : t_.states) {
            const std::string_view kind = state.state == LaneState::computing ? "compute"
                                          : state.state == LaneState::moving  ? account_name(state.account)
                                                                              : "waiting";
            slice(report::state_title(state), kind, state.lane, kStatesRow, state.begin, state.end, "");
        }
        for (const StepTimeline::Slice& s : t_.slices)
            add_slice(s);
        for (std::size_t f = 0; f < t_.flows.size(); ++f)
            add_flow(f + 1, t_.flows[f]);
        add_memory();
        for (const StepTimeline::Link& link : t_.links) {
            for (const StepTimeline::Link::Sample& sample : link.samples) {
                event(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"% of capacity":{:.0f}}}}})",
                                  t_.lanes[link.lane].rank, us(sample.at), quoted(link.name), sample.use * 100));
            }
        }
        text_ += "\n]}\n";
        return std::move(text_);
    }

private:
    std::int64_t ns(Picoseconds at) const { return (at - origin_) / 1000; }
    static std::string micro(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
    std::string us(Picoseconds at) const { return micro(ns(at)); }
    const std::string& quoted(const std::string& text) {
        const auto [at, fresh] = quoted_.try_emplace(text);
        if (fresh)
            at->second = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        return at->second;
    }
    void event(std::string_view text) {
        if (!first_)
            text_ += ",\n";
        first_ = false;
        text_ += text;
    }

    void name_row(std::uint32_t rank, int row, const std::string& title) {
        event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})", rank, row,
                          quoted(title)));
        event(fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})",
                          rank, row, row));
    }
    void name_rows() {
        for (std::size_t n = 0; n < t_.lanes.size(); ++n) {
            const StepTimeline::Lane& lane = t_.lanes[n];
            event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", lane.rank,
                              quoted(report::lane_title(lane))));
            event(fmt::format(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})",
                              lane.rank, n));
            name_row(lane.rank, kStatesRow, "where the time goes");
            for (std::size_t s = 0; s < lane.streams.size(); ++s)
                name_row(lane.rank, kStreamsRow + static_cast<int>(s), report::stream_title(lane, s));
        }
    }

    // The duration from rounded ends, so that slices of a row never overlap.
    void slice(const std::string& name, std::string_view category, std::uint32_t lane, int row, Picoseconds begin,
               Picoseconds end, std::string_view arguments) {
        event(fmt::format(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}"{}}})",
                          t_.lanes[lane].rank, row, us(begin), micro(ns(end) - ns(begin)), quoted(name), category,
                          arguments));
    }
    void add_slice(const StepTimeline::Slice& s) {
        std::string facts;
        if (s.layer >= 0)
            facts += fmt::format("\"layer\":{}", s.layer);
        if (s.bytes > 0)
            facts += fmt::format("{}\"bytes\":{}", facts.empty() ? "" : ",", s.bytes);
        if (!facts.empty())
            facts = ",\"args\":{" + facts + "}";
        const int row = kStreamsRow + s.stream;
        const std::string_view account = account_name(s.account);
        slice(report::slice_title(t_, s), account, s.lane, row, s.issued, s.finished, facts);
        if (ns(s.started) > ns(s.issued))
            slice("data move", account, s.lane, row, s.started, s.finished, "");
    }
    void add_flow(std::size_t id, const StepTimeline::Flow& flow) {
        if (!report::arrow_runs_forward(t_, flow))
            return;
        const auto end = [&](const StepTimeline::Slice& s, char phase, Picoseconds at, std::string_view binding) {
            event(fmt::format(R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"name":"message","cat":"message"{}}})",
                              phase, id, t_.lanes[s.lane].rank, kStreamsRow + s.stream, us(at), binding));
        };
        const StepTimeline::Slice& from = t_.slices[flow.from];
        const StepTimeline::Slice& to = t_.slices[flow.to];
        end(from, 's', from.issued, "");
        end(to, 'f', to.started, R"(,"bp":"e")");
    }

    void add_memory() {
        std::array<Bytes, kMemoryCauseCount> held = {};
        for (std::size_t i = 0; i < t_.memory.size(); ++i) {
            const StepTimeline::Memory& m = t_.memory[i];
            held[static_cast<std::size_t>(m.cause)] = m.bytes;
            if (i + 1 < t_.memory.size() && t_.memory[i + 1].lane == m.lane && t_.memory[i + 1].at == m.at)
                continue;
            std::string parts;
            for (std::size_t c = 0; c < kMemoryCauseCount; ++c)
                parts += fmt::format("{}\"{}\":{}", c > 0 ? "," : "", memory_cause_name(static_cast<MemoryCause>(c)),
                                     held[c]);
            event(fmt::format(R"({{"ph":"C","pid":{},"ts":{},"name":"memory, bytes","args":{{{}}}}})",
                              t_.lanes[m.lane].rank, us(m.at), parts));
            if (i + 1 < t_.memory.size() && t_.memory[i + 1].lane != m.lane)
                held = {};
        }
    }

    const StepTimeline& t_;
    Picoseconds origin_;
    std::string text_;
    bool first_ = true;
    std::map<std::string, std::string> quoted_;
};

}  // namespace

std::string chrome_trace(const StepTimeline& timeline) { return ChromeTrace(timeline).write(); }

}  // namespace fabricast
