// Views of result.json: each is made from its text alone, so a stored result can be shown again years later.
//
// Keys that are missing or null leave out what would show them; none is computed that the file does not hold, but sums and
// shares of what it holds.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fabricast {

/// One page that needs nothing else: no network, no other file. Light and dark, phone and paper.
std::string html_report(const std::string& result);
std::string markdown_report(const std::string& result);
/// key,value: one figure a line, keys as paths into result.json ("step.waterfall.bubble.fraction").
std::string csv_report(const std::string& result);
/// Prometheus text format: gauges with the scenario's name as a label.
std::string prometheus_report(const std::string& result);

/// Endings of file names that name one of these formats: .html, .md, .csv, .prom.
const std::vector<std::string_view>& result_view_endings();
/// The view the ending of `path` names. Precondition: it is one of the above. Throws std::invalid_argument where `result` is
/// no result.json of a version this program knows.
std::string view_for(std::string_view path, const std::string& result);

/// The text of result.json with one more key.
std::string with_text(const std::string& result, std::string_view key, const std::string& text);

}  // namespace fabricast
