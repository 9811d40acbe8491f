#include "sim/cli/nccl_compression.hpp"

#include <fmt/format.h>

#include <vector>

#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"

namespace fabricast::cli {
namespace {

template <typename T>
T choose(const char* option, const std::string& text, const std::vector<std::pair<std::string, T>>& known) {
    std::vector<std::string> names;
    for (const auto& [name, value] : known) {
        if (name == text)
            return value;
        names.push_back(name);
    }
    throw ScenarioError(fmt::format("fabricast nccl: --{} `{}` is not known{}; known are {}", option, text,
                                    did_you_mean(text, names), listed(names)));
}

}  // namespace

CompressionOptions compression_options(const std::string& method, const std::string& tensor, bool warming_up) {
    CompressionOptions out;
    std::vector<std::pair<std::string, Compression>> methods;
    for (const Compression one : compressions())
        if (one != Compression::powersgd)  // a matter of shapes, not of elements
            methods.emplace_back(compression_name(one), one);
    out.method = choose<Compression>("compression", method, methods);
    out.tensor = choose<TensorClass>("tensor", tensor,
                                     {{"matrix", TensorClass::matrix},
                                      {"embedding", TensorClass::embedding},
                                      {"head", TensorClass::head},
                                      {"vector", TensorClass::vector}});
    out.warming_up = warming_up;
    return out;
}

CompressedTime time_compressed(const Cluster& cluster, const CommModel& comm, const GpuSpec& gpu,
                               const CollectiveRequest& request, const CompressionOptions& options, Bytes bytes) {
    const CompressedGradient gradient = compress(options.method, options.tensor, bytes / 4, options.warming_up);
    CompressedTime out;
    out.wire = gradient.wire;
    out.encode_s = encode_s(gradient, gpu.hbm_bytes_per_s * gpu.memory.copy);
    CollectiveRequest part = request;
    const auto traffic = [&](Collective kind) {
        part.kind = kind;
        return seconds(time_collective(cluster, comm, part, gradient.wire).time);
    };
    out.time_s =
        out.encode_s + (gradient.all_reduce ? traffic(Collective::all_reduce)
                                            : traffic(Collective::all_to_all) + traffic(Collective::all_gather));
    return out;
}

}  // namespace fabricast::cli
