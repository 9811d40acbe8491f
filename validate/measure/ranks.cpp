#include <array>
#include <cstdlib>

#include "validate/measure/cuda_backend.hpp"

namespace fabricast {
namespace {

/// The first of these variables that holds a number; -1 when none does.
template <std::size_t N>
int number_of(const std::array<const char*, N>& names) {
    for (const char* name : names) {
        if (const char* text = std::getenv(name); text != nullptr && *text != '\0') {
            char* end = nullptr;
            const long value = std::strtol(text, &end, 10);
            if (*end == '\0' && value >= 0)
                return static_cast<int>(value);
        }
    }
    return -1;
}

}  // namespace

void check_gpus(int gpus, const CudaOptions& cuda) {
    if (!cuda.nccl_only)
        return;
    if (cuda.world == 0 && gpus < 2)
        throw MeasureError(
            "--nccl: one GPU only; a collective needs two GPUs, or several processes under srun or torchrun");
    if (cuda.world > 1 && cuda.store.empty())
        throw MeasureError("--nccl: several processes need a place to meet; give --store HOST:PORT or MASTER_ADDR");
}

CudaOptions options_from_environment() {
    CudaOptions out;
    const int rank = number_of(std::array{"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"});
    const int world = number_of(std::array{"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
    const int local = number_of(std::array{"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"});
    const int nodes = number_of(std::array{"SLURM_NNODES", "GROUP_WORLD_SIZE"});
    if (rank < 0 || world < 2)
        return out;
    out.rank = rank;
    out.world = world;
    out.local_rank = local < 0 ? 0 : local;
    out.nodes = nodes < 1 ? 1 : nodes;
    const char* address = std::getenv("MASTER_ADDR");
    if (address == nullptr)
        address = std::getenv("SLURM_LAUNCH_NODE_IPADDR");
    const char* port = std::getenv("MASTER_PORT");
    if (address != nullptr)
        out.store = std::string(address) + ":" + (port != nullptr ? port : "29517");
    return out;
}

}  // namespace fabricast
