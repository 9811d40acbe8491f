// One verb a file: run.cpp is the road from a scenario file to a forecast. Errors of the user are thrown as
// ScenarioError and end here with exit code 2; any other exception is a defect of this program.
#include <cstdio>
#include <exception>

#include "sim/cli/command_line.hpp"
#include "sim/scenario/scenario.hpp"

int main(int argc, char** argv) {
    using namespace fabricast;
    try {
        return cli::dispatch(cli::Arguments(argv + (argc > 0), argv + argc));
    } catch (const ScenarioError& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return cli::kBadInput;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\nthis is a bug in fabricast\n", error.what());
        return cli::kOurBug;
    }
}
