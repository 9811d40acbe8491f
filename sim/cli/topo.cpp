// fabricast topo: what a machine, a fabric or a scenario's cluster is, and what is odd about it.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>

#include "sim/cli/command_line.hpp"
#include "sim/cli/topo_views.hpp"
#include "sim/report/page.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/build_cluster.hpp"
#include "topologies/importers/detect.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;

Options description() {
    Options options;
    options.usage = "fabricast topo FILE [option]...";
    options.named.add_options()("json", "as JSON")(
        "set", po::value<std::vector<std::string>>()->value_name("key=value"),
        "override one key of a scenario; repeatable")("no-color", "no colour, as with NO_COLOR set");
    options.hidden.add_options()("file", po::value<std::vector<std::string>>());
    options.positional.add("file", 1);
    options.examples = "reads " + importers::readable_formats() +
                       "\nand scenario files\n\n"
                       "examples\n"
                       "  nvidia-smi topo -m > topo.txt && fabricast topo topo.txt\n"
                       "  fabricast topo /var/run/nvidia-topologyd/virtualTopology.xml\n"
                       "  fabricast topo my.yaml --json\n";
    return options;
}

/// A scenario has a top-level `cluster` or `extends`; no importable format does.
bool is_scenario(const importers::SourceText& source) {
    for (std::size_t i = 0; i < source.line_count(); ++i) {
        const std::string_view line = source.line(i);
        if (line.starts_with("cluster:") || line.starts_with("extends:"))
            return true;
    }
    return false;
}

std::string show(const importers::SourceText& source, const std::vector<std::string>& overrides, bool json,
                 report::Page& page) {
    if (importers::detect(source) == importers::Format::unknown && is_scenario(source)) {
        const Scenario scenario = load_scenario(source.name(), overrides, Scope::cluster);
        const Cluster cluster = build_cluster(scenario);
        return json ? cluster_json(scenario, cluster) : cluster_text(scenario, cluster, page);
    }
    if (!overrides.empty())
        throw ScenarioError(fmt::format("fabricast topo: --set belongs to a scenario, {} is none", source.name()));
    const importers::Imported imported = importers::import_text(source);
    if (const auto* machine = std::get_if<importers::Machine>(&imported))
        return json ? machine_json(*machine) : machine_text(*machine, page);
    const auto& fabric = std::get<importers::FabricDescription>(imported);
    return json ? fabric_json(fabric) : fabric_text(fabric, page);
}

}  // namespace

Options topo_options() { return description(); }

int topo(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(description(), arguments, help);
    if (help)
        return kDone;
    if (!values.count("file"))
        throw ScenarioError("fabricast topo: no file given; it reads " + importers::readable_formats() +
                            " and scenario files");
    const std::vector<std::string> overrides =
        values.count("set") ? values["set"].as<std::vector<std::string>>() : std::vector<std::string>();
    const Terminal terminal = stdout_terminal(values.count("no-color") > 0);
    report::Page page(terminal.color, terminal.unicode, 120);
    try {
        const auto source = importers::SourceText::from_file(values["file"].as<std::vector<std::string>>().front());
        print_result(show(source, overrides, values.count("json") > 0, page));
    } catch (const importers::ImportError& error) {
        throw ScenarioError(error.what());
    }
    return kDone;
}

}  // namespace fabricast::cli
