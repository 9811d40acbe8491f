// fabricast-validate measure --output FILE.json: GPUs by default, this processor with --backend host.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "validate/cli/verb_options.hpp"
#include "validate/measure/cuda_backend.hpp"
#include "validate/measure/host_backend.hpp"

namespace fabricast::validate_cli {

int measure(const Arguments& arguments) {
    namespace po = boost::program_options;
    constexpr std::string_view kUsage = "measure --output FILE.json [option]...";
    po::options_description named("options");
    named.add_options()("output", po::value<std::string>()->value_name("FILE"), "the measurement file to write")(
        "backend", po::value<std::string>()->default_value("cuda"),
        "cuda: the GPUs of this node; host: this processor")("quick",
                                                             "fewer and smaller shapes: seconds instead of minutes")(
        "nccl", "collectives only; under srun, torchrun or mpirun one process a GPU")(
        "store", po::value<std::string>()->value_name("HOST:PORT"), "where the processes meet; rank 0 serves it")(
        "largest", po::value<double>()->default_value(8)->value_name("GiB"), "largest size of a collective")(
        "seed", po::value<std::uint64_t>()->default_value(1)->value_name("N"),
        "draws data and, other than 1, other shapes: for a file to score what was fitted on the first");
    const VerbOptions options =
        parse_verb(kUsage, named, arguments,
                   "\nCtrl-C leaves a valid file, marked incomplete. Exit code 2 where there is "
                   "no CUDA device.\n");
    if (options.help) {
        const std::string missing = cuda_missing();
        print_result(missing.empty() ? fmt::format("Backends: host, cuda ({}).\n", cuda_versions())
                                     : fmt::format("Backends: host; {}.\n", missing));
        return kDone;
    }
    const std::string backend = options.values["backend"].as<std::string>();
    if (!options.files.empty() || (backend != "cuda" && backend != "host"))
        throw UsageError(fmt::format("fabricast-validate measure: {}; usage: fabricast-validate {}",
                                     options.files.empty()
                                         ? "unknown backend `" + backend + "`, known are cuda and host"
                                         : "unexpected `" + options.files.front() + "`",
                                     kUsage));
    MeasureOptions measured;
    measured.output = options.text("output");
    if (measured.output.empty())
        throw UsageError("fabricast-validate measure: --output FILE.json is needed");
    measured.quick = options.has("quick");
    measured.seed = options.values["seed"].as<std::uint64_t>();
    measured.progress = isatty(STDERR_FILENO) != 0;
    CudaOptions cuda = options_from_environment();
    cuda.nccl_only = options.has("nccl");
    if (options.has("store"))
        cuda.store = options.text("store");
    const double largest = options.values["largest"].as<double>();
    if (!(largest >= 1e-6 && largest <= 64))
        throw UsageError(
            fmt::format("fabricast-validate measure: --largest {} is not between 1e-6 and 64 GiB", largest));
    cuda.largest_bytes = static_cast<std::int64_t>(largest * (std::int64_t{1} << 30));
    if (backend == "cuda")
        cuda_devices();  // told before any file is touched
    MeasureSession::catch_interrupts();
    const MeasurementFile result = backend == "host" ? measure_host(measured) : measure_cuda(measured, cuda);
    if (cuda.world == 0 || cuda.rank == 0 || backend == "host")
        print_result(fmt::format("{}: {} points, {} curves{}\n", measured.output, result.points.size(),
                                 result.curves.size(), result.complete ? "" : ", incomplete: " + result.reason));
    return result.complete ? kDone : kInterrupted;
}

}  // namespace fabricast::validate_cli
