// CSV and Prometheus text from result.json.
#include <fmt/format.h>

#include <stdexcept>

#include "sim/report/html_parts.hpp"
#include "sim/report/result_views.hpp"
#include "sim/report/text.hpp"

namespace fabricast {
namespace {

using namespace report;

std::string quoted_csv(const std::string& text) {
    if (text.find_first_of(",\"\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (const char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

// Lists of things with a name become paths by that name, others by number.
std::string entry_name(const Json& entry, std::size_t number) {
    for (const char* key : {"account", "stage", "figure", "what"}) {
        if (entry.is_object() && entry.contains(key) &&
            (std::string_view(key) != "what" || entry.contains("origin") || entry.contains("met"))) {
            const Json& name = entry[key];
            if (name.is_string() || name.is_number_integer())
                return name.is_string() ? name.get<std::string>() : name.dump();
        }
    }
    return std::to_string(number);
}

void flatten(const Json& value, const std::string& path, std::string& out) {
    if (value.is_object()) {
        for (const auto& [key, part] : value.items()) {
            if ((path.empty() && (key == "timeline" || key == "definitions")) || key == "course")
                continue;
            flatten(part, path.empty() ? key : path + "." + key, out);
        }
    } else if (value.is_array()) {
        const bool calls = path == "communication";  // an account names many of them
        for (std::size_t i = 0; i < value.size(); ++i)
            flatten(value[i], path + "." + (calls ? std::to_string(i) : entry_name(value[i], i)), out);
    } else if (!value.is_null()) {
        out += quoted_csv(path) + "," + quoted_csv(value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    }
}

std::string label(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"')
            out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out;
}

class Prometheus {
public:
    explicit Prometheus(const std::string& scenario) : scenario_(label(scenario)) {}

    void family(const char* name, const char* help) {
        name_ = name;
        text_ += fmt::format("# HELP fabricast_{} {}\n# TYPE fabricast_{} gauge\n", name, help, name);
    }
    void sample(const Json& value, const std::string& more = "") {
        if (value.is_number())
            text_ += fmt::format("fabricast_{}{{scenario=\"{}\"{}}} {}\n", name_, scenario_, more, value.dump());
    }
    std::string finish() { return std::move(text_); }

private:
    std::string scenario_, name_, text_;
};

}  // namespace

std::string csv_report(const std::string& text) {
    std::string out = "key,value\n";
    flatten(checked_result(text), "", out);
    return out;
}

std::string prometheus_report(const std::string& text) {
    const Json result = checked_result(text);
    Prometheus out(word(result, "/scenario/name"));
    const struct {
        const char *name, *help, *path;
    } kFigures[] = {{"step_seconds", "Forecast time of a training step.", "/step/time_s"},
                    {"step_low_seconds", "Lower end of the interval of the step time.", "/step/interval/low_s"},
                    {"step_high_seconds", "Upper end of the interval of the step time.", "/step/interval/high_s"},
                    {"mfu_ratio", "Model FLOPs utilisation, attention in full.", "/step/mfu"},
                    {"hfu_ratio", "Hardware FLOPs utilisation, attention in full.", "/step/hfu"},
                    {"tokens_per_second", "Tokens of the whole job.", "/step/tokens_per_s"},
                    {"exposed_communication_ratio", "Share of the step.", "/step/exposed_comm_fraction"},
                    {"bubble_ratio", "Share of the step.", "/step/bubble_fraction"},
                    {"run_days", "Days for all tokens, no failures counted.", "/run/days"},
                    {"run_gpu_hours", "GPU-hours for all tokens.", "/run/gpu_hours"},
                    {"run_cost", "Cost for all tokens, in the scenario's currency.", "/run/cost"}};
    const struct {
        const char *key, *name, *help;
    } kLives[] = {{"days", "campaign_days", "Days of the run with what breaks, over simulated lives."},
                  {"ettr", "campaign_goodput_ratio", "Time of kept steps over wall time, over simulated lives."},
                  {"cost", "campaign_cost", "Cost of the run with what breaks, in the scenario's currency."},
                  {"stops", "campaign_stops", "Faults that stop the job, over simulated lives."}};
    const bool counted = at(result, "/campaign").is_object();
    for (const auto& figure : kFigures) {
        if (!at(result, figure.path).is_number())
            continue;
        out.family(figure.name, figure.help);
        out.sample(at(result, figure.path));
    }
    for (const auto& [key, name, help] : kLives) {
        const Json& quantiles = at(result, fmt::format("/campaign/{}", key).c_str());
        if (!counted || !quantiles.is_object())
            continue;
        out.family(name, help);
        for (const char* quantile : {"p10", "p50", "p90"})
            out.sample(quantiles[quantile], fmt::format(",quantile=\"0.{}\"", quantile + 1));
    }
    if (number(result, "/step/time_s") > 0) {
        out.family("step_share_ratio", "Share of the step by account, mean over all GPUs.");
        for (const Json& row : at(result, "/step/waterfall"))
            out.sample(at(row, "/fraction"), fmt::format(",account=\"{}\"", label(word(row, "/account"))));
    }
    if (!at(result, "/memory").empty()) {
        out.family("memory_bytes", "Peak memory per GPU by pipeline stage and cause.");
        for (const Json& stage : at(result, "/memory")) {
            for (const auto& [cause, bytes] : stage["parts"].items())
                out.sample(bytes, fmt::format(",stage=\"{}\",cause=\"{}\"", stage["stage"].dump(), label(cause)));
        }
        out.family("memory_capacity_bytes", "Memory of a GPU.");
        out.sample(at(result["memory"][0], "/capacity_bytes"));
    }
    return out.finish();
}

}  // namespace fabricast
