// Which keys of two scenarios differ, as a person would say it: dotted keys with both values.
//
// Files, `extends` and overrides are merged first; short forms are written out (`node: hgx-h100` is
// cluster.node.preset). What one of them does not say stands there with the table's default, or as not said. Equal
// quantities in different units are equal. `name`, `extends` and `expect` do not act on a forecast and are left out.
#pragma once

#include <string>
#include <vector>

namespace fabricast {

struct KeyDifference {
    std::string key;   ///< "training.layout.tp"
    std::string a, b;  ///< as typed; "1 (default)", "-" where nothing is said and no default exists
};

/// In the order of the field table. Both files must have passed load_scenario with these overrides.
std::vector<KeyDifference> differing_keys(const std::string& file_a, const std::vector<std::string>& overrides_a,
                                          const std::string& file_b, const std::vector<std::string>& overrides_b);

}  // namespace fabricast
