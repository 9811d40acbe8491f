// The workload text of SimAI and ASTRA-sim 1.0 as data: header and rows. The format is told in simai_reader.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/traces/workload.hpp"

namespace fabricast::traces::simai {

enum class Policy : std::uint8_t { data, model, transformer };
enum class GroupKind : std::uint8_t { tensor, data, expert, data_of_experts, all, count };
/// A collective of a row; none where nothing is moved.
struct Collective {
    std::optional<CollectiveKind> kind;
    GroupKind group = GroupKind::tensor;
    Bytes bytes = 0;  ///< whole buffer
};
struct Part {
    Picoseconds compute = 0;
    Collective collective;
};
struct Row {
    std::string name;
    std::array<Part, 3> parts;  ///< forward, input gradient, weight gradient
    Picoseconds update = 0;
};
struct Header {
    Policy policy = Policy::transformer;
    std::uint32_t tp = 1, ep = 1, pp = 1, gpus = 0;
    double pp_comm = 0;
    std::vector<std::uint32_t> checkpoints, initiates;
};

struct WorkloadText {
    Header header;
    std::vector<Row> rows;
    std::vector<std::string> notes;
};

/// ranks: of the network. Throws ImportError with the line.
WorkloadText read_text(const std::string& path, std::uint32_t ranks);

}  // namespace fabricast::traces::simai
