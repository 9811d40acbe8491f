// Writes Chakra execution traces: what the tests and benchmarks of sim/traces share.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <protozero/pbf_writer.hpp>

namespace fabricast::traces::test {

/// Node types and collective types of the schema.
enum Type : int { kInvalid = 0, kMetadata, kLoad, kStore, kCompute, kSend, kReceive, kCollective };
enum Comm : int {
    kAllReduce = 0,
    kReduce,
    kAllGather,
    kGather,
    kScatter,
    kBroadcast,
    kAllToAll,
    kReduceScatter,
    kBarrier = 9
};

/// A folder that goes away.
class Folder {
public:
    Folder() {
        std::string pattern = (std::filesystem::temp_directory_path() / "fabricast-traces-XXXXXX").string();
        if (mkdtemp(pattern.data()) != nullptr)
            path_ = pattern;
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string path(const std::string& name) const { return (path_ / name).string(); }
    std::string write(const std::string& name, const std::string& bytes) const {
        std::ofstream(path_ / name, std::ios::binary) << bytes;
        return path(name);
    }

private:
    std::filesystem::path path_;
};

/// One record, built field by field.
class NodeText {
public:
    NodeText(std::uint64_t id, const std::string& name, int type) {
        node().add_uint64(1, id);
        node().add_string(2, name);
        node().add_enum(3, type);
    }
    NodeText& after(const std::vector<std::uint64_t>& parents, bool control = false, bool packed = true) {
        if (packed) {
            node().add_packed_uint64(control ? 4 : 5, parents.begin(), parents.end());
        } else {
            for (const std::uint64_t parent : parents)
                node().add_uint64(control ? 4 : 5, parent);
        }
        return *this;
    }
    NodeText& takes(std::uint64_t microseconds) {
        node().add_uint64(7, microseconds);
        return *this;
    }
    /// A number as int64; `arm` another of the schema's varint arms.
    NodeText& with(const std::string& name, std::int64_t value, int arm = 9) {
        return attribute(name, [&](protozero::pbf_writer& w) { w.add_int64(static_cast<std::uint32_t>(arm), value); });
    }
    NodeText& with(const std::string& name, const std::string& value) {
        return attribute(name, [&](protozero::pbf_writer& w) { w.add_string(29, value); });
    }
    template <typename Write>
    NodeText& attribute(const std::string& name, Write write) {
        std::string text;
        protozero::pbf_writer writer(text);
        writer.add_string(1, name);
        write(writer);
        node().add_message(10, text);
        return *this;
    }
    NodeText& collective(int type, std::int64_t bytes, const std::string& group = "") {
        with("is_cpu_op", 0, 27).with("comm_type", type).with("comm_size", bytes);
        return group.empty() ? *this : with("pg_name", group);
    }
    NodeText& inputs(const std::string& values) {
        std::string text;
        protozero::pbf_writer(text).add_string(1, values);
        node().add_message(8, text);
        return *this;
    }
    const std::string& text() const { return text_; }

private:
    protozero::pbf_writer node() { return protozero::pbf_writer(text_); }
    std::string text_;
};

/// The bytes of a trace file.
class TraceText {
public:
    TraceText() {
        std::string metadata;
        protozero::pbf_writer(metadata).add_string(1, "0.0.4");
        record(metadata);
    }
    TraceText& add(const NodeText& node) {
        record(node.text());
        return *this;
    }
    void record(const std::string& message) {
        std::size_t length = message.size();
        for (; length > 127; length >>= 7)
            bytes_.push_back(static_cast<char>(length | 128));
        bytes_.push_back(static_cast<char>(length));
        bytes_ += message;
    }
    const std::string& bytes() const { return bytes_; }

private:
    std::string bytes_;
};

/// A training step: `layers` of attention and MLP, forward 3 ms and backward 6 ms each, a 64 MiB all-reduce of the
/// tensor-parallel group after each, a 200 MiB all-reduce of the data-parallel group after each layer of backward. Ranks
/// of a tensor-parallel group follow one another. Writes PREFIX.*.et and PREFIX-groups.json; returns the number of bytes.
inline std::size_t write_training_step(const std::string& prefix, std::uint32_t ranks, std::uint32_t tp, int layers) {
    const std::uint32_t dp = ranks / tp;
    std::string groups = "{";
    for (std::uint32_t g = 0; g < dp + tp; ++g) {
        groups += (g > 0 ? ", \"" : "\"") + std::to_string(g + 1) + "\": [";
        const std::uint32_t members = g < dp ? tp : dp;
        for (std::uint32_t i = 0; i < members; ++i)
            groups += (i > 0 ? "," : "") + std::to_string(g < dp ? g * tp + i : i * tp + g - dp);
        groups += "]";
    }
    std::ofstream(prefix + "-groups.json") << groups << "}";
    std::size_t written = 0;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        const std::string tensor = std::to_string(1 + rank / tp), data = std::to_string(1 + dp + rank % tp);
        TraceText trace;
        std::uint64_t id = 0, last = 0;
        const auto compute = [&](const std::string& name, std::uint64_t us) {
            NodeText node(id, name, kCompute);
            if (id > 0)
                node.after({last});
            node.takes(us).with("is_cpu_op", 0, 27).with("num_ops", 1).with("tensor_size", 1);
            trace.add(node);
            last = id++;
        };
        const auto reduce = [&](const std::string& name, std::int64_t bytes, const std::string& group) {
            trace.add(NodeText(id, name, kCollective).after({last}).collective(kAllReduce, bytes, group));
            return id++;
        };
        for (int pass = 0; pass < 2; ++pass) {
            const std::string way = pass == 0 ? "fwd" : "bwd";
            for (int layer = 0; layer < layers; ++layer) {
                for (const char* part : {".attn", ".mlp"}) {
                    compute(way + std::to_string(layer) + part, pass == 0 ? 3000 : 6000);
                    last = reduce(way + std::to_string(layer) + part + ".tpAR", 64 << 20, tensor);
                }
                if (pass == 1)
                    reduce("dpAR" + std::to_string(layer), 200 << 20, data);
            }
        }
        written += trace.bytes().size();
        std::ofstream(prefix + "." + std::to_string(rank) + ".et", std::ios::binary) << trace.bytes();
    }
    return written;
}

inline std::string network_text(const std::string& kinds, const std::string& counts, const std::string& bandwidths,
                                const std::string& latencies) {
    return "topology: [" + kinds + "]\nnpus_count: [" + counts + "]\nbandwidth: [" + bandwidths + "]\nlatency: [" +
           latencies + "]\n";
}

}  // namespace fabricast::traces::test
