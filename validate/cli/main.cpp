// One verb a file: measure.cpp, ingest.cpp, fit.cpp, score.cpp. Errors of the user end here with exit code 2; any other exception is a defect.
#include <cstdio>
#include <exception>

#include "sim/observed/ingest_error.hpp"
#include "sim/scenario/scenario.hpp"
#include "validate/cli/command_line.hpp"
#include "validate/measure/session.hpp"
#include "validate/score/platform.hpp"

int main(int argc, char** argv) {
    using namespace fabricast;
    const auto bad_input = [](const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return validate_cli::kBadInput;
    };
    try {
        return validate_cli::dispatch(validate_cli::Arguments(argv + (argc > 0), argv + argc));
    } catch (const validate_cli::UsageError& error) {
        return bad_input(error);
    } catch (const IngestError& error) {
        return bad_input(error);
    } catch (const PlatformError& error) {
        return bad_input(error);
    } catch (const MeasureError& error) {
        return bad_input(error);
    } catch (const ScenarioError& error) {
        return bad_input(error);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\nthis is a bug in fabricast-validate\n", error.what());
        return validate_cli::kOurBug;
    }
}
