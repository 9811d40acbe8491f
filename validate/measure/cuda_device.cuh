// What the CUDA sources share: errors with their place, memory and streams that are given back, event timing, random data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <cuda_runtime.h>

#include "validate/measure/cuda_backend.hpp"

namespace fabricast::cuda {

inline void check(cudaError_t code, const char* what) {
    if (code != cudaSuccess)
        throw MeasureError(std::string("CUDA: ") + what + ": " + cudaGetErrorString(code));
}
#define FABRICAST_CUDA_CHECK(call) ::fabricast::cuda::check((call), #call)

/// Device memory of the current device.
class Memory {
public:
    Memory() = default;
    explicit Memory(std::size_t bytes) : bytes_(bytes) { FABRICAST_CUDA_CHECK(cudaMalloc(&data_, bytes)); }
    Memory(Memory&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    Memory& operator=(Memory&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { cudaFree(data_); }
    template <typename T>
    T* as() const {
        return static_cast<T*>(data_);
    }
    std::size_t bytes() const { return bytes_; }

private:
    void* data_ = nullptr;
    std::size_t bytes_ = 0;
};

class Stream {
public:
    Stream() { FABRICAST_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
    Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
    Stream(const Stream&) = delete;
    ~Stream() {
        if (stream_ != nullptr)
            cudaStreamDestroy(stream_);
    }
    cudaStream_t get() const { return stream_; }
    void wait() const { FABRICAST_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

private:
    cudaStream_t stream_ = nullptr;
};

class Event {
public:
    Event() { FABRICAST_CUDA_CHECK(cudaEventCreate(&event_)); }
    Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
    Event(const Event&) = delete;
    ~Event() {
        if (event_ != nullptr)
            cudaEventDestroy(event_);
    }
    void record(cudaStream_t stream) { FABRICAST_CUDA_CHECK(cudaEventRecord(event_, stream)); }
    /// us since `start`; waits for this one.
    double since(const Event& start) const {
        float ms = 0;
        FABRICAST_CUDA_CHECK(cudaEventSynchronize(event_));
        FABRICAST_CUDA_CHECK(cudaEventElapsedTime(&ms, start.event_, event_));
        return static_cast<double>(ms) * 1e3;
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// us of one of `repeats` launches in a row.
template <typename Launch>
double time_us(cudaStream_t stream, int repeats, const Launch& launch) {
    Event start, stop;
    start.record(stream);
    for (int i = 0; i < repeats; ++i)
        launch();
    stop.record(stream);
    return stop.since(start) / repeats;
}

/// Bits without pattern (splitmix64).
__host__ __device__ inline std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}
/// In [-1, 1), a multiple of 1/8: exact in every type, fp8 too.
__host__ __device__ inline float random_eighth(std::uint64_t seed, std::uint64_t i) {
    return static_cast<float>(static_cast<int>(mixed(seed + i) % 16) - 8) * 0.125F;
}

#ifdef __CUDACC__
constexpr int kThreads = 256;

template <typename T>
__global__ void fill_random(T* data, std::size_t n, std::uint64_t seed) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = T(random_eighth(seed, i));
}

/// Blocks of a kernel that strides over its data.
inline unsigned blocks_of_device() {
    int device = 0, count = 0;
    FABRICAST_CUDA_CHECK(cudaGetDevice(&device));
    FABRICAST_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
    return static_cast<unsigned>(count) * 8;
}

/// Fills device memory with random_eighth(seed, i).
template <typename T>
void fill(const Memory& memory, std::uint64_t seed) {
    fill_random<T><<<blocks_of_device(), kThreads>>>(memory.as<T>(), memory.bytes() / sizeof(T), seed);
    FABRICAST_CUDA_CHECK(cudaGetLastError());
}
#endif

struct ProductShape {
    std::int64_t m, n, k, batch = 1;
};

/// The kernels of one GPU (cuda_products.cu, cuda_kernels.cu).
void measure_products(MeasureSession& session);
void measure_memory(MeasureSession& session);
void measure_launches(MeasureSession& session);
void measure_transfers(MeasureSession& session);
void measure_peers(MeasureSession& session, int gpus);

/// A product that can be launched again and again, on the device that was current when it was made.
class Product {
public:
    /// what: "bf16", "fp16", "tf32", "fp8". Throws MeasureError where the library has no kernel for it.
    Product(const std::string& what, ProductShape shape, std::uint64_t seed);
    ~Product();
    Product(Product&&) noexcept;
    Product(const Product&) = delete;
    void launch(cudaStream_t stream) const;
    /// Throws MeasureError for an entry that is not the sum it should be.
    void check() const;

private:
    struct Parts;
    Parts* parts_;
};

/// What cuda_backend.hpp offers, on this side of the border (cuda_module.hpp).
std::string versions();
int devices();
/// Precondition: check_gpus accepts the options.
MeasurementFile measure(const MeasureOptions& options, const CudaOptions& cuda);

/// Collectives (cuda_collectives.cu): of one process for `gpus` of a node, or of one process a GPU.
void measure_collectives(MeasureSession& session, int gpus, std::int64_t largest);
void measure_job(MeasureSession& session, int rank, int world, int nodes, const std::string& store,
                 std::int64_t largest);
void measure_overlap(MeasureSession& session, int gpus);

}  // namespace fabricast::cuda
