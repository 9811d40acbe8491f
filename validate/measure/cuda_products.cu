// Matrix products of one GPU; see cuda_backend.hpp.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "validate/measure/cuda_device.cuh"

namespace fabricast::cuda {
namespace {

void check_lt(cublasStatus_t code, const char* what) {
    if (code != CUBLAS_STATUS_SUCCESS)
        throw MeasureError(std::string("cuBLASLt: ") + what + ": " + cublasLtGetStatusString(code));
}
#define FABRICAST_LT_CHECK(call) check_lt((call), #call)

struct Type {
    cudaDataType_t operand, result;
    cublasComputeType_t compute;
    std::size_t operand_bytes, result_bytes;
};

Type type_named(const std::string& what) {
    if (what == "fp16")
        return {CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 2, 2};
    if (what == "tf32")
        return {CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, 4, 4};
    if (what == "fp8")
        return {CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 1, 2};
    return {CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, 2, 2};
}

}  // namespace

// C[m,n] = A[m,k] B[n,k]^T, rows of A and B contiguous: what a linear layer's forward is, and all that fp8 has kernels for. In
// the library's words: columns, A transposed.
struct Product::Parts {
    std::string what;
    ProductShape shape;
    Type type;
    std::uint64_t seed;
    Memory a, b, c, work, ones;
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t layout[3] = {};
    cublasLtMatmulAlgo_t algorithm = {};
    float one = 1, zero = 0;

    ~Parts() {
        for (cublasLtMatrixLayout_t one_layout : layout) {
            if (one_layout != nullptr)
                cublasLtMatrixLayoutDestroy(one_layout);
        }
        if (operation != nullptr)
            cublasLtMatmulDescDestroy(operation);
        if (handle != nullptr)
            cublasLtDestroy(handle);
    }
    void set_up();
    double operand(const Memory& from, std::size_t i) const {
        return random_eighth(&from == &a ? seed : seed + (std::uint64_t{1} << 40), i);
    }
};

void Product::Parts::set_up() {
    constexpr std::size_t kWork = 64 << 20;
    const auto elements = [&](std::int64_t rows, std::int64_t columns) {
        return static_cast<std::size_t>(rows * columns * shape.batch);
    };
    a = Memory(elements(shape.m, shape.k) * type.operand_bytes);
    b = Memory(elements(shape.n, shape.k) * type.operand_bytes);
    c = Memory(elements(shape.m, shape.n) * type.result_bytes);
    work = Memory(kWork);
    for (const auto& [memory, own] :
         {std::pair<const Memory*, std::uint64_t>{&a, seed}, {&b, seed + (std::uint64_t{1} << 40)}}) {
        if (what == "bf16")
            fill<__nv_bfloat16>(*memory, own);
        else if (what == "fp16")
            fill<__half>(*memory, own);
        else if (what == "fp8")
            fill<__nv_fp8_e4m3>(*memory, own);
        else
            fill<float>(*memory, own);
    }
    FABRICAST_LT_CHECK(cublasLtCreate(&handle));
    FABRICAST_LT_CHECK(cublasLtMatmulDescCreate(&operation, type.compute, CUDA_R_32F));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    FABRICAST_LT_CHECK(
        cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    if (what == "fp8") {
        ones = Memory(sizeof(float));
        FABRICAST_CUDA_CHECK(cudaMemcpy(ones.as<void>(), &one, sizeof one, cudaMemcpyHostToDevice));
        const float* const scale = ones.as<float>();
        for (const auto attribute : {CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER})
            FABRICAST_LT_CHECK(cublasLtMatmulDescSetAttribute(operation, attribute, &scale, sizeof scale));
    }
    const auto rows = static_cast<std::uint64_t>(shape.m), columns = static_cast<std::uint64_t>(shape.n);
    const auto depth = static_cast<std::uint64_t>(shape.k);
    FABRICAST_LT_CHECK(cublasLtMatrixLayoutCreate(&layout[0], type.operand, depth, rows, shape.k));
    FABRICAST_LT_CHECK(cublasLtMatrixLayoutCreate(&layout[1], type.operand, depth, columns, shape.k));
    FABRICAST_LT_CHECK(cublasLtMatrixLayoutCreate(&layout[2], type.result, rows, columns, shape.m));
    if (shape.batch > 1) {
        const auto count = static_cast<std::int32_t>(shape.batch);
        const std::int64_t strides[3] = {shape.m * shape.k, shape.n * shape.k, shape.m * shape.n};
        for (int i = 0; i < 3; ++i) {
            FABRICAST_LT_CHECK(
                cublasLtMatrixLayoutSetAttribute(layout[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
            FABRICAST_LT_CHECK(cublasLtMatrixLayoutSetAttribute(layout[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                                &strides[i], sizeof strides[i]));
        }
    }
    cublasLtMatmulPreference_t preference = nullptr;
    FABRICAST_LT_CHECK(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t most = kWork;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    cublasLtMatmulHeuristicResult_t best = {};
    int found = 0;
    const cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(handle, operation, layout[0], layout[1], layout[2],
                                                               layout[2], preference, 1, &best, &found);
    cublasLtMatmulPreferenceDestroy(preference);
    if (code != CUBLAS_STATUS_SUCCESS || found == 0)
        throw MeasureError("cuBLASLt has no kernel for " + what + " products of this shape on this GPU");
    algorithm = best.algo;
    FABRICAST_CUDA_CHECK(cudaDeviceSynchronize());
}

Product::Product(const std::string& what, ProductShape shape, std::uint64_t seed) : parts_(new Parts) {
    parts_->what = what;
    parts_->shape = shape;
    parts_->type = type_named(what);
    parts_->seed = seed;
    try {
        parts_->set_up();
    } catch (...) {
        delete parts_;
        throw;
    }
}
Product::~Product() { delete parts_; }
Product::Product(Product&& other) noexcept : parts_(std::exchange(other.parts_, nullptr)) {}

void Product::launch(cudaStream_t stream) const {
    const Parts& p = *parts_;
    FABRICAST_LT_CHECK(cublasLtMatmul(p.handle, p.operation, &p.one, p.a.as<void>(), p.layout[0], p.b.as<void>(),
                                      p.layout[1], &p.zero, p.c.as<void>(), p.layout[2], p.c.as<void>(), p.layout[2],
                                      &p.algorithm, p.work.as<void>(), p.work.bytes(), stream));
}

void Product::check() const {
    const Parts& p = *parts_;
    const ProductShape& s = p.shape;
    FABRICAST_CUDA_CHECK(cudaDeviceSynchronize());
    for (std::uint64_t sample = 0; sample < 16; ++sample) {
        const auto entry =
            static_cast<std::size_t>(mixed(p.seed + sample) % static_cast<std::uint64_t>(s.m * s.n * s.batch));
        const std::size_t batch = entry / static_cast<std::size_t>(s.m * s.n),
                          at = entry % static_cast<std::size_t>(s.m * s.n);
        const std::size_t row = at % static_cast<std::size_t>(s.m), column = at / static_cast<std::size_t>(s.m);
        double exact = 0;
        for (std::size_t l = 0; l < static_cast<std::size_t>(s.k); ++l) {
            const std::size_t of_a = (batch * static_cast<std::size_t>(s.m) + row) * static_cast<std::size_t>(s.k) + l;
            const std::size_t of_b =
                (batch * static_cast<std::size_t>(s.n) + column) * static_cast<std::size_t>(s.k) + l;
            exact += p.operand(p.a, of_a) * p.operand(p.b, of_b);
        }
        double value = 0;
        if (p.type.result == CUDA_R_32F) {
            float raw = 0;
            FABRICAST_CUDA_CHECK(cudaMemcpy(&raw, p.c.as<float>() + entry, sizeof raw, cudaMemcpyDeviceToHost));
            value = raw;
        } else if (p.type.result == CUDA_R_16F) {
            __half raw;
            FABRICAST_CUDA_CHECK(cudaMemcpy(&raw, p.c.as<__half>() + entry, sizeof raw, cudaMemcpyDeviceToHost));
            value = __half2float(raw);
        } else {
            __nv_bfloat16 raw;
            FABRICAST_CUDA_CHECK(cudaMemcpy(&raw, p.c.as<__nv_bfloat16>() + entry, sizeof raw, cudaMemcpyDeviceToHost));
            value = __bfloat162float(raw);
        }
        // operands are exact in every type: what is left is the rounding of the result
        if (!(std::abs(value - exact) <= 0.01 * std::abs(exact) + 0.01 * std::sqrt(static_cast<double>(s.k))))
            throw MeasureError("gemm " + p.what + " " + std::to_string(s.m) + " x " + std::to_string(s.n) + " x " +
                               std::to_string(s.k) + ": an entry is " + std::to_string(value) + ", " +
                               std::to_string(exact) + " is right");
    }
}

namespace {

/// Forward, data and weight gradients of layers of 1k to 8k, tensor-parallel shares, heads; small and skinny ones.
std::vector<ProductShape> training_shapes(const MeasureOptions& options) {
    std::vector<ProductShape> out;
    for (const std::int64_t edge : {256, 512, 1024, 2048, 4096, 8192})
        out.push_back({edge, edge, edge});
    out.insert(out.end(), {{8192, 1024, 8192},
                           {8192, 8192, 1024},
                           {8192, 3584, 8192},
                           {8192, 8192, 3584},
                           {4096, 12288, 4096},
                           {4096, 4096, 12288},
                           {4096, 1024, 4096},
                           {4096, 4096, 128},
                           {128, 4096, 4096},
                           {4096, 128, 4096},
                           {16, 8192, 8192},
                           {1024, 1536, 3072}});
    if (!options.quick)
        out.insert(out.end(), {{16384, 16384, 8192},
                               {8192, 28672, 8192},
                               {8192, 8192, 28672},
                               {4096, 16000, 4096},
                               {2048, 6144, 2048},
                               {2048, 2048, 8192},
                               {64, 8192, 8192},
                               {512, 8192, 8192},
                               {4097, 4096, 4096},
                               {1025, 4096, 4096}});
    for (int i = 0; options.seed != 1 && i < 12; ++i) {
        const auto edge = [&](std::uint64_t salt) {
            return static_cast<std::int64_t>(64)
                   << (mixed(options.seed * 64 + static_cast<std::uint64_t>(i) * 4 + salt) % 8);
        };
        out.push_back({edge(0), edge(1), edge(2)});
    }
    return out;
}

void add_product(MeasureSession& session, const std::string& what, const ProductShape& s, const char* test,
                 const char* mode, Samples time) {
    MeasuredPoint point;
    point.test = test;
    point.what = what;
    point.mode = mode;
    point.shape = {{"m", s.m}, {"n", s.n}, {"k", s.k}};
    if (s.batch > 1)
        point.shape["batch"] = s.batch;
    point.time = time;
    session.add(std::move(point));
}

int repeats_for(const ProductShape& s) {
    const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
                         static_cast<double>(s.batch);
    return std::clamp(static_cast<int>(2e12 / flops), 2, 50);
}

/// A loop long enough for clocks and power to settle; the second half counts.
Samples sustained(const MeasureSession& session, const Product& product, const Stream& stream, double burst_us) {
    const double seconds = session.options().quick ? 0.3 : 1.0;
    const int batch = std::max(1, static_cast<int>(2e4 / burst_us));
    std::vector<double> us;
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed = [&] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    while ((elapsed() < seconds || us.empty()) && !MeasureSession::interrupted()) {
        const double one = time_us(stream.get(), batch, [&] { product.launch(stream.get()); });
        if (elapsed() > seconds / 2)
            us.push_back(one);
    }
    if (us.empty())
        us.push_back(burst_us);
    return samples_of(std::move(us));
}

}  // namespace

void measure_products(MeasureSession& session) {
    const Stream stream;
    for (const char* type : {"bf16", "fp16", "tf32", "fp8"}) {
        const std::string what = type;
        for (const ProductShape& shape : training_shapes(session.options())) {
            const bool all_shapes = what == "bf16" || what == "fp8";
            const bool big = std::min({shape.m, shape.n, shape.k}) >= 1024;
            if (MeasureSession::interrupted())
                return;
            if ((!all_shapes && !big) || (what == "fp8" && (shape.m % 16 != 0 || shape.n % 16 != 0)))
                continue;
            try {
                const Product product(what, shape, session.options().seed);
                const int repeats = repeats_for(shape);
                const Samples burst = session.sample(
                    [&] { return time_us(stream.get(), repeats, [&] { product.launch(stream.get()); }); });
                product.check();
                add_product(session, what, shape, "gemm", "burst", burst);
                if (big && what == "bf16" && !MeasureSession::interrupted())
                    add_product(session, what, shape, "gemm", "sustained",
                                sustained(session, product, stream, burst.median_us));
            } catch (const MeasureError& error) {
                if (std::strstr(error.what(), "no kernel") == nullptr)
                    throw;
                session.note(error.what());
                if (what == "fp8")
                    break;  // a GPU without the type
            }
        }
    }
    // Unfused attention: 32 heads of 128, scores and their use.
    for (const std::int64_t sequence : {1024, 2048, 4096}) {
        for (const ProductShape& shape :
             {ProductShape{sequence, sequence, 128, 32}, ProductShape{sequence, 128, sequence, 32}}) {
            if (MeasureSession::interrupted())
                return;
            const Product product("bf16", shape, session.options().seed);
            const Samples time = session.sample(
                [&] { return time_us(stream.get(), repeats_for(shape), [&] { product.launch(stream.get()); }); });
            product.check();
            add_product(session, "bf16", shape, "gemm", "burst", time);
        }
    }
}

}  // namespace fabricast::cuda
