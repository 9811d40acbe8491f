// fabricast nccl: the table nccl-tests would print on this cluster, with what the library would choose and what holds
// each size back. Times come from the engine, one collective alone.
#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "sim/cli/command_line.hpp"
#include "sim/cli/nccl_compression.hpp"
#include "sim/cli/nccl_sizes.hpp"
#include "sim/cli/starter.hpp"
#include "sim/report/page.hpp"
#include "sim/scenario/nearest.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/build_cluster.hpp"
#include "sim/step/collective_time.hpp"

namespace fabricast::cli {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

struct NcclOptions {
    std::string cluster, type = "float";
    Bytes begin = 8, end = Bytes{8} << 30, step = 0;
    double factor = 2;
    CollectiveRequest request;
    std::uint32_t nodes = 0, ranks = 0, ranks_per_node = 0;
    std::vector<Algorithm> algorithms;
    std::vector<Protocol> protocols;
    std::optional<CompressionOptions> compression;
    std::vector<std::string> overrides;
    bool collnet = false, no_pxn = false, steps = false, json = false, csv = false, quiet = false, no_color = false;
};

struct NcclRow {
    TestedSize size;
    CollectiveTime result;
    std::string algorithm, protocol;  ///< "Ring", "LL128"; "hierarchical", "-" for composed ones

    std::optional<Picoseconds> steps;          ///< time step by step, where asked for and possible
    std::optional<CompressedTime> compressed;  ///< the same gradient compressed, where asked for

    double time_s() const { return seconds(result.time); }
};

Options description() {
    Options options;
    options.usage = "fabricast nccl --cluster SCENARIO.yaml|NODE [option]...";
    const auto text = [](const char* name) { return po::value<std::string>()->value_name(name); };
    options.named.add_options()("cluster", text("FILE"),
                                "scenario file (its cluster will do), or the name of a node preset")(
        "nodes", po::value<std::uint32_t>()->value_name("N"), "so many nodes instead of the scenario's")(
        "op", text("NAME"),
        "all_reduce (default), all_gather, reduce_scatter, broadcast, reduce, all_to_all, "
        "send_recv, gather, scatter, barrier")("minbytes,b", text("SIZE"), "first size, 8 by default; 8, 4K, 1M, 8G")(
        "maxbytes,e", text("SIZE"), "last size, 8G")("stepfactor,f", po::value<double>()->value_name("X"),
                                                     "each size is X times the last, 2 by default")(
        "stepbytes,i", text("SIZE"), "or SIZE more than the last")("datatype,d", text("TYPE"), "float by default")(
        "ranks", po::value<std::uint32_t>()->value_name("N"), "the first N GPUs instead of all")(
        "ranks-per-node", po::value<std::uint32_t>()->value_name("K"), "K GPUs of each node")(
        "algo", text("NAME"), "only this algorithm, as NCCL_ALGO")(
        "proto", text("NAME"), "only this protocol, as NCCL_PROTO")("imbalance", po::value<double>()->value_name("X"),
                                                                    "all_to_all: rank 0 receives X times the mean")(
        "hierarchical", "composed: in the node, between nodes, in the node")(
        "collnet", "switches reduce (SHARP) and the library uses it")("no-pxn", "as NCCL_PXN_DISABLE=1")(
        "compression", text("METHOD"),
        "all_reduce: also compressed, fp16, bf16, fp8, int8, int4 or 1-bit-adam; sizes are of FP32 gradients")(
        "tensor", text("CLASS"), "of the gradient: matrix, or embedding, head, vector, which stay FP32")(
        "warm-up", "1-bit-adam has not begun to compress yet")(
        "chunk-steps", "also time every chunk and message, up to 64 ranks, beside the fluid model")(
        "set", po::value<std::vector<std::string>>()->value_name("key=value"),
        "override one key of the scenario; repeatable")("json", "as JSON")("csv", "as CSV")(
        "quiet", "nothing on stderr but errors")("no-color", "no colour, as with NO_COLOR set");
    options.examples =
        "examples\n"
        "  fabricast nccl --cluster my.yaml\n"
        "  fabricast nccl --cluster hgx-h100 --nodes 4 --op all_to_all -b 1M -e 1G\n"
        "  fabricast nccl --cluster my.yaml --ranks-per-node 1 --algo Ring --csv\n"
        "  fabricast nccl --cluster a100-pcie-8 --set cluster.node.socket=\"16 GB/s\" -b 1M -e 1G\n";
    return options;
}

template <typename Value, typename Name>
Value one_of(const std::string& option, const std::string& text, int count, Name name) {
    std::vector<std::string> names;
    const auto lower = [](std::string s) {
        std::transform(s.begin(), s.end(), s.begin(),
                       [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
        return s;
    };
    for (int i = 0; i < count; ++i) {
        names.emplace_back(name(static_cast<Value>(i)));
        if (lower(names.back()) == lower(text))
            return static_cast<Value>(i);
    }
    throw ScenarioError(fmt::format("fabricast nccl: --{} `{}` is not known{}; known are {}", option, text,
                                    did_you_mean(text, names), listed(names)));
}

NcclOptions read(const po::variables_map& values) {
    NcclOptions o;
    const auto text = [&](const char* name) {
        return values.count(name) ? values[name].as<std::string>() : std::string();
    };
    const auto number = [&](const char* name) {
        if (!values.count(name))
            return 0u;
        const auto value = values[name].as<std::uint32_t>();
        if (value == 0)
            throw ScenarioError(fmt::format("fabricast nccl: --{} 0: at least 1", name));
        return value;
    };
    const auto size = [&](const char* name, Bytes otherwise) {
        if (!values.count(name))
            return otherwise;
        const auto bytes = parse_size(text(name));
        if (!bytes || *bytes == 0) {
            throw ScenarioError(
                fmt::format("fabricast nccl: --{} `{}` is not a size; sizes read 8, 4K, 1M, 8G (powers of 1024)", name,
                            text(name)));
        }
        return *bytes;
    };
    o.cluster = text("cluster");
    if (o.cluster.empty())
        throw ScenarioError(
            "fabricast nccl: no cluster given; --cluster takes a scenario file or the name of a node "
            "(`fabricast presets` lists them)");
    o.begin = size("minbytes", o.begin);
    o.end = size("maxbytes", std::max(o.end, o.begin));
    o.step = size("stepbytes", 0);
    if (values.count("stepfactor"))
        o.factor = values["stepfactor"].as<double>();
    if (!(o.factor > 1) || o.factor > 1e6)
        throw ScenarioError(
            fmt::format("fabricast nccl: --stepfactor {}: must be above 1, at most a million", o.factor));
    if (o.begin > o.end)
        throw ScenarioError(fmt::format("fabricast nccl: --minbytes {} is above --maxbytes {}", o.begin, o.end));
    if (o.step > 0 && (o.end - o.begin) / o.step > 10000)
        throw ScenarioError("fabricast nccl: --stepbytes leads to more than 10000 sizes");
    if (values.count("datatype"))
        o.type = text("datatype");
    if (element_bytes(o.type) == 0)
        throw ScenarioError(
            fmt::format("fabricast nccl: --datatype `{}` is not known; known are {}", o.type, known_types()));
    if (values.count("op"))
        o.request.kind = parse_collective(text("op"));
    if (values.count("algo"))
        o.algorithms = {one_of<Algorithm>("algo", text("algo"), static_cast<int>(Algorithm::p2p), algorithm_name)};
    if (values.count("proto"))
        o.protocols = {one_of<Protocol>("proto", text("proto"), static_cast<int>(Protocol::count), protocol_name)};
    if (values.count("imbalance")) {
        o.request.imbalance = values["imbalance"].as<double>();
        if (o.request.kind != Collective::all_to_all)
            throw ScenarioError("fabricast nccl: --imbalance belongs to --op all_to_all");
    }
    o.request.hierarchical = values.count("hierarchical") > 0;
    if (values.count("compression")) {
        if (o.request.kind != Collective::all_reduce || o.request.hierarchical)
            throw ScenarioError("fabricast nccl: --compression belongs to --op all_reduce");
        o.compression = compression_options(text("compression"), values.count("tensor") ? text("tensor") : "matrix",
                                            values.count("warm-up") > 0);
    } else if (values.count("tensor") || values.count("warm-up")) {
        throw ScenarioError("fabricast nccl: --tensor and --warm-up belong to --compression");
    }
    o.nodes = number("nodes");
    o.ranks = number("ranks");
    o.ranks_per_node = number("ranks-per-node");
    if (values.count("set"))
        o.overrides = values["set"].as<std::vector<std::string>>();
    o.collnet = values.count("collnet") > 0;
    o.no_pxn = values.count("no-pxn") > 0;
    o.steps = values.count("chunk-steps") > 0;
    o.json = values.count("json") > 0;
    o.csv = values.count("csv") > 0;
    o.quiet = values.count("quiet") > 0;
    o.no_color = values.count("no-color") > 0;
    if (o.json && o.csv)
        throw ScenarioError("fabricast nccl: --json and --csv exclude each other");
    return o;
}

Scenario scenario_of(const NcclOptions& o) {
    const bool preset = Catalogue::builtin().find_node(o.cluster) != nullptr;
    Scenario s = preset ? parse_scenario(starter_scenario(o.cluster), o.cluster, o.overrides)
                        : load_scenario(o.cluster, o.overrides, Scope::cluster);
    if (o.nodes > 0 && s.fabric_is_listed())
        throw ScenarioError(
            fmt::format("fabricast nccl: --nodes {}: {} lists its {} nodes; --ranks and "
                        "--ranks-per-node take some of them",
                        o.nodes, s.fabric.name, s.nodes));
    if (o.nodes > 0)
        s.nodes = o.nodes;
    if (o.nodes > s.node.nvlink_domain && s.node.nics == 0)
        throw ScenarioError(fmt::format("fabricast nccl: --nodes {}: the nodes of {} have no NIC", o.nodes, o.cluster));
    if (!o.algorithms.empty()) {
        s.comm.algorithms = o.algorithms;
        for (CommSettings::Function& f : s.comm.functions)
            f.algorithms.reset();
    }
    if (!o.protocols.empty()) {
        s.comm.protocols = o.protocols;
        for (CommSettings::Function& f : s.comm.functions)
            f.protocols.reset();
    }
    s.comm.collnet = s.comm.collnet || o.collnet;
    s.comm.pxn = s.comm.pxn && !o.no_pxn;
    return s;
}

std::vector<std::uint32_t> members_of(const NcclOptions& o, const Cluster& cluster) {
    const std::uint32_t local = o.ranks_per_node > 0 ? o.ranks_per_node : cluster.gpus_per_node();
    if (local > cluster.gpus_per_node()) {
        throw ScenarioError(
            fmt::format("fabricast nccl: --ranks-per-node {}: a node has {} GPUs", local, cluster.gpus_per_node()));
    }
    const std::uint32_t most = local * cluster.node_count();
    const std::uint32_t ranks = o.ranks > 0 ? o.ranks : most;
    if (ranks > most) {
        throw ScenarioError(fmt::format("fabricast nccl: --ranks {}: {} nodes with {} ranks each have {}", ranks,
                                        cluster.node_count(), local, most));
    }
    std::vector<std::uint32_t> members;
    for (std::uint32_t r = 0; r < ranks; ++r)
        members.push_back(r / local * cluster.gpus_per_node() + r % local);
    return members;
}

NcclRow row_of(const CollectiveRequest& request, TestedSize size, CollectiveTime result) {
    NcclRow row;
    row.size = size;
    row.algorithm = request.hierarchical ? "hierarchical" : std::string(algorithm_name(result.plan.algorithm));
    row.protocol = request.hierarchical ? "-" : std::string(protocol_name(result.plan.protocol));
    row.result = std::move(result);
    return row;
}

std::vector<NcclRow> all_rows(const NcclOptions& o, const Cluster& cluster, const CommModel& comm, const GpuSpec& gpu,
                              GpuGeneration generation) {
    std::vector<NcclRow> rows;
    const auto ranks = static_cast<std::uint32_t>(o.request.members.size());
    int skipped = 0;
    for (Bytes asked = o.begin; asked <= o.end;) {
        const TestedSize size = tested_size(o.request.kind, asked, element_bytes(o.type), ranks);
        const bool barrier = o.request.kind == Collective::barrier;
        if (size.bytes > 0 || barrier) {
            rows.push_back(row_of(o.request, size, time_collective(cluster, comm, o.request, size.bytes)));
            if (o.steps)
                rows.back().steps = time_in_steps(cluster, comm, generation, o.request, size.bytes);
            if (o.compression)
                rows.back().compressed = time_compressed(cluster, comm, gpu, o.request, *o.compression, size.bytes);
        } else
            ++skipped;
        if (barrier)
            break;
        const Bytes next = o.step > 0 ? asked + o.step : static_cast<Bytes>(static_cast<double>(asked) * o.factor);
        asked = std::max(next, asked + 1);
    }
    if (skipped > 0 && !o.quiet)
        std::fprintf(stderr, "%d sizes are too small for 16 bytes a rank and were left out\n", skipped);
    return rows;
}

std::string title(const NcclOptions& o, const Scenario& s) {
    return fmt::format("{} of {} ranks, {} on {} x {}, {}", collective_name(o.request.kind), o.request.members.size(),
                       s.comm.library, s.nodes, s.node.name, s.gpu.name);
}

/// The stated bound on what the two ways of timing differ by, and what these rows show of it.
std::string bound_text(const std::vector<NcclRow>& rows) {
    double most = 0;
    std::size_t large = 0;
    for (const NcclRow& row : rows) {
        if (row.steps && row.size.bytes >= kStepsBoundFrom) {
            most = std::max(most, std::abs(seconds(*row.steps) / row.time_s() - 1));
            ++large;
        }
    }
    if (large == 0)
        return fmt::format("every step against the fluid model: bound {:.0f} % from 1 MiB on, no such row here",
                           kStepsBound * 100);
    return fmt::format(
        "every step against the fluid model: {} rows of 1 MiB and more at most {:.1f} % apart, bound {:.0f} %", large,
        most * 100, kStepsBound * 100);
}

std::string table_text(const NcclOptions& o, const Scenario& s, const std::vector<NcclRow>& rows,
                       const Terminal& terminal) {
    report::Page page(terminal.color, terminal.unicode, o.compression ? 190 : o.steps ? 164 : 140);
    page.add(title(o, s), report::Paint::bold).end();
    report::Table table(std::string("rrllrrrlllrl") + (o.steps ? "rr" : "") + (o.compression ? "rrrr" : ""));
    std::vector<std::string> head = {"size B",     "count", "type",      "redop",    "time us",  "algbw GB/s",
                                     "busbw GB/s", "",      "algorithm", "protocol", "channels", "limited by"};
    if (o.steps)
        head.insert(head.end(), {"steps us", "off"});
    if (o.compression)
        head.insert(head.end(), {"wire B", "encode us", "in all us", "faster"});
    table.row(head);
    for (const NcclRow& row : rows) {
        std::vector<std::string> cells = {fmt::format("{}", row.size.bytes),
                                          fmt::format("{}", row.size.count),
                                          o.type,
                                          std::string(reduction_text(o.request.kind)),
                                          fmt::format("{:.2f}", row.time_s() * 1e6),
                                          fmt::format("{:.2f}", row.result.alg_bytes_per_s / 1e9),
                                          fmt::format("{:.2f}", row.result.bus_bytes_per_s / 1e9),
                                          "",
                                          row.algorithm,
                                          row.protocol,
                                          fmt::format("{}", row.result.plan.channels),
                                          row.result.limit};
        if (o.steps) {
            cells.push_back(row.steps ? fmt::format("{:.2f}", seconds(*row.steps) * 1e6) : "-");
            cells.push_back(row.steps ? fmt::format("{:+.1f} %", (seconds(*row.steps) / row.time_s() - 1) * 100) : "-");
        }
        if (row.compressed) {
            cells.push_back(fmt::format("{}", row.compressed->wire));
            cells.push_back(fmt::format("{:.2f}", row.compressed->encode_s * 1e6));
            cells.push_back(fmt::format("{:.2f}", row.compressed->time_s * 1e6));
            cells.push_back(fmt::format("{:.2f} x", row.time_s() / row.compressed->time_s));
        }
        table.row(cells);
    }
    table.print(page);
    if (o.steps)
        page.add(bound_text(rows)).end();
    return page.text();
}

std::string table_csv(const NcclOptions& o, const std::vector<NcclRow>& rows) {
    std::string text =
        "size_bytes,count,type,redop,time_us,algbw_gb_per_s,busbw_gb_per_s,algorithm,protocol,channels,latency_us,"
        "limit,steps_us,wire_bytes,encode_us,compressed_us\n";
    for (const NcclRow& row : rows) {
        text += fmt::format("{},{},{},{},{:.3f},{:.4f},{:.4f},{},{},{},{:.3f},{},{},{}\n", row.size.bytes,
                            row.size.count, o.type, reduction_text(o.request.kind), row.time_s() * 1e6,
                            row.result.alg_bytes_per_s / 1e9, row.result.bus_bytes_per_s / 1e9, row.algorithm,
                            row.protocol, row.result.plan.channels, seconds(row.result.plan.latency) * 1e6,
                            row.result.limit, row.steps ? fmt::format("{:.3f}", seconds(*row.steps) * 1e6) : "",
                            row.compressed ? fmt::format("{},{:.3f},{:.3f}", row.compressed->wire,
                                                         row.compressed->encode_s * 1e6, row.compressed->time_s * 1e6)
                                           : ",,");
    }
    return text;
}

std::string table_json(const NcclOptions& o, const Scenario& s, const std::vector<NcclRow>& rows) {
    ordered_json out = {{"schema_version", 1},
                        {"collective", collective_name(o.request.kind)},
                        {"ranks", o.request.members.size()},
                        {"nodes", s.nodes},
                        {"node", s.node.name},
                        {"gpu", s.gpu.name},
                        {"library", s.comm.library},
                        {"notes", s.comm_notes},
                        {"rows", ordered_json::array()}};
    for (const NcclRow& row : rows) {
        out["rows"].push_back({{"size_bytes", row.size.bytes},
                               {"count", row.size.count},
                               {"type", o.type},
                               {"redop", reduction_text(o.request.kind)},
                               {"time_s", row.time_s()},
                               {"algbw_bytes_per_s", row.result.alg_bytes_per_s},
                               {"busbw_bytes_per_s", row.result.bus_bytes_per_s},
                               {"algorithm", row.algorithm},
                               {"protocol", row.protocol},
                               {"channels", row.result.plan.channels},
                               {"latency_s", seconds(row.result.plan.latency)},
                               {"limit", row.result.limit}});
        if (o.steps)
            out["rows"].back()["steps_time_s"] = row.steps ? ordered_json(seconds(*row.steps)) : ordered_json();
        if (row.compressed)
            out["rows"].back()["compressed"] = {{"wire_bytes", row.compressed->wire},
                                                {"encode_s", row.compressed->encode_s},
                                                {"time_s", row.compressed->time_s}};
    }
    if (o.steps)
        out["steps_bound"] = {{"from_bytes", kStepsBoundFrom}, {"share", kStepsBound}};
    return out.dump(2) + "\n";
}

}  // namespace

Options nccl_options() { return description(); }

int nccl(const Arguments& arguments) {
    bool help = false;
    const po::variables_map values = parse(description(), arguments, help);
    if (help)
        return kDone;
    NcclOptions options = read(values);
    const Scenario scenario = scenario_of(options);
    if (!options.quiet) {
        for (const std::string& note : scenario.comm_notes)
            std::fprintf(stderr, "%s\n", note.c_str());
    }
    const Cluster cluster = build_cluster(scenario);
    CommFacts facts = comm_facts(scenario, cluster);
    facts.sharp = facts.sharp || options.collnet;
    options.request.members = members_of(options, cluster);
    std::vector<NcclRow> rows;
    try {
        const CommModel comm(cluster, facts, scenario.comm);
        rows = all_rows(options, cluster, comm, scenario.gpu, facts.generation);
    } catch (const std::invalid_argument& error) {
        throw ScenarioError(fmt::format("fabricast nccl: {}", error.what()));
    }
    print_result(options.json  ? table_json(options, scenario, rows)
                 : options.csv ? table_csv(options, rows)
                               : table_text(options, scenario, rows, stdout_terminal(options.no_color)));
    return kDone;
}

}  // namespace fabricast::cli
