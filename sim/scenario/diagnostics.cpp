#include "sim/scenario/diagnostics.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/scenario/scenario.hpp"

namespace fabricast {

std::string Place::text() const { return line > 0 ? fmt::format("{}:{}:{}", source, line, column) : source; }

void Diagnostics::error(const Place& place, const std::string& sentence) {
    std::string line = fmt::format("{}: {}", place.text(), sentence);
    if (std::find(lines_.begin(), lines_.end(), line) == lines_.end())
        lines_.push_back(std::move(line));
}

void Diagnostics::throw_if_any() const {
    if (lines_.empty())
        return;
    const std::size_t shown = std::min(lines_.size(), kMaxShown);
    std::string text =
        fmt::format("{}", fmt::join(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(shown), "\n"));
    if (shown < lines_.size())
        text += fmt::format("\nand {} more errors", lines_.size() - shown);
    throw ScenarioError(text);
}

}  // namespace fabricast
