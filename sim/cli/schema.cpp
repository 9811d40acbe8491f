#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {

Options schema_options() {
    Options options;
    options.usage = "fabricast schema";
    options.examples =
        "examples\n"
        "  fabricast schema > scenario.schema.json\n"
        "  and as the first line of a scenario, for editors that complete YAML:\n"
        "  # yaml-language-server: $schema=scenario.schema.json\n";
    return options;
}

int schema(const Arguments& arguments) {
    bool help = false;
    parse(schema_options(), arguments, help);
    if (!help)
        print_result(scenario_schema());
    return kDone;
}

}  // namespace fabricast::cli
