// The table of fabricast-cuda.so; what it calls throws, what leaves it does not.
#include "validate/measure/cuda_module.hpp"

#include <exception>

#include "sim/observed/ingest_error.hpp"
#include "validate/measure/cuda_device.cuh"

namespace fabricast {
namespace {

/// The text lives here until the next call.
template <typename Call>
CudaAnswer answer(const Call& call) {
    static std::string text;
    CudaOutcome outcome = kCudaDefect;
    try {
        text = call();
        outcome = kCudaDone;
    } catch (const MeasureError& error) {
        text = error.what();
        outcome = kCudaRefused;
    } catch (const IngestError& error) {
        text = error.what();
        outcome = kCudaRefused;
    } catch (const std::exception& error) {
        text = error.what();
    } catch (...) {
        text = "an exception of unknown type in the CUDA module";
    }
    return {outcome, text.c_str()};
}

CudaAnswer versions() {
    return answer([] { return cuda::versions(); });
}

CudaAnswer devices(std::int32_t* count) {
    return answer([&] {
        *count = cuda::devices();
        return std::string();
    });
}

CudaAnswer measure(const CudaRequest* request) {
    return answer([&] {
        MeasureOptions options;
        options.quick = request->quick != 0;
        options.seed = request->seed;
        options.output = request->output;
        options.progress = request->progress != 0;
        CudaOptions gpus;
        gpus.nccl_only = request->nccl_only != 0;
        gpus.largest_bytes = request->largest_bytes;
        gpus.rank = request->rank;
        gpus.world = request->world;
        gpus.local_rank = request->local_rank;
        gpus.nodes = request->nodes;
        gpus.store = request->store;
        MeasureSession::ask_too(request->interrupted);
        return measurement_json(cuda::measure(options, gpus))
            .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    });
}

constexpr CudaModule kModule = {kCudaInterface, FABRICAST_VERSION, versions, devices, measure};

}  // namespace
}  // namespace fabricast

extern "C" __attribute__((visibility("default"))) const fabricast::CudaModule* fabricast_cuda_module() {
    return &fabricast::kModule;
}
