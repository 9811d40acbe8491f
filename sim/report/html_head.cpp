// The first ten seconds of the page: verdict, what was asked, cards of figures, what was expected, hints.
#include <fmt/format.h>

#include "sim/report/html_campaign.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

std::string count_of(double value) { return fmt::format("{:.0f}", value); }

std::string layout_words(const Json& scenario) {
    std::string text;
    for (const char* key : {"tp", "cp", "ep", "pp", "vpp", "dp"}) {
        const double size = number(scenario, fmt::format("/layout/{}", key).c_str());
        if (size > 1)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, count_of(size));
    }
    if (number(scenario, "/layout/zero") > 0)
        text += fmt::format("{}zero {}", text.empty() ? "" : ", ", count_of(number(scenario, "/layout/zero")));
    return text;
}

// A campaign counts what breaks; without one the run is steps alone.
std::string run_cards(const Json& result) {
    if (const std::string counted = campaign_cards(result); !counted.empty())
        return counted;
    std::string out;
    if (at(result, "/run/days").is_number())
        out += card(
            fmt::format("{:.1f} days", number(result, "/run/days")),
            fmt::format("for {} tokens, {} GPU-hours; no failures counted",
                        magnitude(number(result, "/scenario/tokens")), magnitude(number(result, "/run/gpu_hours"))));
    if (at(result, "/run/cost").is_number())
        out += card(fmt::format("{} {}", magnitude(number(result, "/run/cost")), word(result, "/run/currency")),
                    fmt::format("at {:g} per GPU-hour", number(result, "/scenario/price_per_gpu_hour")));
    return out;
}

}  // namespace

std::string head_section(const Json& result) {
    const Json& scenario = at(result, "/scenario");
    const Json& step = at(result, "/step");
    const std::string verdict = word(result, "/verdict");
    const char* css = verdict == "fits" ? "" : verdict == "tight" ? " warn" : " bad";
    std::string out =
        fmt::format("<header><h1>{}</h1>\n<p><span class=\"verdict{}\">{}</span> {} on {} × {}, {}; {}</p>\n",
                    escape(word(scenario, "/name")), css, escape(verdict), escape(word(scenario, "/model")),
                    count_of(number(result, "/engine/ranks")), escape(word(scenario, "/gpu")),
                    escape(fmt::format("{} × {}, {}", count_of(number(scenario, "/nodes")), word(scenario, "/node"),
                                       word(scenario, "/fabric"))),
                    escape(layout_words(scenario)));
    out += fmt::format("<p class=soft>{} × {} tokens a step, micro-batch {}, {}, schedule {}, recompute {}, {}</p>\n",
                       count_of(number(scenario, "/global_batch")), count_of(number(scenario, "/sequence")),
                       count_of(number(scenario, "/micro_batch")), escape(word(scenario, "/precision")),
                       escape(word(scenario, "/schedule")), escape(word(scenario, "/recompute")),
                       escape(word(scenario, "/software")));
    if (!word(result, "/failure").empty())
        out += "<p class=bad>" + escape(word(result, "/failure")) + "</p>\n";
    out += "<div class=cards>\n";
    if (at(step, "/mfu").is_number()) {
        out += card(percent(number(step, "/mfu")),
                    fmt::format("MFU of {:.1f} TFLOP/s dense; HFU {}", number(step, "/peak_tflops"),
                                percent(number(step, "/hfu"))));
        std::string like = "step time";
        if (at(step, "/interval/low_s").is_number())
            like += fmt::format(", {} to {} in {:.0f} % of {} {}", duration(number(step, "/interval/low_s")),
                                duration(number(step, "/interval/high_s")), number(step, "/interval/share") * 100,
                                count_of(number(step, "/interval/runs")), word(step, "/interval/like"));
        out += card(duration(number(step, "/time_s")), like);
        out += card(grouped(number(step, "/tokens_per_s")),
                    fmt::format("tokens/s, {} per GPU", grouped(number(step, "/tokens_per_s_per_gpu"))));
        out += card(percent(number(step, "/exposed_comm_fraction")),
                    fmt::format("exposed communication; bubble {}", percent(number(step, "/bubble_fraction"))));
    }
    double most = 0, capacity = 0;
    for (const Json& stage : at(result, "/memory")) {
        if (number(stage, "/total_bytes") >= most) {
            most = number(stage, "/total_bytes");
            capacity = number(stage, "/capacity_bytes");
        }
    }
    if (capacity > 0)
        out += card(gib(static_cast<std::int64_t>(most)) + " GiB",
                    fmt::format("of {} GiB per GPU on the fullest stage, {}", gib(static_cast<std::int64_t>(capacity)),
                                percent(most / capacity)));
    out += run_cards(result) + "</div>\n";
    for (const Json& expected : at(result, "/expect")) {
        const bool met = expected.value("met", false);
        const std::string wanted =
            at(expected, "/expected").is_string()
                ? word(expected, "/expected")
                : fmt::format("{:g} to {:g}", number(expected, "/low"), number(expected, "/high"));
        const std::string is = at(expected, "/value").is_string() ? word(expected, "/value")
                                                                  : fmt::format("{:.6g}", number(expected, "/value"));
        out += fmt::format("<p class={}>{} {} {}; expected {}</p>\n", met ? "good" : "bad", met ? "✔" : "✘",
                           escape(word(expected, "/what")), escape(is), escape(wanted));
    }
    for (const Json& hint : at(result, "/hints"))
        out += "<p>" + escape(hint.get<std::string>()) + "</p>\n";
    for (const Json& note : at(result, "/notes"))
        out += "<p class=soft>" + escape(note.get<std::string>()) + "</p>\n";
    return out + "</header>\n";
}

}  // namespace fabricast::report
