// Internal: which keys of a config.json make the shape of a model, family by family.
#pragma once

#include <span>
#include <string_view>

#include "models/transformer/hf_config.hpp"
#include "models/transformer/hf_keys.hpp"

namespace fabricast::detail {

struct HfFamily {
    std::string_view type;                 ///< model_type
    std::string_view family;               ///< Architecture::family
    void (*read)(HfKeys& k, HfConfig& c);  ///< fills c.model and c.notes
};

/// In alphabetical order of the types.
std::span<const HfFamily> hf_families();

}  // namespace fabricast::detail
