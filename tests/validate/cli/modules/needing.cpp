// A module as it is where NCCL is not installed: the loader does not find what it is linked to.
#include "validate/measure/cuda_module.hpp"

extern "C" int fabricast_needed();

extern "C" const fabricast::CudaModule* fabricast_cuda_module() {
    static constexpr fabricast::CudaModule kTable = {fabricast::kCudaInterface, FABRICAST_VERSION, nullptr, nullptr,
                                                     nullptr};
    return fabricast_needed() == 0 ? nullptr : &kTable;
}
