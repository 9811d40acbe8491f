#include "sim/report/embedded_text.hpp"

#include <span>
#include <utility>

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> sim_report();
}

namespace report {

std::string_view embedded_text(std::string_view name) {
    for (const auto& [file, content] : embedded::sim_report()) {
        if (file.ends_with(name))
            return content;
    }
    return {};
}

}  // namespace report
}  // namespace fabricast
