#include "validate/measure/host_backend.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>
#include <Eigen/Core>

namespace fabricast {
namespace {

using Clock = std::chrono::steady_clock;
using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

double us_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) {
            const std::size_t colon = line.find(':');
            return colon == std::string::npos ? "processor" : line.substr(std::min(colon + 2, line.size()));
        }
    }
    return "processor";
}

struct Shape {
    Eigen::Index m, n, k;
};

/// Fixed shapes and, between them, some by the seed.
std::vector<Shape> product_shapes(const MeasureOptions& options) {
    std::vector<Shape> out;
    if (options.seed == 1) {
        for (const Eigen::Index edge : {32, 64, 128, 256, 384})
            out.push_back({edge, edge, edge});
        out.insert(out.end(), {{512, 64, 256}, {64, 512, 256}, {256, 256, 32}, {16, 512, 512}, {512, 512, 256}});
        if (!options.quick) {
            for (const Eigen::Index edge : {768, 1024, 2048})
                out.push_back({edge, edge, edge});
            out.insert(out.end(), {{2048, 128, 1024}, {128, 2048, 1024}, {1024, 1024, 64}});
        }
    }
    std::mt19937_64 random(options.seed);
    const int most = options.quick ? 9 : 11, drawn = options.quick ? 6 : 16;
    const auto edge = [&] {
        return static_cast<Eigen::Index>(std::exp2(5 + (most - 5) * static_cast<double>(random() >> 11) * 0x1p-53)) &
               ~7;
    };
    for (int i = 0; i < drawn; ++i) {
        const Eigen::Index m = edge(), n = edge(), k = edge();
        out.push_back({m, n, k});
    }
    return out;
}

void check_product(const Matrix& a, const Matrix& b, const Matrix& c, std::mt19937_64& random) {
    for (int i = 0; i < 16; ++i) {
        const auto row = static_cast<Eigen::Index>(random() % static_cast<std::uint64_t>(c.rows()));
        const auto column = static_cast<Eigen::Index>(random() % static_cast<std::uint64_t>(c.cols()));
        const double exact = a.row(row).cast<double>().dot(b.col(column).cast<double>());
        const double bound = 1e-6 * static_cast<double>(a.cols()) + 1e-6;
        if (std::abs(exact - static_cast<double>(c(row, column))) > bound)
            throw MeasureError(
                fmt::format("gemm {} x {} x {}: element ({}, {}) is {}, {} is right; the processor or its "
                            "library computes wrongly",
                            c.rows(), c.cols(), a.cols(), row, column, c(row, column), exact));
    }
}

void measure_products(MeasureSession& session) {
    std::mt19937_64 random(session.options().seed);
    for (const Shape& shape : product_shapes(session.options())) {
        if (MeasureSession::interrupted())
            return;
        const Matrix a = Matrix::Random(shape.m, shape.k), b = Matrix::Random(shape.k, shape.n);
        Matrix c = Matrix::Zero(shape.m, shape.n);
        const int repeats = std::max(1, static_cast<int>(2e6 / static_cast<double>(shape.m * shape.n * shape.k)));
        const Samples time = session.sample([&] {
            const auto start = Clock::now();
            for (int i = 0; i < repeats; ++i)
                c.noalias() = a * b;
            return us_since(start) / repeats;
        });
        check_product(a, b, c, random);
        session.add({.test = "gemm",
                     .what = "fp32",
                     .mode = "burst",
                     .shape = {{"m", shape.m}, {"n", shape.n}, {"k", shape.k}},
                     .time = time});
    }
}

void measure_memory(MeasureSession& session) {
    const int largest = session.options().quick ? 25 : 28;  // log2 bytes of a vector
    for (int power = 14; power <= largest; ++power) {
        const std::size_t bytes =
            (std::size_t{1} << power) + (session.options().seed - 1) % 7 * (std::size_t{1} << (power - 3));
        const std::size_t n = bytes / sizeof(float);
        std::vector<float> x(n, 1.0F), y(n, 2.0F);
        const int repeats = std::max(1, static_cast<int>((std::size_t{1} << 21) / bytes));
        for (const bool copy : {true, false}) {
            if (MeasureSession::interrupted())
                return;
            int passes = 0;
            std::fill(y.begin(), y.end(), 2.0F);
            const Samples time = session.sample([&] {
                const auto start = Clock::now();
                for (int r = 0; r < repeats; ++r) {
                    if (copy) {
                        std::copy(x.begin(), x.end(), y.begin());
                    } else {
                        for (std::size_t i = 0; i < n; ++i)
                            y[i] += 0.5F * x[i];
                    }
                    x[static_cast<std::size_t>(r) % n] = 1.0F;  // every pass is another one
                    ++passes;
                }
                return us_since(start) / repeats;
            });
            const float right = copy ? 1.0F : 2.0F + 0.5F * static_cast<float>(passes);
            for (const float value : y) {
                if (value != right)
                    throw MeasureError(fmt::format("{} of {} bytes: an element is {}, {} is right",
                                                   copy ? "copy" : "axpy", bytes, value, right));
            }
            const auto vector = static_cast<std::int64_t>(n * sizeof(float));
            session.add({.test = "memory",
                         .what = copy ? "copy" : "axpy",
                         .mode = "burst",
                         .shape = {{"bytes", (copy ? 2 : 3) * vector}, {"working_set", 2 * vector}},
                         .time = time});
        }
    }
}

std::vector<std::int64_t> ring_sizes(const MeasureOptions& options, int ranks) {
    std::vector<std::int64_t> out;
    const std::int64_t unit = 4LL * ranks, last = options.quick ? 1 << 22 : 1 << 26;
    for (std::int64_t bytes = options.seed == 1 ? 1024 : 1024 * 3; bytes <= last; bytes *= 4)
        out.push_back((bytes + unit - 1) / unit * unit);
    return out;
}

void measure_rings(MeasureSession& session) {
    const std::vector<int> groups = session.options().quick ? std::vector<int>{2, 3} : std::vector<int>{2, 3, 4};
    for (const char* link : {"threads", "loopback"}) {
        for (const int ranks : groups) {
            if (MeasureSession::interrupted())
                return;
            const std::vector<std::int64_t> sizes = ring_sizes(session.options(), ranks);
            MeasuredCurve curve;
            curve.collective = "all_reduce";
            curve.datatype = "float";
            curve.link = link;
            curve.ranks = ranks;
            std::vector<Samples> times;
            if (curve.link == "loopback") {
                times = ring_of_processes(session, ranks, sizes);
            } else {
                for (const std::int64_t bytes : sizes) {
                    if (!MeasureSession::interrupted())
                        times.push_back(ring_of_threads(session, ranks, bytes));
                }
            }
            for (std::size_t i = 0; i < times.size(); ++i)
                curve.points.push_back({sizes[i], times[i].median_us, 0});
            if (!curve.points.empty())
                session.add(std::move(curve));
        }
    }
}

}  // namespace

MeasurementFile measure_host(const MeasureOptions& options) {
    MeasurementFile start;
    start.backend = "host";
    start.method = fmt::format("wall clock, {} samples a test after warm-up, median; one thread unless told",
                               options.quick ? "up to 7" : "up to 25");
    std::array<char, 256> host{};
    gethostname(host.data(), host.size() - 1);
    start.devices.push_back({host.data(), processor_name(), "", 0, 0, 0, 0});
    start.libraries.push_back(
        fmt::format("eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION));
    start.notes.push_back(fmt::format("{} processors", std::thread::hardware_concurrency()));
    MeasureSession session(std::move(start), options);
    measure_products(session);
    measure_memory(session);
    measure_rings(session);
    return session.finish();
}

}  // namespace fabricast
