#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {

Options schema_options() {
    Options options;
    options.usage = "fabricast schema [--markdown]";
    options.named.add_options()("markdown", "the reference for people, tables by section, instead of JSON Schema");
    options.examples =
        "examples\n"
        "  fabricast schema > scenario.schema.json\n"
        "  and as the first line of a scenario, for editors that complete YAML:\n"
        "  # yaml-language-server: $schema=scenario.schema.json\n"
        "  fabricast schema --markdown > scenario.md\n";
    return options;
}

int schema(const Arguments& arguments) {
    bool help = false;
    const auto values = parse(schema_options(), arguments, help);
    if (!help)
        print_result(values.count("markdown") > 0 ? scenario_reference() : scenario_schema());
    return kDone;
}

}  // namespace fabricast::cli
