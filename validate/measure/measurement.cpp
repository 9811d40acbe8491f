#include "validate/measure/measurement.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "sim/observed/ingest_error.hpp"
#include "sim/observed/text.hpp"

namespace fabricast {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kSchema = "fabricast-measurement/1";

/// Values by key with the place for messages.
class Entry {
public:
    Entry(const Json& json, std::string file, std::string place)
        : json_(json), file_(std::move(file)), place_(std::move(place)) {
        if (!json.is_object())
            fail("is no object");
    }
    [[noreturn]] void fail(const std::string& why) const { throw IngestError(file_, 0, place_ + ": " + why); }
    bool has(const char* key) const { return json_.contains(key); }
    std::string text(const char* key) const {
        if (!has(key))
            return {};
        if (!json_[key].is_string())
            fail(fmt::format("`{}` is no text", key));
        return json_[key].get<std::string>();
    }
    double number(const char* key, double least, double otherwise) const {
        if (!has(key))
            return otherwise;
        const Json& value = json_[key];
        const double number = value.is_number() ? value.get<double>() : std::nan("");
        if (!std::isfinite(number) || number < least)
            fail(fmt::format("`{}` is {}; a number of {:g} and more is needed", key, value.dump(), least));
        return number;
    }
    /// Above 0.
    double positive(const char* key) const {
        const double value = number(key, 0, 0);
        if (!(value > 0))
            fail(fmt::format("`{}` is missing or not above 0", key));
        return value;
    }
    std::vector<std::string> texts(const char* key) const {
        std::vector<std::string> out;
        for (const Json& one : list(key)) {
            if (!one.is_string())
                fail(fmt::format("`{}` holds what is no text", key));
            out.push_back(one.get<std::string>());
        }
        return out;
    }
    const Json& list(const char* key) const {
        static const Json none = Json::array();
        if (!has(key))
            return none;
        if (!json_[key].is_array())
            fail(fmt::format("`{}` is no list", key));
        return json_[key];
    }
    const Json& json() const { return json_; }

private:
    const Json& json_;
    std::string file_, place_;
};

template <typename Out, typename Read>
void read_list(const Entry& root, const std::string& file, const char* key, std::vector<Out>& out, Read read) {
    std::size_t i = 0;
    for (const Json& one : root.list(key))
        out.push_back(read(Entry(one, file, fmt::format("{}[{}]", key, i++))));
}

MeasuredDevice read_device(const Entry& e) {
    return {e.text("host"),
            e.text("name"),
            e.text("driver"),
            e.number("clock_mhz", 0, 0),
            e.number("memory_clock_mhz", 0, 0),
            e.number("power_w", 0, 0),
            e.number("power_limit_w", 0, 0)};
}

MeasuredPoint read_point(const Entry& e) {
    MeasuredPoint out;
    out.test = e.text("test");
    out.what = e.text("what");
    out.mode = e.text("mode");
    if (out.test.empty())
        e.fail("it names no test");
    if (e.has("shape")) {
        for (const auto& [key, value] : e.json()["shape"].items()) {
            if (!value.is_number_integer() || value.get<std::int64_t>() < 0)
                e.fail(fmt::format("shape `{}` is {}; a whole number is needed", key, value.dump()));
            out.shape[key] = value.get<std::int64_t>();
        }
    }
    out.time.median_us = e.positive("median_us");
    out.time.p10_us = e.number("p10_us", 0, out.time.median_us);
    out.time.p90_us = e.number("p90_us", 0, out.time.median_us);
    out.time.count = static_cast<int>(e.number("samples", 1, 1));
    if (out.time.p10_us > out.time.median_us || out.time.p90_us < out.time.median_us)
        e.fail("the median does not lie between p10_us and p90_us");
    return out;
}

MeasuredCurve read_curve(const Entry& e, const std::string& file) {
    MeasuredCurve out;
    out.file = e.text("file");
    out.line = static_cast<int>(e.number("line", 0, 0));
    out.collective = e.text("collective");
    out.datatype = e.text("datatype");
    out.link = e.text("link");
    out.ranks = static_cast<int>(e.positive("ranks"));
    out.nodes = static_cast<int>(e.number("nodes", 1, 1));
    out.library = e.text("library");
    out.preset = e.text("preset");
    out.hardware = e.text("hardware");
    out.network = e.text("network");
    out.device = e.text("device");
    out.gpus_per_thread = static_cast<int>(e.number("gpus_per_thread", 1, 1));
    if (out.ranks < 2)
        e.fail(fmt::format("{} of one rank moves nothing; two ranks and more are needed", out.collective));
    std::size_t i = 0;
    std::int64_t before = 0;
    for (const Json& one : e.list("points")) {
        const Entry p(one, file, fmt::format("{} {} points[{}]", out.collective, out.ranks, i++));
        out.points.push_back({static_cast<std::int64_t>(p.positive("bytes")), p.positive("out_of_place_us"),
                              p.number("in_place_us", 0, 0)});
        if (out.points.back().bytes <= before)
            p.fail("sizes do not ascend");
        before = out.points.back().bytes;
    }
    return out;
}

MeasuredStep read_step(const Entry& e) {
    MeasuredStep out{e.text("what"), e.text("group"), e.text("scenario"), e.positive("step_s"),
                     static_cast<int>(e.number("samples", 1, 1))};
    if (out.scenario.empty())
        e.fail("it has no scenario");
    return out;
}

void check_devices(const MeasurementFile& m) {
    for (const MeasuredDevice& device : m.devices) {
        if (device.name != m.devices.front().name) {
            throw IngestError(
                m.file, 0,
                fmt::format("mixed devices, `{}` and `{}`: their times fit neither; measure each kind into "
                            "a file of its own",
                            m.devices.front().name, device.name));
        }
    }
}

Json drop_empty(Json json) {
    for (auto at = json.begin(); at != json.end();) {
        const bool none = at->is_null() || (at->is_string() && at->get_ref<const std::string&>().empty()) ||
                          (at->is_array() && at->empty());
        at = none ? json.erase(at) : std::next(at);
    }
    return json;
}

double rounded(double us) { return std::round(us * 1e4) / 1e4; }
Json positive_or_none(double value) { return value > 0 ? Json(rounded(value)) : Json(); }

}  // namespace

Samples samples_of(std::vector<double> us) {
    std::sort(us.begin(), us.end());
    const auto quantile = [&](double q) {
        const double at = q * static_cast<double>(us.size() - 1);
        const auto low = static_cast<std::size_t>(at);
        const std::size_t high = std::min(low + 1, us.size() - 1);
        return us[low] + (at - static_cast<double>(low)) * (us[high] - us[low]);
    };
    return {quantile(.5), quantile(.1), quantile(.9), static_cast<int>(us.size())};
}

MeasurementFile parse_measurement_json(std::string_view text, const std::string& file) {
    Json json;
    try {
        json = Json::parse(text);
    } catch (const Json::parse_error& error) {
        const bool cut = error.byte >= text.size();
        throw IngestError(file, 0,
                          cut ? "the JSON ends too early: the file was cut off while it was written or copied"
                              : fmt::format("no JSON at byte {}", error.byte));
    }
    MeasurementFile out;
    out.file = file;
    const Entry root(json, file, "measurement");
    if (root.text("schema") != kSchema)
        root.fail(fmt::format("schema `{}`; this program reads `{}`", root.text("schema"), kSchema));
    out.backend = root.text("backend");
    out.date = root.text("date");
    out.method = root.text("method");
    out.tool = root.text("tool");
    out.reason = root.text("reason");
    if (!root.has("complete") || !json["complete"].is_boolean())
        root.fail("it does not say whether it is complete");
    out.complete = json["complete"].get<bool>();
    out.libraries = root.texts("libraries");
    out.notes = root.texts("notes");
    read_list(root, file, "devices", out.devices, read_device);
    read_list(root, file, "points", out.points, read_point);
    read_list(root, file, "curves", out.curves, [&](const Entry& e) { return read_curve(e, file); });
    read_list(root, file, "steps", out.steps, read_step);
    check_devices(out);
    return out;
}

MeasurementFile read_measurement(const std::string& path) { return parse_measurement_json(read_text_file(path), path); }

Json measurement_json(const MeasurementFile& m) {
    Json json = {{"schema", kSchema},  {"backend", m.backend},     {"tool", m.tool},
                 {"date", m.date},     {"method", m.method},       {"complete", m.complete},
                 {"reason", m.reason}, {"libraries", m.libraries}, {"notes", m.notes}};
    Json devices = Json::array(), points = Json::array(), curves = Json::array(), steps = Json::array();
    for (const MeasuredDevice& d : m.devices) {
        devices.push_back(drop_empty({{"host", d.host},
                                      {"name", d.name},
                                      {"driver", d.driver},
                                      {"clock_mhz", positive_or_none(d.clock_mhz)},
                                      {"memory_clock_mhz", positive_or_none(d.memory_clock_mhz)},
                                      {"power_w", positive_or_none(d.power_w)},
                                      {"power_limit_w", positive_or_none(d.power_limit_w)}}));
    }
    for (const MeasuredPoint& p : m.points) {
        points.push_back(drop_empty({{"test", p.test},
                                     {"what", p.what},
                                     {"mode", p.mode},
                                     {"shape", p.shape.empty() ? Json() : Json(p.shape)},
                                     {"median_us", rounded(p.time.median_us)},
                                     {"p10_us", rounded(p.time.p10_us)},
                                     {"p90_us", rounded(p.time.p90_us)},
                                     {"samples", p.time.count}}));
    }
    for (const MeasuredCurve& c : m.curves) {
        Json rows = Json::array();
        for (const MeasuredCurve::Point& p : c.points)
            rows.push_back(drop_empty({{"bytes", p.bytes},
                                       {"out_of_place_us", rounded(p.out_of_place_us)},
                                       {"in_place_us", positive_or_none(p.in_place_us)}}));
        curves.push_back(drop_empty({{"file", c.file},
                                     {"line", c.line > 0 ? Json(c.line) : Json()},
                                     {"collective", c.collective},
                                     {"datatype", c.datatype},
                                     {"link", c.link},
                                     {"ranks", c.ranks},
                                     {"nodes", c.nodes},
                                     {"library", c.library},
                                     {"preset", c.preset},
                                     {"hardware", c.hardware},
                                     {"network", c.network},
                                     {"device", c.device},
                                     {"gpus_per_thread", c.gpus_per_thread > 1 ? Json(c.gpus_per_thread) : Json()},
                                     {"points", rows}}));
    }
    for (const MeasuredStep& s : m.steps)
        steps.push_back(drop_empty({{"what", s.what},
                                    {"group", s.group},
                                    {"step_s", s.step_s},
                                    {"samples", s.samples},
                                    {"scenario", s.scenario}}));
    json["devices"] = std::move(devices);
    json["points"] = std::move(points);
    json["curves"] = std::move(curves);
    json["steps"] = std::move(steps);
    return drop_empty(std::move(json));
}

void write_measurement(const MeasurementFile& measurement, const std::string& path) {
    const std::string beside = path + ".part";
    {
        std::ofstream out(beside, std::ios::binary | std::ios::trunc);
        out << measurement_json(measurement).dump(1, ' ', false, Json::error_handler_t::replace) << '\n';
        out.flush();
        if (!out)
            throw IngestError(path, 0, fmt::format("cannot be written: {}", std::strerror(errno)));
    }
    if (std::rename(beside.c_str(), path.c_str()) != 0) {
        const std::string why = std::strerror(errno);
        std::remove(beside.c_str());
        throw IngestError(path, 0, fmt::format("cannot be written: {}", why));
    }
}

std::string utc_now() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

}  // namespace fabricast
