// Measures GPUs with the libraries that training uses: cuBLASLt, CUDA copies and kernels, NCCL. All of it (*.cu) is a module,
// fabricast-cuda.so, built where CMake finds the CUDA Toolkit and NCCL and opened at the first call below; where it is not there,
// or a library it needs is not, measuring says so.
//
//   gemm        cuBLASLt, first heuristic, bf16, fp16, tf32, fp8 where the GPU has it; bursts, and a loop of half a second
//   memory      copy, axpy, softmax and RMS norm of rows, each a hand-written kernel at full width
//   attention   the two batched products of unfused attention, q k^T and p v
//   launch      an empty kernel: alone, and as one of 100 in a graph
//   transfer    host to device and back, pinned and pageable;  peer_copy  between GPUs of the node
//   curves      NCCL collectives with nccl-tests' definitions of size, out of place and in place
//   overlap     a product while an all-reduce runs beside it
// Times by CUDA events around repeated launches. Data are random, drawn on the device; results are checked against sums on the
// host (products: sampled entries; vectors: an element in so many; collectives: the sum of every rank), and a wrong one is an
// error. Clocks and power are read through NVML, if the driver lets us; no setting of a card is ever changed.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measure/session.hpp"

namespace fabricast {

struct CudaOptions {
    bool nccl_only = false;
    std::int64_t largest_bytes = std::int64_t{8} << 30;
    /// One process per GPU: rank, how many, and the store they meet at (host:port, served by rank 0). world 0: this process
    /// drives all GPUs of the node.
    int rank = 0, world = 0, local_rank = 0, nodes = 1;
    std::string store;
};

/// What keeps the module from being used, and how to get it, one sentence: "no CUDA device: ..."; empty where nothing does.
std::string cuda_missing();
/// "CUDA 13.0, NCCL 2.28.9"; empty where the module cannot be used.
std::string cuda_versions();
/// GPUs the driver offers. Throws MeasureError with "no CUDA device: ..." where there is none, or no module.
int cuda_devices();

/// Throws MeasureError where these GPUs cannot run what is asked: --nccl with one GPU, or many processes that cannot meet.
void check_gpus(int gpus, const CudaOptions& cuda);
/// What a run with one GPU of all tests leaves out; a note of its file.
inline constexpr const char* kOneGpuNote =
    "one GPU only: no collectives, no peer copies, no products beside a collective";

/// Throws MeasureError. In a process of many, only rank 0 returns points.
MeasurementFile measure_cuda(const MeasureOptions& options, const CudaOptions& cuda);

/// Where the module may lie: beside the program (build folder), in ../lib/fabricast (installed).
std::vector<std::filesystem::path> cuda_module_places(const std::filesystem::path& program);
/// cuda_missing() for a module that the loader refuses with this text of dlerror().
std::string cuda_not_loaded(const std::filesystem::path& module, std::string_view loader_says);

/// Rank, world, local rank and nodes from the environment of srun, torchrun or mpirun; world 0 when there is none.
CudaOptions options_from_environment();

}  // namespace fabricast
