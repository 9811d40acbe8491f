// Stands for the CUDA backend where the toolkit was not found at build.
#include "validate/measure/cuda_backend.hpp"

#ifndef FABRICAST_CUDA

namespace fabricast {

bool cuda_compiled() { return false; }
std::string cuda_versions() { return {}; }
int cuda_devices() {
    throw MeasureError(
        "no CUDA device: this fabricast-validate was built without the CUDA Toolkit and NCCL; `--backend host` "
        "measures the "
        "processor");
}
MeasurementFile measure_cuda(const MeasureOptions&, const CudaOptions&) {
    cuda_devices();
    return {};
}

}  // namespace fabricast

#endif
