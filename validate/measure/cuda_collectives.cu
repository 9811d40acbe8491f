// NCCL collectives with nccl-tests' definitions; see cuda_backend.hpp. Data are small whole numbers, so that every sum is exact
// and every element of every rank can be checked.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <nccl.h>

#include "validate/measure/cuda_backend.hpp"
#include "validate/measure/cuda_device.cuh"
#include "validate/measure/tcp_store.hpp"

namespace fabricast::cuda {

namespace {

void check_nccl(ncclResult_t code, const char* what) {
    if (code != ncclSuccess)
        throw MeasureError(std::string("NCCL: ") + what + ": " + ncclGetErrorString(code));
}
#define FABRICAST_NCCL_CHECK(call) check_nccl((call), #call)

constexpr const char* kCollectives[] = {"all_reduce", "all_gather", "reduce_scatter",
                                        "broadcast",  "alltoall",   "sendrecv"};

__host__ __device__ inline float whole(std::uint64_t rank, std::uint64_t i) {
    return static_cast<float>((rank + 1) * (mixed(i) % 64));
}

/// data[i] = whole(rank, i + offset)
__global__ void fill_whole(float* data, std::size_t n, std::uint64_t rank, std::uint64_t offset) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
        data[i] = whole(rank, i + offset);
}

/// Counts elements that are not factor x whole(0, i + offset).
__global__ void count_wrong(const float* data, std::size_t n, float factor, std::uint64_t offset,
                            unsigned long long* wrong) {
    const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
    for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride) {
        if (data[i] != factor * whole(0, i + offset))
            atomicAdd(wrong, 1ULL);
    }
}

struct Member {
    int device, rank;
    ncclComm_t communicator = nullptr;
    std::unique_ptr<Stream> stream;
    Memory in, out, wrong;
};

}  // namespace

/// A communicator: all its ranks, or the one of this process.
class Ring {
public:
    Ring(int gpus, std::size_t bytes);
    Ring(int rank, int world, int device, const std::string& store, std::size_t bytes);
    ~Ring();
    int world() const { return world_; }
    std::size_t bytes() const { return bytes_; }
    /// us of one operation, the slowest rank's, averaged over the repeats of one sample.
    double time(const std::string& what, std::size_t floats, bool in_place, int repeats);
    void check(const std::string& what, std::size_t floats, bool in_place);
    /// The largest over the ranks. Keeps processes in step.
    double same_for_all(double value);
    std::vector<Member>& members() { return members_; }
    void launch(const std::string& what, std::size_t floats, bool in_place);

private:
    void prepare(std::size_t bytes);
    void fill(const std::string& what, std::size_t floats, bool in_place);
    void operation(Member& m, const std::string& what, std::size_t floats, bool in_place) const;
    float* source(const Member& m, const std::string& what, std::size_t floats, bool in_place) const;
    float* target(const Member& m, const std::string& what, std::size_t floats, bool in_place) const;
    int world_;
    std::size_t bytes_ = 0;
    std::vector<Member> members_;
};

Ring::Ring(int gpus, std::size_t bytes) : world_(gpus) {
    std::vector<int> devices;
    for (int i = 0; i < gpus; ++i) {
        devices.push_back(i);
        members_.push_back({i, i, nullptr, nullptr, {}, {}, {}});
    }
    std::vector<ncclComm_t> communicators(static_cast<std::size_t>(gpus));
    FABRICAST_NCCL_CHECK(ncclCommInitAll(communicators.data(), gpus, devices.data()));
    for (std::size_t i = 0; i < communicators.size(); ++i)
        members_[i].communicator = communicators[i];
    prepare(bytes);
}

Ring::Ring(int rank, int world, int device, const std::string& store, std::size_t bytes) : world_(world) {
    ncclUniqueId id = {};
    if (rank == 0)
        FABRICAST_NCCL_CHECK(ncclGetUniqueId(&id));
    std::vector<char> raw(reinterpret_cast<char*>(&id), reinterpret_cast<char*>(&id) + sizeof id);
    raw = share_bytes(store, rank, world, std::move(raw));
    if (raw.size() != sizeof id)
        throw MeasureError("store " + store + ": another program answers there");
    std::memcpy(&id, raw.data(), sizeof id);
    FABRICAST_CUDA_CHECK(cudaSetDevice(device));
    members_.push_back({device, rank, nullptr, nullptr, {}, {}, {}});
    FABRICAST_NCCL_CHECK(ncclCommInitRank(&members_.front().communicator, world, id, rank));
    prepare(bytes);
}

Ring::~Ring() {
    for (Member& m : members_) {
        cudaSetDevice(m.device);
        if (m.communicator != nullptr)
            ncclCommDestroy(m.communicator);
    }
}

/// Two buffers a GPU, at most a third of its free memory each.
void Ring::prepare(std::size_t bytes) {
    for (const Member& m : members_) {
        std::size_t left = 0, all = 0;
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        FABRICAST_CUDA_CHECK(cudaMemGetInfo(&left, &all));
        while (bytes > left / 3)
            bytes /= 2;
    }
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        m.stream = std::make_unique<Stream>();
        m.wrong = Memory(sizeof(unsigned long long));
        m.out = Memory(256);
    }
    bytes_ = static_cast<std::size_t>(-same_for_all(-static_cast<double>(bytes)));  // the smallest of all ranks
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        m.in = Memory(bytes_);
        m.out = Memory(bytes_);
    }
}

double Ring::same_for_all(double value) {
    FABRICAST_NCCL_CHECK(ncclGroupStart());
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        FABRICAST_CUDA_CHECK(cudaMemcpy(m.out.as<void>(), &value, sizeof value, cudaMemcpyHostToDevice));
        FABRICAST_NCCL_CHECK(ncclAllReduce(m.out.as<double>(), m.out.as<double>(), 1, ncclDouble, ncclMax,
                                           m.communicator, m.stream->get()));
    }
    FABRICAST_NCCL_CHECK(ncclGroupEnd());
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        m.stream->wait();
        FABRICAST_CUDA_CHECK(cudaMemcpy(&value, m.out.as<void>(), sizeof value, cudaMemcpyDeviceToHost));
    }
    return value;
}

// In place as nccl-tests has it: all-gather's share of a rank lies at its place in the gathered buffer, reduce-scatter's result at
// its place in the input.
float* Ring::source(const Member& m, const std::string& what, std::size_t floats, bool in_place) const {
    const std::size_t share = floats / static_cast<std::size_t>(world_);
    if (!in_place)
        return m.in.as<float>();
    return what == "all_gather" ? m.out.as<float>() + static_cast<std::size_t>(m.rank) * share : m.out.as<float>();
}
float* Ring::target(const Member& m, const std::string& what, std::size_t floats, bool in_place) const {
    const std::size_t share = floats / static_cast<std::size_t>(world_);
    return in_place && what == "reduce_scatter" ? m.out.as<float>() + static_cast<std::size_t>(m.rank) * share
                                                : m.out.as<float>();
}

void Ring::fill(const std::string& what, std::size_t floats, bool in_place) {
    const std::size_t share = floats / static_cast<std::size_t>(world_);
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        const auto rank = static_cast<std::uint64_t>(m.rank);
        const std::size_t n = what == "all_gather" ? share : floats;
        fill_whole<<<256, 256, 0, m.stream->get()>>>(source(m, what, floats, in_place), n, rank, 0);
        m.stream->wait();
    }
}

void Ring::operation(Member& m, const std::string& what, std::size_t floats, bool in_place) const {
    const std::size_t share = floats / static_cast<std::size_t>(world_);
    const float* const in = source(m, what, floats, in_place);
    float* const out = target(m, what, floats, in_place);
    const cudaStream_t stream = m.stream->get();
    if (what == "all_reduce") {
        FABRICAST_NCCL_CHECK(ncclAllReduce(in, out, floats, ncclFloat, ncclSum, m.communicator, stream));
    } else if (what == "all_gather") {
        FABRICAST_NCCL_CHECK(ncclAllGather(in, out, share, ncclFloat, m.communicator, stream));
    } else if (what == "reduce_scatter") {
        FABRICAST_NCCL_CHECK(ncclReduceScatter(in, out, share, ncclFloat, ncclSum, m.communicator, stream));
    } else if (what == "broadcast") {
        FABRICAST_NCCL_CHECK(ncclBroadcast(in, out, floats, ncclFloat, 0, m.communicator, stream));
    } else if (what == "alltoall") {
        for (int peer = 0; peer < world_; ++peer) {
            const std::size_t at = static_cast<std::size_t>(peer) * share;
            FABRICAST_NCCL_CHECK(ncclSend(in + at, share, ncclFloat, peer, m.communicator, stream));
            FABRICAST_NCCL_CHECK(ncclRecv(out + at, share, ncclFloat, peer, m.communicator, stream));
        }
    } else {
        FABRICAST_NCCL_CHECK(ncclSend(in, floats, ncclFloat, (m.rank + 1) % world_, m.communicator, stream));
        FABRICAST_NCCL_CHECK(ncclRecv(out, floats, ncclFloat, (m.rank + world_ - 1) % world_, m.communicator, stream));
    }
}

void Ring::launch(const std::string& what, std::size_t floats, bool in_place) {
    FABRICAST_NCCL_CHECK(ncclGroupStart());
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        operation(m, what, floats, in_place);
    }
    FABRICAST_NCCL_CHECK(ncclGroupEnd());
}

double Ring::time(const std::string& what, std::size_t floats, bool in_place, int repeats) {
    same_for_all(0);                   // all start together
    std::vector<Event> starts, stops;  // an event belongs to the device that is current when it is made
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        starts.emplace_back().record(m.stream->get());
    }
    for (int i = 0; i < repeats; ++i)
        launch(what, floats, in_place);
    double slowest = 0;
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        stops.emplace_back().record(m.stream->get());
    }
    for (std::size_t i = 0; i < members_.size(); ++i)
        slowest = std::max(slowest, stops[i].since(starts[i]));
    return same_for_all(slowest / repeats);
}

void Ring::check(const std::string& what, std::size_t floats, bool in_place) {
    const auto n = static_cast<std::size_t>(world_);
    const std::size_t share = floats / n;
    fill(what, floats, in_place);
    launch(what, floats, in_place);
    const auto all_ranks = static_cast<float>(n * (n + 1) / 2);
    unsigned long long wrong = 0;
    for (Member& m : members_) {
        FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
        const cudaStream_t stream = m.stream->get();
        auto* const counter = m.wrong.as<unsigned long long>();
        const auto rank = static_cast<std::size_t>(m.rank);
        const float* const out = target(m, what, floats, in_place);
        FABRICAST_CUDA_CHECK(cudaMemsetAsync(counter, 0, sizeof *counter, stream));
        const auto count = [&](const float* data, std::size_t size, float factor, std::size_t offset) {
            count_wrong<<<256, 256, 0, stream>>>(data, size, factor, offset, counter);
        };
        if (what == "all_reduce")
            count(out, floats, all_ranks, 0);
        else if (what == "reduce_scatter")
            count(out, share, all_ranks, rank * share);
        else if (what == "broadcast")
            count(out, floats, 1, 0);
        else if (what == "sendrecv")
            count(out, floats, static_cast<float>((rank + n - 1) % n + 1), 0);
        for (std::size_t peer = 0; (what == "all_gather" || what == "alltoall") && peer < n; ++peer)
            count(out + peer * share, share, static_cast<float>(peer + 1), what == "alltoall" ? rank * share : 0);
        unsigned long long own = 0;
        m.stream->wait();
        FABRICAST_CUDA_CHECK(cudaMemcpy(&own, counter, sizeof own, cudaMemcpyDeviceToHost));
        wrong += own;
    }
    const double of_all = same_for_all(static_cast<double>(wrong));
    if (of_all > 0)
        throw MeasureError(what + " of " + std::to_string(world_) + " ranks, " + std::to_string(floats * 4) + " bytes" +
                           (in_place ? " in place" : "") + ": a wrong sum in " +
                           std::to_string(static_cast<long>(of_all)) + " elements");
}

namespace {

void measure_ring(MeasureSession& session, Ring& ring, int nodes, const std::string& device, bool keep) {
    int version = 0;
    ncclGetVersion(&version);
    const auto n = static_cast<std::size_t>(ring.world());
    for (const char* name : kCollectives) {
        const std::string what = name;
        MeasuredCurve curve;
        curve.collective = what;
        curve.datatype = "float";
        curve.ranks = ring.world();
        curve.nodes = nodes;
        curve.device = device;
        curve.library = std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
                        std::to_string(version % 100);
        for (std::size_t bytes = 8; bytes <= ring.bytes(); bytes *= session.options().quick ? 8 : 2) {
            const std::size_t unit = sizeof(float) * n;
            const std::size_t floats = (bytes + unit - 1) / unit * n;
            if (floats * sizeof(float) > ring.bytes())
                break;
            // every rank leaves at the same size
            if (ring.same_for_all(MeasureSession::interrupted() ? 1 : 0) > 0)
                break;
            const auto size = static_cast<std::int64_t>(floats * sizeof(float));
            if (!curve.points.empty() && curve.points.back().bytes == size)
                continue;
            const bool has_in_place = what != "alltoall" && what != "sendrecv";
            const int repeats = bytes < (std::size_t{1} << 26) ? 20 : 5, samples = session.options().quick ? 3 : 7;
            double us[2] = {0, 0};
            for (const bool in_place : {false, true}) {
                if (in_place && !has_in_place)
                    continue;
                ring.check(what, floats, in_place);
                ring.time(what, floats, in_place, 5);
                std::vector<double> times;
                for (int i = 0; i < samples; ++i)
                    times.push_back(ring.time(what, floats, in_place, repeats));
                us[in_place ? 1 : 0] = samples_of(std::move(times)).median_us;
            }
            curve.points.push_back({size, us[0], us[1]});
        }
        if (keep && !curve.points.empty())
            session.add(std::move(curve));
    }
}

std::string device_name(int device) {
    cudaDeviceProp properties{};
    FABRICAST_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    return properties.name;
}

}  // namespace

void measure_collectives(MeasureSession& session, int gpus, std::int64_t largest) {
    for (int ranks = 2; ranks <= gpus; ranks *= 2) {
        const int used = ranks * 2 > gpus ? gpus : ranks;
        if (MeasureSession::interrupted() || (session.options().quick && used != gpus))
            continue;
        Ring ring(used, static_cast<std::size_t>(largest));
        measure_ring(session, ring, 1, device_name(0), true);
    }
}

void measure_job(MeasureSession& session, int rank, int world, int nodes, const std::string& store,
                 std::int64_t largest) {
    int device = 0;
    FABRICAST_CUDA_CHECK(cudaGetDevice(&device));
    Ring ring(rank, world, device, store, static_cast<std::size_t>(largest));
    measure_ring(session, ring, nodes, device_name(device), rank == 0);
}

void measure_overlap(MeasureSession& session, int gpus) {
    constexpr std::size_t kFloats = std::size_t{64} << 20;
    Ring ring(gpus, kFloats * sizeof(float));
    FABRICAST_CUDA_CHECK(cudaSetDevice(0));
    const Stream stream;
    for (const ProductShape& shape : {ProductShape{4096, 4096, 4096}, ProductShape{8192, 8192, 8192}}) {
        const Product product("bf16", shape, session.options().seed);
        for (const bool beside : {false, true}) {
            if (MeasureSession::interrupted())
                return;
            MeasuredPoint point;
            point.test = "overlap";
            point.what = "bf16";
            point.mode = beside ? "all_reduce beside" : "alone";
            point.shape = {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}, {"ranks", gpus}};
            point.time = session.sample([&] {
                // collectives enough to outlast the products
                for (int i = 0; beside && i < 20; ++i)
                    ring.launch("all_reduce", ring.bytes() / sizeof(float), false);
                FABRICAST_CUDA_CHECK(cudaSetDevice(0));
                const double us = time_us(stream.get(), 4, [&] { product.launch(stream.get()); });
                for (Member& m : ring.members()) {
                    FABRICAST_CUDA_CHECK(cudaSetDevice(m.device));
                    m.stream->wait();
                }
                FABRICAST_CUDA_CHECK(cudaSetDevice(0));
                return us;
            });
            product.check();
            session.add(std::move(point));
        }
    }
}

std::string versions() {
    int runtime = 0, nccl = 0;
    cudaRuntimeGetVersion(&runtime);
    ncclGetVersion(&nccl);
    return "CUDA " + std::to_string(runtime / 1000) + "." + std::to_string(runtime % 1000 / 10) + ", NCCL " +
           std::to_string(nccl / 10000) + "." + std::to_string(nccl / 100 % 100) + "." + std::to_string(nccl % 100);
}

int devices() {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0) {
        throw MeasureError(std::string("no CUDA device: ") +
                           (code == cudaErrorInsufficientDriver
                                ? "no NVIDIA driver is loaded, or it is older than CUDA needs"
                            : code == cudaSuccess ? "the driver offers none"
                                                  : cudaGetErrorString(code)) +
                           "; run this on a GPU machine, or `--backend host` to measure the processor");
    }
    return count;
}

}  // namespace fabricast::cuda
