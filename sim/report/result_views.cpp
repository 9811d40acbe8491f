#include "sim/report/result_views.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace fabricast {

const std::vector<std::string_view>& result_view_endings() {
    static const std::vector<std::string_view> endings = {".html", ".md", ".csv", ".prom"};
    return endings;
}

std::string view_for(std::string_view path, const std::string& result) {
    if (path.ends_with(".html"))
        return html_report(result);
    if (path.ends_with(".md"))
        return markdown_report(result);
    if (path.ends_with(".csv"))
        return csv_report(result);
    if (path.ends_with(".prom"))
        return prometheus_report(result);
    throw std::logic_error("no view for this ending");
}

std::string with_text(const std::string& result, std::string_view key, const std::string& text) {
    nlohmann::ordered_json whole = nlohmann::ordered_json::parse(result);
    whole[std::string(key)] = text;
    return whole.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace fabricast
