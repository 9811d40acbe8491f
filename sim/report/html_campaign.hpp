// The run of weeks on a page, of one result or of several beside each other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/report/html_parts.hpp"

namespace fabricast::report {

/// Letter and whole result; the letter is empty where there is one result only.
using LetteredResult = std::pair<std::string, const Json*>;

/// A row of the first screen: days, cost, goodput of the lives; empty without a campaign.
std::string campaign_cards(const Json& result);
std::string campaign_section(const Json& result);
std::string monitor_section(const Json& result);  ///< html_monitor.cpp; empty without monitors

/// Distributions over the lives of what differs among them, on one scale for all results.
std::string life_strips(const std::vector<LetteredResult>& results);
/// Where wall time without kept steps goes, mean of the lives, one bar a cause and result.
std::string badput_rows(const std::vector<LetteredResult>& results);

/// "55.4", "97.05 %", "2.71 M USD": a figure of the campaign as text.
std::string life_figure(const Json& result, std::string_view key, double value);
std::string_view life_figure_name(std::string_view key);
std::string wall_words(std::string_view name);  ///< "false_alarm" -> "saves that looked like a hang"
/// Figures of the lives in the order of the page: days, cost, tokens, ettr, stops.
const std::vector<std::string_view>& life_figures();

}  // namespace fabricast::report
