// Files that are part of the program: style and scripts of the page, residuals of published runs.
#pragma once

#include <string_view>

namespace fabricast::report {

/// By the end of its path ("page.css"); empty where the build has none (echarts.min.js is optional).
std::string_view embedded_text(std::string_view name);

}  // namespace fabricast::report
