#include "topologies/importers/infiniband.hpp"

#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "topologies/importers/ib_fabric.hpp"

namespace fabricast::importers {
namespace {

constexpr std::array<IbLane, 9> kLanes = {{{"SDR", 2.5, 2},
                                           {"DDR", 5, 4},
                                           {"QDR", 10, 8},
                                           {"FDR10", 10.3125, 10},
                                           {"FDR", 14.0625, 14.0625 * 64 / 66},
                                           {"EDR", 25.78125, 25},
                                           {"HDR", 53.125, 50},
                                           {"NDR", 106.25, 100},
                                           {"XDR", 212.5, 200}}};

constexpr std::uint64_t kNoNumber = ~std::uint64_t{0};
constexpr std::uint64_t kMostPorts = 10'000;

std::uint64_t number_in(std::optional<std::string_view> text) {
    return text ? to_unsigned(*text).value_or(kNoNumber) : kNoNumber;
}

void set_rate(IbReport& report, std::uint64_t width, const IbLane& lane) {
    report.width = static_cast<std::uint32_t>(width);
    report.rate = lane.name;
    report.bytes_per_s = static_cast<double>(width) * lane.data_gigabits_per_s * 1e9 / 8;
}

/// A cursor over one line.
class Cursor {
public:
    explicit Cursor(std::string_view line) : line_(line) {}

    void skip() {
        while (at_ < line_.size() && is_blank(line_[at_])) {
            ++at_;
        }
    }
    bool take(char c) {
        skip();
        if (at_ < line_.size() && line_[at_] == c) {
            ++at_;
            return true;
        }
        return false;
    }
    /// What stands between two characters, "..." or (...); nothing when it is not there.
    std::optional<std::string_view> between(char open, char close) {
        skip();
        if (at_ >= line_.size() || line_[at_] != open) {
            return std::nullopt;
        }
        const std::size_t end = line_.find(close, at_ + 1);
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        const std::string_view inside = line_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return inside;
    }
    std::string_view word() {
        skip();
        const std::size_t start = at_;
        while (at_ < line_.size() && !is_blank(line_[at_]) && line_[at_] != '[' && line_[at_] != '(') {
            ++at_;
        }
        return line_.substr(start, at_ - start);
    }
    std::string_view rest() {
        skip();
        return line_.substr(at_);
    }

private:
    std::string_view line_;
    std::size_t at_ = 0;
};

/// "4xHDR" among the words of a comment.
void read_rate(std::string_view comment, IbReport& report) {
    for (const std::string_view word : words(comment)) {
        const std::size_t x = word.find('x');
        if (x == std::string_view::npos || x == 0) {
            continue;
        }
        const auto width = to_unsigned(word.substr(0, x));
        const IbLane* lane = ib_lane_named(word.substr(x + 1));
        if (width && *width >= 1 && *width <= 12 && lane != nullptr) {
            set_rate(report, *width, *lane);
        }
    }
}

/// The description in quotes; adapters' port lines have one behind the LID too.
std::string_view description_in(std::string_view comment) {
    const std::size_t open = comment.find('"');
    const std::size_t close = open == std::string_view::npos ? open : comment.find('"', open + 1);
    return close == std::string_view::npos ? std::string_view() : comment.substr(open + 1, close - open - 1);
}

void declare(IbFabric& fabric, const std::string& key, bool is_switch, std::string_view description,
             std::uint32_t line) {
    if (is_switch) {
        fabric.add_switch(key, description, line);
    } else {
        fabric.add_adapter(key, description, line);
    }
}

/// One end of an iblinkinfo line: [guid] ["name"] lid port[ ext ].
struct LinkInfoEnd {
    std::string guid, name;
    std::uint64_t lid = 0, port = 0;
    bool has_port = false;
};

LinkInfoEnd link_info_end(Cursor& cursor) {
    LinkInfoEnd end;
    if (starts_with(cursor.rest(), "0x")) {
        end.guid = cursor.word();
    }
    if (const auto name = cursor.between('"', '"')) {
        end.name = trimmed(*name);
    }
    if (starts_with(cursor.rest(), "[")) {
        cursor.between('[', ']');
        return end;  // "[  ]" of a port that is down: no lid, no port
    }
    const auto lid = to_unsigned(cursor.word());
    const auto port = to_unsigned(cursor.word());
    end.has_port = lid.has_value() && port.has_value() && cursor.between('[', ']').has_value();
    end.lid = lid.value_or(0);
    end.port = port.value_or(0);
    if (const auto name = cursor.between('"', '"')) {
        end.name = trimmed(*name);
    }
    return end;
}

bool looks_like_switch(std::string_view name) {
    for (const std::string_view part :
         {"MF0;", "Switch", "switch", "SwitchX", "Quantum", "Infiniscale", "MQM", "MSB", "Spine", "spine", "Leaf"}) {
        if (name.find(part) != std::string_view::npos) {
            return true;
        }
    }
    return false;
}

struct LinkInfoLine {
    LinkInfoEnd left, right;
    std::string_view state, remark;
    std::uint32_t line = 0;
    char heading = ' ';  ///< 'S', 'C' or ' ' when the line stands under none
};

}  // namespace

const IbLane* ib_lane_named(std::string_view name) {
    for (const IbLane& lane : kLanes) {
        if (lane.name == name) {
            return &lane;
        }
    }
    return nullptr;
}

const IbLane* ib_lane_of_wire_rate(double gigabits_per_s) {
    const IbLane* best = nullptr;
    double best_off = 0.02;
    for (const IbLane& lane : kLanes) {
        const double off = (gigabits_per_s > lane.wire_gigabits_per_s ? gigabits_per_s - lane.wire_gigabits_per_s
                                                                      : lane.wire_gigabits_per_s - gigabits_per_s) /
                           lane.wire_gigabits_per_s;
        if (off < best_off) {
            best_off = off;
            best = &lane;
        }
    }
    return best;
}

FabricDescription read_ibnetdiscover(const SourceText& source) {
    IbFabric fabric(source, "ibnetdiscover");
    std::string device;
    std::set<std::string> declared;
    for (std::size_t index = 0; index < source.line_count(); ++index) {
        const auto number = static_cast<std::uint32_t>(index + 1);
        const std::string_view line = trimmed(source.line(index));
        Cursor cursor(line);
        if (starts_with(line, "[")) {
            const auto port = cursor.between('[', ']');
            const std::uint64_t from_port = number_in(port);
            while (starts_with(cursor.rest(), "[") || starts_with(cursor.rest(), "(")) {  // [ext 14], (port guid)
                if (!cursor.between(cursor.rest().front(), cursor.rest().front() == '[' ? ']' : ')')) {
                    break;
                }
            }
            const auto peer = cursor.between('"', '"');
            const auto peer_port = cursor.between('[', ']');
            const std::uint64_t to_port = number_in(peer_port);
            if (from_port > kMostPorts || to_port > kMostPorts || !peer || peer->empty()) {
                source.refuse(number,
                              fmt::format("{} is no port line; [port] \"peer\"[port] # \"description\" is expected",
                                          in_quotes(line)));
            }
            if (device.empty()) {
                source.refuse(number, "a port line before the first Switch or Ca line");
            }
            const std::size_t comment_at = cursor.rest().find('#');
            const std::string_view comment =
                comment_at == std::string_view::npos ? std::string_view() : cursor.rest().substr(comment_at + 1);
            IbReport report;
            report.from = {device, static_cast<std::uint32_t>(from_port)};
            report.to = {std::string(*peer), static_cast<std::uint32_t>(to_port)};
            report.line = number;
            read_rate(comment, report);
            declare(fabric, report.to.key, starts_with(*peer, "S"), description_in(comment), number);
            fabric.add_report(std::move(report));
            continue;
        }
        const std::string_view kind = cursor.word();
        if (kind != "Switch" && kind != "Ca" && kind != "Rt") {
            continue;  // vendid=, sysimgguid=, comments, noise
        }
        const auto ports = to_unsigned(cursor.word());
        const auto key = cursor.between('"', '"');
        if (!ports || !key || key->empty()) {
            source.refuse(number,
                          fmt::format("{}: {} PORTS \"id\" # \"description\" is expected", in_quotes(line), kind));
        }
        device = *key;
        declared.insert(device);
        declare(fabric, device, kind == "Switch", description_in(cursor.rest()), number);
    }
    if (declared.empty()) {
        source.refuse(0, "no Switch or Ca line of ibnetdiscover in it");
    }
    return fabric.finish();
}

FabricDescription read_iblinkinfo(const SourceText& source) {
    std::vector<LinkInfoLine> lines;
    std::set<std::uint64_t> switch_lids, adapter_lids;
    std::string heading_name;
    char heading = ' ';
    for (std::size_t index = 0; index < source.line_count(); ++index) {
        const auto number = static_cast<std::uint32_t>(index + 1);
        const std::string_view line = trimmed(source.line(index));
        const std::size_t arrow = line.find("==("), arrow_end = line.find(")==>");
        if (arrow == std::string_view::npos) {
            if (starts_with(line, "Switch:") || starts_with(line, "CA:") || starts_with(line, "Router:")) {
                heading = line.front();
                Cursor cursor(line.substr(line.find(':') + 1));
                if (starts_with(cursor.rest(), "0x")) {
                    cursor.word();
                }
                heading_name = trimmed(cursor.rest());
                if (!heading_name.empty() && heading_name.back() == ':') {
                    heading_name.pop_back();
                }
            }
            continue;
        }
        LinkInfoLine parsed;
        parsed.line = number;
        parsed.heading = heading;
        Cursor left(line.substr(0, arrow));
        parsed.left = link_info_end(left);
        if (arrow_end == std::string_view::npos || arrow_end < arrow || !parsed.left.has_port) {
            source.refuse(
                number,
                fmt::format("{} is no iblinkinfo line; lid port[ ] ==( 4X 25.78125 Gbps Active/ LinkUp)==> lid port[ ] "
                            "\"name\" is expected",
                            in_quotes(line)));
        }
        parsed.state = trimmed(line.substr(arrow + 3, arrow_end - arrow - 3));
        Cursor right(line.substr(arrow_end + 4));
        parsed.right = link_info_end(right);
        if (const auto remark = right.between('(', ')')) {
            parsed.remark = trimmed(*remark);
        }
        if (parsed.left.name.empty()) {
            parsed.left.name = heading_name;
        }
        if (heading == 'S') {
            switch_lids.insert(parsed.left.lid);
        } else if (heading == 'C') {
            adapter_lids.insert(parsed.left.lid);
        }
        lines.push_back(std::move(parsed));
    }
    if (lines.empty()) {
        source.refuse(0, "no link line of iblinkinfo in it");
    }
    IbFabric fabric(source, "iblinkinfo");
    const auto is_switch = [&](const LinkInfoEnd& end) {
        return switch_lids.count(end.lid) != 0 || (adapter_lids.count(end.lid) == 0 && looks_like_switch(end.name));
    };
    for (const LinkInfoLine& line : lines) {
        const std::string from = fmt::format("lid {}", line.left.lid);
        declare(fabric, from, is_switch(line.left), line.left.name, line.line);
        const std::vector<std::string_view> state = words(line.state);
        const bool up = line.state.find("LinkUp") != std::string_view::npos;
        if (!up) {
            fabric.add_down_port();
            continue;
        }
        if (!line.right.has_port) {
            source.refuse(line.line, "the link is up but its other end is cut off");
        }
        IbReport report;
        report.line = line.line;
        report.from = {from, static_cast<std::uint32_t>(line.left.port)};
        report.to = {fmt::format("lid {}", line.right.lid), static_cast<std::uint32_t>(line.right.port)};
        const std::uint64_t width = state.empty() ? kNoNumber : number_in(state[0].substr(0, state[0].find('X')));
        const auto rate = state.size() < 2 ? std::nullopt : to_number(state[1]);
        const IbLane* lane = rate ? ib_lane_of_wire_rate(*rate) : nullptr;
        if (line.state.find("FDR10") != std::string_view::npos) {
            lane = ib_lane_named("FDR10");
        }
        if (width < 1 || width > 12 || lane == nullptr) {
            source.refuse(
                line.line,
                fmt::format("{}: a width such as 4X and a lane rate of InfiniBand (2.5 to 212.5 Gbps) are expected",
                            in_quotes(line.state)));
        }
        set_rate(report, width, *lane);
        report.remark = line.remark;
        if (line.state.find("Active") == std::string_view::npos && report.remark.empty()) {
            report.remark =
                fmt::format("the port is not active: {}",
                            trimmed(line.state.substr(
                                line.state.find("Gbps") == std::string_view::npos ? 0 : line.state.find("Gbps") + 4)));
        }
        declare(fabric, report.to.key, is_switch(line.right), line.right.name, line.line);
        fabric.add_report(std::move(report));
    }
    return fabric.finish();
}

}  // namespace fabricast::importers
