// From files and overrides to one merged tree.
//
// `extends:` names a base file, relative to the file that says so; a chain is allowed, a circle is refused.
// Maps merge key by key and the extending file wins; scalars and lists replace, and so does a section written
// in its short form (`node: hgx-h100` forgets what the base changed on its node). Overrides "a.b=c" are merged
// last, c read as YAML. Every value keeps the place where it was written.
#pragma once

#include <string>
#include <vector>

#include "sim/scenario/yaml_source.hpp"

namespace fabricast {

/// Whole text of a file. Errors (missing, a directory, unreadable, over 1 MiB) are reported at `blame`.
bool read_file(const std::string& path, const Place& blame, std::string& text, Diagnostics& diagnostics);

/// Throws ScenarioError when nothing sensible can be checked further (syntax, missing files).
Value assemble(const std::string& text, const std::string& file, const std::vector<std::string>& overrides);

}  // namespace fabricast
