// Configurations of training programs -> scenarios.
//
// Each reader knows one program's keys and their meaning, takes what stands there, and tells the rest: keys it does not
// use, values nobody can know from the file, statements that exclude each other.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "sim/import/plan.hpp"
#include "sim/import/tree.hpp"

namespace fabricast::import {

struct Source {
    std::string file;  ///< as given; for messages and for the scenario's name
    std::string text;
};

struct Options {
    std::map<std::string, std::string> environment;  ///< --env KEY=VALUE
    std::optional<std::int64_t> gpus;                ///< --gpus N
    std::string arguments;                           ///< --args "...": what the launch is called with
    std::optional<std::size_t> run;                  ///< --run N of a file with several
    std::vector<Source> more;                        ///< further files: sourced scripts, an .env
};

/// All throw ImportError.
Plan import_hf(const Source& source, const Options& options);
Plan import_torchtitan(const Source& source, const Options& options);
Plan import_nemo(const Source& source, const Options& options);
Plan import_megatron_bridge(const Source& source, const Options& options);
Plan import_deepspeed(const Source& source, const Options& options);
Plan import_nanotron(const Source& source, const Options& options);
Plan import_llm_foundry(const Source& source, const Options& options);
Plan import_axolotl(const Source& source, const Options& options);
Plan import_llama_factory(const Source& source, const Options& options);
Plan import_gpt_neox(const Source& source, const Options& options);
Plan import_maxtext(const Source& source, const Options& options);
Plan import_megatron(const Source& source, const Options& options);

struct Format {
    std::string_view name;     ///< "torchtitan"
    std::string_view example;  ///< "job.toml"
    Plan (*read)(const Source& source, const Options& options);
};
std::span<const Format> formats();

/// A model as torchtitan names it, and the preset of its shapes.
struct TitanModel {
    std::string_view name, flavor, preset;
};
std::span<const TitanModel> torchtitan_models();

/// A plan with file, format and name set, and the GPU count of the options.
Plan begin(const Source& source, const Options& options, std::string format);

/// Unread keys become plan.ignored; finish().
Plan end(Plan plan, const Keys& keys);

/// OmegaConf: fills in ${...} of every scalar. What stays unknown has Tree::unknown; environment variables that are not
/// set and have no default are returned, sorted.
std::vector<std::string> interpolate(Tree& root, const std::map<std::string, std::string>& environment);

/// Offers GPU counts of comments when the plan has none.
void offer_comments(Plan& plan, const std::string& text);

}  // namespace fabricast::import
