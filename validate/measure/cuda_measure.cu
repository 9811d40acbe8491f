// The order of a GPU measurement, and what the file says of the machine.
#include <array>

#include <unistd.h>

#include "validate/measure/cuda_device.cuh"
#include "validate/measure/nvml.hpp"

namespace fabricast::cuda {
namespace {

std::string host_name() {
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    return host.data();
}

void list_devices(int gpus, Nvml& nvml, MeasurementFile& file) {
    file.devices.clear();
    for (int i = 0; i < gpus; ++i) {
        cudaDeviceProp properties{};
        FABRICAST_CUDA_CHECK(cudaGetDeviceProperties(&properties, i));
        std::array<char, 32> bus{};
        FABRICAST_CUDA_CHECK(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), i));
        MeasuredDevice device;
        device.host = host_name();
        device.name = properties.name;
        device.driver = nvml.driver();
        nvml.read(bus.data(), device);
        file.devices.push_back(std::move(device));
    }
}

}  // namespace

MeasurementFile measure(const MeasureOptions& options, const CudaOptions& cuda) {
    const int gpus = devices();
    MeasurementFile start;
    start.backend = "cuda";
    start.method = std::string("CUDA events, ") + (options.quick ? "up to 7" : "up to 25") +
                   " samples a test after warm-up, median; collectives: slowest rank";
    start.libraries.push_back(versions());
    Nvml nvml;
    list_devices(gpus, nvml, start);
    const bool job = cuda.world > 1 && cuda.nccl_only;
    MeasureOptions own = options;
    if (job && cuda.rank != 0) {
        own.output.clear();
        own.progress = false;
    }
    MeasureSession session(std::move(start), own);
    if (job) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(cuda.local_rank % gpus));
        measure_job(session, cuda.rank, cuda.world, cuda.nodes, cuda.store, cuda.largest_bytes);
    } else {
        FABRICAST_CUDA_CHECK(cudaSetDevice(0));
        if (!cuda.nccl_only) {
            measure_products(session);
            list_devices(gpus, nvml, session.file());  // clocks and power while the first GPU is warm
            measure_memory(session);
            measure_launches(session);
            measure_transfers(session);
        }
        if (gpus < 2) {
            session.note(kOneGpuNote);
        } else {
            if (!cuda.nccl_only)
                measure_peers(session, gpus);
            measure_collectives(session, gpus, cuda.largest_bytes);
            if (!cuda.nccl_only)
                measure_overlap(session, gpus);
        }
    }
    for (const std::string& note : nvml.notes())
        session.note(note);
    return session.finish();
}

}  // namespace fabricast::cuda
