// Opens fabricast-cuda.so at the first need and calls it through its table; see cuda_module.hpp.
#include <dlfcn.h>
#include <fmt/format.h>

#include "validate/measure/cuda_backend.hpp"
#include "validate/measure/cuda_module.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kInstead = "`--backend host` measures the processor";

struct Opened {
    const CudaModule* table = nullptr;
    std::string missing;  ///< why there is none
};

Opened open_module() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    if (error)
        return {nullptr, fmt::format("no CUDA device: where {} lies is not known, for /proc is not mounted; {}",
                                     kCudaModuleFile, kInstead)};
    const std::vector<fs::path> places = cuda_module_places(program);
    std::string looked;
    for (const fs::path& place : places) {
        looked += (looked.empty() ? "neither in " : " nor in ") + place.parent_path().string();
        if (!fs::exists(place, error))
            continue;
        void* const handle = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr)
            return {nullptr, cuda_not_loaded(place, dlerror())};
        const auto entry = reinterpret_cast<CudaModuleEntry>(dlsym(handle, kCudaModuleEntry));
        const CudaModule* const table = entry == nullptr ? nullptr : entry();
        if (table == nullptr || table->interface_number != kCudaInterface ||
            std::string_view(table->version) != FABRICAST_VERSION)
            return {nullptr, fmt::format("no CUDA device: {} is of another build of fabricast than this "
                                         "fabricast-validate {}; install both from one; {}",
                                         place.string(), FABRICAST_VERSION, kInstead)};
        return {table, {}};  // stays open: CUDA does not like to be unloaded
    }
    return {nullptr, fmt::format("no CUDA device: {}, which measures GPUs, is {}; a build that finds the CUDA Toolkit "
                                 "and NCCL makes it; {}",
                                 kCudaModuleFile, looked, kInstead)};
}

const Opened& opened() {
    static const Opened once = open_module();
    return once;
}

const CudaModule& table() {
    if (opened().table == nullptr)
        throw MeasureError(opened().missing);
    return *opened().table;
}

std::string text_of(const CudaAnswer& answer) {
    if (answer.outcome == kCudaRefused)
        throw MeasureError(answer.text);
    if (answer.outcome != kCudaDone)
        throw std::runtime_error(answer.text);
    return answer.text;
}

/// What to install for a library of this name.
std::string package_of(std::string_view library) {
    const std::size_t so = library.rfind(".so.");
    const std::string major(so == std::string_view::npos ? "" : library.substr(so + 4));
    if (library.starts_with("libnccl."))
        return fmt::format("NCCL {} (package libnccl{} of NVIDIA's repository)", major, major);
    if (library.starts_with("libcublas"))
        return fmt::format("cuBLAS of CUDA {} (package libcublas-{}-* of NVIDIA's repository)", major, major);
    if (library.starts_with("libcudart."))
        return fmt::format("the runtime of CUDA {} (package cuda-cudart-{}-* of NVIDIA's repository)", major, major);
    return "the package that has it";
}

}  // namespace

std::vector<fs::path> cuda_module_places(const fs::path& program) {
    const fs::path folder = program.parent_path();
    return {folder / kCudaModuleFile, folder.parent_path() / "lib" / "fabricast" / kCudaModuleFile};
}

std::string cuda_not_loaded(const fs::path& module, std::string_view loader_says) {
    const std::size_t absent = loader_says.find(": cannot open shared object file");
    if (absent == std::string_view::npos)
        return fmt::format("no CUDA device: {} cannot be used here ({}); {}", module.string(), loader_says, kInstead);
    const std::string_view library = loader_says.substr(0, absent);
    return fmt::format(
        "no CUDA device: {} is missing, which {} needs: install {} or, where it is installed, put its folder into "
        "LD_LIBRARY_PATH; {}",
        library, module.string(), package_of(library), kInstead);
}

std::string cuda_missing() { return opened().missing; }
std::string cuda_versions() { return opened().table == nullptr ? std::string() : text_of(table().versions()); }

int cuda_devices() {
    std::int32_t count = 0;
    text_of(table().devices(&count));
    return count;
}

MeasurementFile measure_cuda(const MeasureOptions& options, const CudaOptions& cuda) {
    check_gpus(cuda_devices(), cuda);
    CudaRequest request{};
    request.seed = options.seed;
    request.largest_bytes = cuda.largest_bytes;
    request.output = options.output.c_str();
    request.store = cuda.store.c_str();
    request.quick = options.quick ? 1 : 0;
    request.progress = options.progress ? 1 : 0;
    request.nccl_only = cuda.nccl_only ? 1 : 0;
    request.rank = cuda.rank;
    request.world = cuda.world;
    request.local_rank = cuda.local_rank;
    request.nodes = cuda.nodes;
    request.interrupted = [] { return static_cast<std::int32_t>(MeasureSession::interrupted()); };
    return parse_measurement_json(text_of(table().measure(&request)), options.output);
}

}  // namespace fabricast
