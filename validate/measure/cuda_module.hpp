// The border between fabricast-validate and fabricast-cuda.so, which is linked to cuBLASLt and NCCL and opened when GPUs are to be
// measured. So fabricast-validate starts, and does everything that needs no GPU, where these libraries are not.
//
// The module exports one function, kCudaModuleEntry, which gives a table of functions with C linkage. Values, texts and one
// callback cross the border; no C++ type and no exception does: the module catches its own and answers with their sentence. The
// first member of the table is the number of the interface and the second the version, in this order for ever: a module of another
// build is refused before anything else of it is read.
//
// A text is UTF-8, ends with 0 and lives until the module's next call. One thread calls at a time.
#pragma once

#include <cstdint>

namespace fabricast {

/// Counts changes of anything below.
inline constexpr std::uint32_t kCudaInterface = 1;
inline constexpr const char* kCudaModuleFile = "fabricast-cuda.so";
inline constexpr const char* kCudaModuleEntry = "fabricast_cuda_module";

extern "C" {

/// MeasureOptions and CudaOptions; flags are 0 or 1.
struct CudaRequest {
    std::uint64_t seed;
    std::int64_t largest_bytes;
    const char* output;
    const char* store;
    std::int32_t quick, progress, nccl_only;
    std::int32_t rank, world, local_rank, nodes;
    std::int32_t (*interrupted)();  ///< 1 once Ctrl-C came
};

enum CudaOutcome : std::int32_t {
    kCudaDone,     ///< the text is the result
    kCudaRefused,  ///< a sentence for the user: no device, a wrong result, a file that cannot be written
    kCudaDefect    ///< what no one foresaw
};

struct CudaAnswer {
    CudaOutcome outcome;
    const char* text;
};

struct CudaModule {
    std::uint32_t interface_number;
    const char* version;       ///< of fabricast
    CudaAnswer (*versions)();  ///< "CUDA 13.0, NCCL 2.28.9"
    CudaAnswer (*devices)(std::int32_t* count);
    CudaAnswer (*measure)(const CudaRequest* request);  ///< JSON of measurement.hpp
};

using CudaModuleEntry = const CudaModule* (*)();

}  // extern "C"

}  // namespace fabricast
