// The table of the CUDA module without a GPU: what crosses the border, both ways. The seed says what happens:
//   1 a product and a copy were measured   2 a wrong result   3 a defect   4 the user interrupts
// The options of the request are in the file's notes.
#include <csignal>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "validate/measure/cuda_module.hpp"

namespace fabricast {
namespace {

CudaAnswer versions() { return {kCudaDone, "CUDA 0.0, NCCL 0.0.0"}; }

CudaAnswer devices(std::int32_t* count) {
    *count = 2;
    return {kCudaDone, ""};
}

CudaAnswer measure(const CudaRequest* request) {
    if (request->seed == 2)
        return {kCudaRefused, "gemm bf16: an entry is 1, 2 is right"};
    if (request->seed == 3)
        return {kCudaDefect, "a vector is too long"};
    bool stopped = request->interrupted() != 0;
    if (request->seed == 4 && !stopped) {
        std::raise(SIGINT);
        stopped = request->interrupted() != 0;
    }
    const auto point = [](const char* test, const char* what, const nlohmann::json& shape) {
        return nlohmann::json{{"test", test},       {"what", what},    {"mode", "burst"}, {"shape", shape},
                              {"median_us", 250.5}, {"p10_us", 249.0}, {"p90_us", 252.0}, {"samples", 7}};
    };
    static std::string text;
    text =
        nlohmann::json{
            {"schema", "fabricast-measurement/1"},
            {"backend", "cuda"},
            {"complete", !stopped},
            {"reason", stopped ? "interrupted" : ""},
            {"libraries", {versions().text}},
            {"notes",
             {fmt::format("quick {} nccl {} largest {} rank {} of {} store '{}'", request->quick, request->nccl_only,
                          request->largest_bytes, request->rank, request->world, request->store)}},
            {"devices", {{{"host", "here"}, {"name", "a GPU"}}}},
            {"points",
             {point("gemm", "bf16", {{"m", 4096}, {"n", 4096}, {"k", 4096}}),
              point("memory", "copy", {{"bytes", 1 << 28}})}}}
            .dump();
    std::ofstream(request->output) << text;
    return {kCudaDone, text.c_str()};
}

constexpr CudaModule kModule = {kCudaInterface, FABRICAST_VERSION, versions, devices, measure};

}  // namespace
}  // namespace fabricast

extern "C" const fabricast::CudaModule* fabricast_cuda_module() { return &fabricast::kModule; }
