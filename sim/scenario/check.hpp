// A merged tree checked against the field table -> answers by path.
//
// Every key must be in the table, every value of its kind, in bounds, with its unit. What the user gave and
// what the table's defaults say are read through the same parser, so a default cannot mean something else than
// the same text in a file. Defaults that were taken are recorded for the list of assumptions.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/fields.hpp"
#include "sim/scenario/yaml_source.hpp"

namespace fabricast {

struct Answer {
    const Field* field = nullptr;
    Place place;       ///< of the value; of the key for sections and lists; items of a list are answers too, "links[3]"
    std::string text;  ///< as typed
    double number = 0;         ///< number, quantity in base units
    std::int64_t integer = 0;  ///< of a list its length
    bool flag = false;
    Dimension dimension = Dimension::none;
    std::string unit;             ///< as typed; currency of a price
    std::vector<double> numbers;  ///< range, numbers, integers
    std::vector<std::string> words;
};

class Answers {
public:
    /// What the scenario says, or nullptr.
    const Answer* given(std::string_view path) const;
    /// What the scenario says, else the table's default (then recorded in defaults_taken).
    /// Precondition: one of them exists.
    const Answer& get(std::string_view path);

    /// Place to blame: the answer at `path`, else of the nearest section above it, else the file.
    Place place(std::string_view path) const;

    /// All answers below "comm.env." and the like, in path order.
    std::vector<std::pair<std::string, const Answer*>> below(std::string_view prefix) const;

    std::vector<std::string> defaults_taken;  ///< paths, in order of asking

private:
    friend Answers check(const Value& root, Diagnostics& diagnostics, std::vector<std::string>& notes);
    std::map<std::string, Answer, std::less<>> given_, defaults_;
    Place file_;
};

/// `notes` receives a line for every part that a step forecast does not use.
Answers check(const Value& root, Diagnostics& diagnostics, std::vector<std::string>& notes);

}  // namespace fabricast
