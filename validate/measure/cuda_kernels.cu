// Memory-bound kernels, launches and copies of one GPU; see cuda_backend.hpp.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <cuda_bf16.h>

#include "validate/measure/cuda_device.cuh"

namespace fabricast::cuda {
namespace {

__global__ void copy_kernel(const float4* from, float4* to, std::size_t n) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        to[i] = from[i];
}

__global__ void axpy_kernel(const float4* x, float4* y, std::size_t n) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        const float4 a = x[i];
        float4 b = y[i];
        b.x += 0.5F * a.x;
        b.y += 0.5F * a.y;
        b.z += 0.5F * a.z;
        b.w += 0.5F * a.w;
        y[i] = b;
    }
}

/// Of a block of 256, to every thread.
template <bool kLargest>
__device__ float over_block(float value) {
    __shared__ float of_warp[8];
    for (int step = 16; step > 0; step /= 2) {
        const float other = __shfl_xor_sync(0xffffffffU, value, step);
        value = kLargest ? fmaxf(value, other) : value + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    value = of_warp[0];
    for (int i = 1; i < 8; ++i)
        value = kLargest ? fmaxf(value, of_warp[i]) : value + of_warp[i];
    return value;
}

constexpr int kMostWidth = 16384;

/// One row a block; a row stays in registers, so that memory is passed once each way.
template <bool kSoftmax>
__global__ void row_kernel(const __nv_bfloat162* in, __nv_bfloat162* out, int width) {
    constexpr int kPairs = kMostWidth / 2 / kThreads;
    const int pairs = width / 2;
    const std::size_t base = static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(pairs);
    float2 values[kPairs];
    float largest = -INFINITY, sum = 0;
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
        const int i = k * kThreads + static_cast<int>(threadIdx.x);
        if (i >= pairs)
            break;
        values[k] = __bfloat1622float2(in[base + static_cast<std::size_t>(i)]);
        largest = fmaxf(largest, fmaxf(values[k].x, values[k].y));
    }
    if (kSoftmax)
        largest = over_block<true>(largest);
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
        if (k * kThreads + static_cast<int>(threadIdx.x) >= pairs)
            break;
        if (kSoftmax) {
            values[k].x = __expf(values[k].x - largest);
            values[k].y = __expf(values[k].y - largest);
            sum += values[k].x + values[k].y;
        } else {
            sum += values[k].x * values[k].x + values[k].y * values[k].y;
        }
    }
    sum = over_block<false>(sum);
    const float scale = kSoftmax ? 1 / sum : rsqrtf(sum / static_cast<float>(width) + 1e-5F);
#pragma unroll
    for (int k = 0; k < kPairs; ++k) {
        const int i = k * kThreads + static_cast<int>(threadIdx.x);
        if (i >= pairs)
            break;
        out[base + static_cast<std::size_t>(i)] = __floats2bfloat162_rn(values[k].x * scale, values[k].y * scale);
    }
}

__global__ void empty_kernel() {}

}  // namespace

void measure_memory(MeasureSession& session) {
    const Stream stream;
    const unsigned blocks = blocks_of_device();
    const int last = session.options().quick ? 28 : 31;
    for (int power = 12; power <= last; power += power < 20 ? 4 : 1) {
        const std::size_t bytes = std::size_t{1} << power, n = bytes / sizeof(float4);
        const Memory x(bytes), y(bytes);
        fill<float>(x, session.options().seed);
        for (const char* what : {"copy", "axpy", "softmax", "norm"}) {
            if (MeasureSession::interrupted())
                return;
            const std::string name = what;
            constexpr int kWidth = 4096;
            const auto rows = static_cast<unsigned>(bytes / 2 / kWidth);
            const bool by_row = name == "softmax" || name == "norm";
            if (by_row && rows == 0)
                continue;
            FABRICAST_CUDA_CHECK(cudaMemset(y.as<void>(), 0, bytes));
            if (by_row)
                fill<__nv_bfloat16>(x, session.options().seed);
            else
                fill<float>(x, session.options().seed);
            FABRICAST_CUDA_CHECK(cudaDeviceSynchronize());
            int launches = 0;
            const int repeats = bytes < (std::size_t{64} << 20) ? 50 : 10;
            const auto launch = [&] {
                ++launches;
                if (name == "copy")
                    copy_kernel<<<blocks, kThreads, 0, stream.get()>>>(x.as<float4>(), y.as<float4>(), n);
                else if (name == "axpy")
                    axpy_kernel<<<blocks, kThreads, 0, stream.get()>>>(x.as<float4>(), y.as<float4>(), n);
                else if (name == "softmax")
                    row_kernel<true>
                        <<<rows, kThreads, 0, stream.get()>>>(x.as<__nv_bfloat162>(), y.as<__nv_bfloat162>(), kWidth);
                else
                    row_kernel<false>
                        <<<rows, kThreads, 0, stream.get()>>>(x.as<__nv_bfloat162>(), y.as<__nv_bfloat162>(), kWidth);
            };
            const Samples time = session.sample([&] { return time_us(stream.get(), repeats, launch); });
            FABRICAST_CUDA_CHECK(cudaGetLastError());
            // the first row (or its worth of floats) against the host
            std::vector<__nv_bfloat16> row(kWidth);
            std::vector<float> floats(std::min<std::size_t>(1024, bytes / sizeof(float)));
            double sum = 0;
            for (std::size_t i = 0; i < row.size(); ++i) {
                const double v = random_eighth(session.options().seed, i);
                sum += name == "softmax" ? std::exp(v) : v * v;
            }
            FABRICAST_CUDA_CHECK(cudaMemcpy(by_row ? static_cast<void*>(row.data()) : floats.data(), y.as<void>(),
                                            by_row ? row.size() * 2 : floats.size() * 4, cudaMemcpyDeviceToHost));
            for (std::size_t i = 0; i < (by_row ? row.size() : floats.size()); ++i) {
                const double v = random_eighth(session.options().seed, i);
                const double value = by_row ? __bfloat162float(row[i]) : floats[i];
                const double right = name == "copy"      ? v
                                     : name == "axpy"    ? 0.5 * v * launches
                                     : name == "softmax" ? std::exp(v) / sum
                                                         : v / std::sqrt(sum / kWidth + 1e-5);
                if (!(std::abs(value - right) <= 0.01 * std::abs(right) + 1e-6))
                    throw MeasureError(name + " of " + std::to_string(bytes) + " bytes: an element is " +
                                       std::to_string(value) + ", " + std::to_string(right) + " is right");
            }
            MeasuredPoint point;
            point.test = "memory";
            point.what = name;
            point.mode = "burst";
            point.shape = {{"bytes", static_cast<std::int64_t>(bytes) * (name == "axpy" ? 3 : 2)},
                           {"working_set", static_cast<std::int64_t>(bytes) * 2}};
            point.time = time;
            session.add(std::move(point));
        }
    }
}

void measure_launches(MeasureSession& session) {
    constexpr int kLaunches = 100;
    const Stream stream;
    MeasuredPoint point;
    point.test = "launch";
    point.what = "empty kernel";
    point.mode = "stream";
    point.time = session.sample(
        [&] { return time_us(stream.get(), kLaunches, [&] { empty_kernel<<<1, 32, 0, stream.get()>>>(); }); });
    session.add(point);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t ready = nullptr;
    FABRICAST_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < kLaunches; ++i)
        empty_kernel<<<1, 32, 0, stream.get()>>>();
    FABRICAST_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &graph));
    FABRICAST_CUDA_CHECK(cudaGraphInstantiate(&ready, graph, 0));
    point.mode = "graph";
    point.time = session.sample([&] {
        return time_us(stream.get(), 10, [&] { FABRICAST_CUDA_CHECK(cudaGraphLaunch(ready, stream.get())); }) /
               kLaunches;
    });
    cudaGraphExecDestroy(ready);
    cudaGraphDestroy(graph);
    session.add(std::move(point));
}

void measure_transfers(MeasureSession& session) {
    const Stream stream;
    const int last = session.options().quick ? 26 : 28;
    for (const bool pinned : {true, false}) {
        for (int power = 12; power <= last; power += 2) {
            if (MeasureSession::interrupted())
                return;
            const std::size_t bytes = std::size_t{1} << power;
            const Memory device(bytes);
            std::vector<char> pageable(pinned ? 0 : bytes);
            void* host = pageable.data();
            if (pinned)
                FABRICAST_CUDA_CHECK(cudaMallocHost(&host, bytes));
            for (std::size_t i = 0; i < bytes; ++i)
                static_cast<char*>(host)[i] = static_cast<char>(mixed(i));
            for (const bool up : {true, false}) {
                MeasuredPoint point;
                point.test = "transfer";
                point.what = std::string(up ? "h2d " : "d2h ") + (pinned ? "pinned" : "pageable");
                point.mode = "burst";
                point.shape = {{"bytes", static_cast<std::int64_t>(bytes)}};
                point.time = session.sample([&] {
                    return time_us(stream.get(), 4, [&] {
                        FABRICAST_CUDA_CHECK(
                            up ? cudaMemcpyAsync(device.as<void>(), host, bytes, cudaMemcpyHostToDevice, stream.get())
                               : cudaMemcpyAsync(host, device.as<void>(), bytes, cudaMemcpyDeviceToHost, stream.get()));
                    });
                });
                session.add(std::move(point));
                if (up)
                    std::memset(host, 0, bytes);
            }
            bool same = true;
            for (std::size_t i = 0; i < bytes; ++i)
                same = same && static_cast<char*>(host)[i] == static_cast<char>(mixed(i));
            if (pinned)
                FABRICAST_CUDA_CHECK(cudaFreeHost(host));
            if (!same)
                throw MeasureError("transfer of " + std::to_string(bytes) + " bytes: what comes back is not what went");
        }
    }
}

void measure_peers(MeasureSession& session, int gpus) {
    for (int to = 1; to < std::min(gpus, session.options().quick ? 2 : gpus); ++to) {
        int direct = 0;
        FABRICAST_CUDA_CHECK(cudaDeviceCanAccessPeer(&direct, 0, to));
        FABRICAST_CUDA_CHECK(cudaSetDevice(0));
        if (direct != 0)
            cudaDeviceEnablePeerAccess(to, 0);  // enabled already is as good
        (void)cudaGetLastError();
        const Stream stream;
        for (int power = 16; power <= (session.options().quick ? 26 : 30); power += 2) {
            if (MeasureSession::interrupted())
                return;
            const std::size_t bytes = std::size_t{1} << power;
            const Memory from(bytes);
            fill<float>(from, session.options().seed);
            FABRICAST_CUDA_CHECK(cudaSetDevice(to));
            const Memory there(bytes);
            FABRICAST_CUDA_CHECK(cudaSetDevice(0));
            FABRICAST_CUDA_CHECK(cudaDeviceSynchronize());
            MeasuredPoint point;
            point.test = "peer_copy";
            point.what = direct != 0 ? "direct" : "through the host";
            point.mode = "burst";
            point.shape = {{"bytes", static_cast<std::int64_t>(bytes)}, {"to", to}};
            point.time = session.sample([&] {
                return time_us(stream.get(), 4, [&] {
                    FABRICAST_CUDA_CHECK(
                        cudaMemcpyPeerAsync(there.as<void>(), to, from.as<void>(), 0, bytes, stream.get()));
                });
            });
            std::vector<float> back(16384);
            back.resize(std::min(back.size(), bytes / sizeof(float)));
            FABRICAST_CUDA_CHECK(cudaMemcpy(back.data(), there.as<void>(), back.size() * 4, cudaMemcpyDeviceToHost));
            for (std::size_t i = 0; i < back.size(); ++i) {
                if (back[i] != random_eighth(session.options().seed, i))
                    throw MeasureError("peer copy of " + std::to_string(bytes) + " bytes: a wrong element arrives");
            }
            session.add(std::move(point));
        }
    }
}

}  // namespace fabricast::cuda
