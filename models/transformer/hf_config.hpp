// A Hugging Face config.json -> Architecture.
//
// Every value comes from the file, or is the default that the model class of that `model_type` has for an absent key.
// Nothing is guessed: a model type that is not known is refused, and so is a key whose value changes the shape in a way an
// Architecture cannot say. Keys that do not change shapes are listed, not passed over.
// Not in such a file: layout, batch, sequence of training, precision of training (torch_dtype is how weights are stored).
// Source: configuration and modeling files of Hugging Face transformers by model type; parameter counts of the published
// checkpoints (tests).
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "models/transformer/architecture.hpp"

namespace fabricast {

/// what() is one sentence beginning with the name of the file (and line and column where the text is not JSON).
struct ConfigError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct HfConfig {
    Architecture model;
    std::string model_type;
    std::vector<std::string> ignored;  ///< keys without effect on shapes, in file order
    std::vector<std::string> notes;    ///< what a forecast counts differently from the file, sentences
};

/// `name` stands for the file in messages and gives the model its name (ending and folders cut off).
HfConfig read_hf_config(const std::string& json, const std::string& name);

/// Model types read, in alphabetical order.
std::vector<std::string> hf_model_types();

/// How a model is said without a config.json, for messages.
std::string generic_model_form();

}  // namespace fabricast
