// Parts that the first screen and the full text have in common.
#pragma once

#include "sim/report/page.hpp"
#include "sim/report/text.hpp"
#include "sim/report/views.hpp"

namespace fabricast::report {

inline constexpr std::size_t kScreenColumns = 100;
inline constexpr std::size_t kScreenLines = 25;

/// Optimizer, offload, packing and compression where they are not the plain ones; may be empty.
std::string methods_text(const TrainingPlan& plan);
/// What a quantum put off and by how much the step can be too long for it; empty without one.
std::string quantum_text(const Result& result);
/// 2 lines: verdict and name; cluster, model, layout; a third for methods_text.
void print_verdict(Page& page, const Result& result);
void print_headline(Page& page, const Result& result);     ///< at most 5 lines: MFU, step, tokens, memory, run
void print_definitions(Page& page, const Result& result);  ///< what MFU and HFU divide by what
void print_critical_path(Page& page, const std::vector<CriticalEntry>& critical_path);  ///< nothing when empty

/// The communication whose exposed time is longest (or, if rows have no account, whose time on the wire is);
/// nullptr without communication.
const CommRow* dominant_communication(const Result& result);

}  // namespace fabricast::report
