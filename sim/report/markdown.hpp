// Pieces of Markdown.
#pragma once

#include <string>
#include <string_view>

namespace fabricast::report {

std::string markdown_cell(std::string_view text);  ///< of a table: one line, no bar in it

}  // namespace fabricast::report
