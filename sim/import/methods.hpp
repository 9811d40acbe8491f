// What training programs call optimizers, and other settings several of them share.
#pragma once

#include <string>

#include "sim/import/plan.hpp"
#include "sim/import/tree.hpp"

namespace fabricast::import {

/// Sets plan.optimizer and what the name says beside it. Throws ImportError with the list of what is modelled for any other
/// name. `momentum`: of sgd.
void take_optimizer(Plan& plan, const std::string& name, bool momentum = true);

/// Type of a moment or master copy ("torch.bfloat16", "fp8") as the scenario writes it; told when there is none.
std::optional<std::string> state_type(Plan& plan, const std::string& key, const std::string& value);

/// After plan.moments and plan.second_moment are taken over: equal ones are said once, and state types name an optimizer.
void settle_state_types(Plan& plan);

/// Says that documents share sequences; their lengths are in no file.
void tell_packed(Plan& plan, const std::string& key);

/// Device of offloaded state, "cpu" or nothing. Throws ImportError for NVMe.
std::optional<std::string> offload_device(const Plan& plan, const std::string& key, const std::string& device);

}  // namespace fabricast::import
