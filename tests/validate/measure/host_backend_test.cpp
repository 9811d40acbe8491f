#include "validate/measure/host_backend.hpp"

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "validate/measure/cuda_backend.hpp"
#include "validate/measure/nvml.hpp"
#include "validate/measure/tcp_store.hpp"

namespace fabricast {
namespace {

MeasureOptions quick(const std::string& output = {}) {
    MeasureOptions options;
    options.quick = true;
    options.output = output;
    return options;
}

std::string scratch(const std::string& name) {
    return (std::filesystem::temp_directory_path() / (std::to_string(::getpid()) + name)).string();
}

// The rings check every sum themselves and throw where one is wrong.
TEST(HostRings, ThreadsAndProcessesAgreeOnEverySum) {
    const MeasureSession session({}, quick());
    for (const int ranks : {2, 3, 5}) {
        EXPECT_GT(ring_of_threads(session, ranks, 4LL * ranks * 1000).median_us, 0);
        const std::vector<Samples> times = ring_of_processes(session, ranks, {4LL * ranks, 4LL * ranks * 30000});
        ASSERT_EQ(times.size(), 2u);
        for (const Samples& ring : times)
            EXPECT_GT(ring.median_us, 0);
    }
}

TEST(HostBackend, AnInterruptLeavesAValidFile) {
    const std::string file = scratch("partial.json");
    std::jthread stop([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(150));
        MeasureSession::interrupt();
    });
    const MeasurementFile result = measure_host(quick(file));
    EXPECT_FALSE(result.complete);
    const MeasurementFile read = read_measurement(file);
    EXPECT_FALSE(read.complete);
    EXPECT_NE(read.reason.find("interrupted"), std::string::npos);
    EXPECT_EQ(read.points.size(), result.points.size());
    std::filesystem::remove(file);
}

TEST(MeasureSession, AnOutputThatCannotBeWrittenIsToldFirst) {
    EXPECT_ANY_THROW(MeasureSession({}, quick("/no/such/folder/node.json")));
}

TEST(TcpStore, HandsBytesFromRankZeroToAll) {
    const std::string store = "127.0.0.1:" + std::to_string(20000 + ::getpid() % 20000);
    const std::vector<char> secret = {'a', '\0', 'z'};
    std::vector<std::vector<char>> got(3);
    {
        std::vector<std::jthread> ranks;
        for (int rank = 0; rank < 3; ++rank)
            ranks.emplace_back([&, rank] {
                got[static_cast<std::size_t>(rank)] =
                    share_bytes(store, rank, 3, rank == 0 ? secret : std::vector<char>{}, 20);
            });
    }
    for (const std::vector<char>& one : got)
        EXPECT_EQ(one, secret);
    EXPECT_THROW(share_bytes("nowhere", 1, 2, {}, 1), MeasureError);
    EXPECT_THROW(share_bytes(store, 0, 2, secret, 1), MeasureError);  // the other rank never comes
}

TEST(Nvml, WhatCannotBeReadIsTold) {
    EXPECT_EQ(nvml_sentence(4, "power of a GPU"), "no permission to read the power of a GPU; it stays unknown");
    EXPECT_NE(nvml_sentence(3, "clock of a GPU").find("does not tell"), std::string::npos);
    Nvml none("libno-such-library.so");
    EXPECT_FALSE(none.found());
    EXPECT_EQ(none.driver(), "");
    MeasuredDevice device;
    none.read("0000:00:00.0", device);
    EXPECT_EQ(device.power_w, 0);
    ASSERT_EQ(none.notes().size(), 1u);
}

std::string gpus_refused(int gpus, const CudaOptions& cuda) {
    try {
        check_gpus(gpus, cuda);
    } catch (const MeasureError& error) {
        return error.what();
    }
    return {};
}

TEST(CudaBackend, OneGpuCannotRunACollective) {
    CudaOptions cuda;
    EXPECT_EQ(gpus_refused(1, cuda), "");  // the tests of one GPU run, and the file says what does not
    cuda.nccl_only = true;
    EXPECT_NE(gpus_refused(1, cuda).find("one GPU only; a collective needs two GPUs"), std::string::npos);
    EXPECT_EQ(gpus_refused(2, cuda), "");
    cuda.world = 2;  // a process a GPU: one each is enough, once they can meet
    EXPECT_NE(gpus_refused(1, cuda).find("--store HOST:PORT"), std::string::npos);
    cuda.store = "127.0.0.1:29517";
    EXPECT_EQ(gpus_refused(1, cuda), "");
}

TEST(CudaBackend, WithoutADeviceSaysSo) {
    EXPECT_EQ(cuda_missing().empty(), cuda_versions().find("NCCL") != std::string::npos);
    try {
        const int devices = cuda_devices();
        GTEST_SKIP() << devices << " CUDA devices here";
    } catch (const MeasureError& error) {
        const std::string said = error.what();
        EXPECT_EQ(said.rfind("no CUDA device: ", 0), 0u) << said;
        EXPECT_NE(said.find("--backend host"), std::string::npos) << said;
    }
}

TEST(CudaBackend, WhatTheLoaderSaysBecomesWhatToInstall) {
    const std::filesystem::path module = "/usr/lib/fabricast/fabricast-cuda.so";
    EXPECT_EQ(cuda_module_places("/usr/bin/fabricast-validate"),
              (std::vector<std::filesystem::path>{"/usr/bin/fabricast-cuda.so", module}));
    const auto absent = [&](const std::string& library) {
        return cuda_not_loaded(module, library + ": cannot open shared object file: No such file or directory");
    };
    EXPECT_EQ(
        absent("libnccl.so.2"),
        "no CUDA device: libnccl.so.2 is missing, which /usr/lib/fabricast/fabricast-cuda.so needs: install NCCL 2 "
        "(package libnccl2 of NVIDIA's repository) or, where it is installed, put its folder into "
        "LD_LIBRARY_PATH; `--backend host` measures the processor");
    EXPECT_NE(absent("libcublasLt.so.13").find("install cuBLAS of CUDA 13 (package libcublas-13-* "),
              std::string::npos);
    EXPECT_NE(absent("libfmt.so.9").find("libfmt.so.9 is missing"), std::string::npos);
    EXPECT_NE(cuda_not_loaded(module, module.string() + ": undefined symbol: ncclCommInitRankConfig")
                  .find("cannot be used here (/usr/lib/fabricast/fabricast-cuda.so: undefined symbol: ncclComm"),
              std::string::npos);
}

}  // namespace
}  // namespace fabricast
