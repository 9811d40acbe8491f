// Megatron-LM command-line flags as typed: the names of seven years, argparse's rules.
// Source: Megatron-LM arguments.py at the releases named in the table of names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/import/plan.hpp"

namespace fabricast::import {

/// A value that a shell variable, which nobody set, would fill.
inline bool holds_variable(const std::string& value) { return value.find('$') != std::string::npos; }

/// Flags with their values, names with `-` and without the leading dashes.
class Flags {
public:
    /// From the words behind the script's name. Told: underscores, abbreviations, old names, a flag given twice.
    Flags(const std::vector<std::string>& words, Plan& plan);
    /// From an argument dump or a map of arguments: names with their (Python) values.
    Flags(const std::vector<std::pair<std::string, std::string>>& pairs, Plan& plan);

    bool has(const std::string& name);
    std::optional<std::string> text(const std::string& name);
    std::optional<std::int64_t> integer(const std::string& name);
    bool flag(const std::string& name);  ///< present and not false
    std::vector<std::string> unread() const;

private:
    void put(std::string name, std::vector<std::string> values, bool literal);

    Plan& plan_;
    std::map<std::string, std::vector<std::string>> values_;
    std::map<std::string, bool> read_;
};

}  // namespace fabricast::import
