// Alarms of one life on the page: each rule's verdict, and what was wrong.
#include <fmt/format.h>

#include "sim/report/campaign_view.hpp"
#include "sim/report/html_campaign.hpp"
#include "sim/report/html_parts.hpp"
#include "sim/report/text.hpp"

namespace fabricast::report {
namespace {

std::string delay_text(const Json& row) {
    const Json& delay = at(row, "/median_delay_s");
    if (!delay.is_number())
        return "-";
    const double s = delay.get<double>();
    return s < 0 ? span_text(-s) + " before" : span_text(s);
}

}  // namespace

std::string monitor_section(const Json& result) {
    const Json& monitor = at(result, "/monitor");
    if (!monitor.is_object())
        return {};
    std::string out = fmt::format(
        "<section id=monitor><h2>What monitors would have told</h2>\n<p class=soft>Life {:.0f}, {} samples of {}. A "
        "rule catches what its metric shows; a false alarm belongs to nothing that was wrong.</p>\n",
        number(monitor, "/replica"), grouped(number(monitor, "/samples")), span_text(number(monitor, "/interval_s")));
    HtmlTable rules({"rule", "what it asks", "+alarms", "+caught", "+missed", "+delay", "+false", "+standing"}, true);
    std::string silent;
    for (const Json& row : at(monitor, "/rules")) {
        if (number(row, "/alarms") == 0) {
            silent += (silent.empty() ? "" : ", ") + word(row, "/rule");
            continue;
        }
        rules.row({word(row, "/rule"), word(row, "/text"), grouped(number(row, "/alarms")),
                   grouped(number(row, "/caught")),
                   grouped(number(row, "/missed") - number(row, "/missed_out_of_sight")), delay_text(row),
                   grouped(number(row, "/false_alarms")), percent(number(row, "/standing_fraction"))});
    }
    out += rules.finish();
    if (!silent.empty())
        out += "<p class=soft>Silent: " + escape(silent) + ".</p>\n";
    if (const Json& held = at(monitor, "/throttles"); held.is_array() && !held.empty())
        out += fmt::format(
            "<p>Rules held the hot GPU at {:.4g} C from day {:.2f} on; what that takes from its clock and the step is "
            "not counted.</p>\n",
            number(held.back(), "/celsius"), number(held.front(), "/time_s") / 86400);
    HtmlTable kinds({"what was wrong", "+times", "+caught", "+delay", "by, mostly"}, true);
    for (const Json& row : at(monitor, "/kinds"))
        kinds.row({word(row, "/what"), grouped(number(row, "/times")), grouped(number(row, "/caught")), delay_text(row),
                   word(row, "/mostly_by")});
    return out + kinds.finish() + "</section>\n";
}

}  // namespace fabricast::report
