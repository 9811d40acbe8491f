// Decodes one record of a Chakra execution trace (MLCommons Chakra schema, .proto of version 1.0.0).
//
//   Node            1 id, 2 name, 3 type, 4 ctrl_deps, 5 data_deps (packed or not), 6 start, 7 duration in us,
//                   8 inputs {1 values}, 10 attributes
//   AttributeProto  1 name, value in one of the numeric arms 3..27 (each even successor is the list form), 29 string,
//                   31 bytes
//   type            0 invalid, 1 metadata, 2 memory load, 3 memory store, 4 compute, 5 send, 6 receive, 7 collective
// Writers disagree about the arm of a number (int64, uint64, int32, bool), so any numeric arm is taken for any numeric
// attribute. What was not written stays at its default; `has` tells what was.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace fabricast::traces {

enum class ChakraType : std::uint8_t {
    invalid,
    metadata,
    memory_load,
    memory_store,
    compute,
    send,
    receive,
    collective
};

struct ChakraNode {
    enum Has : std::uint32_t {
        kSize = 1,
        kCommSize = 2,
        kOps = 4,
        kCommType = 8,
        kSource = 16,
        kDestination = 32,
        kInvolved = 64,
        kGroupNumber = 128  ///< pg_name came as a number
    };
    std::uint64_t id = 0;
    std::string_view name;
    ChakraType type = ChakraType::invalid;
    std::uint64_t duration_us = 0;
    bool cpu = false;
    std::uint32_t has = 0;
    double ops = 0;
    std::uint64_t tensor_size = 0, comm_size = 0, comm_type = 0, source = 0, destination = 0, tag = 0, group_number = 0;
    std::string_view group;      ///< pg_name
    std::string_view inputs;     ///< values of the inputs: process groups of metadata nodes
    std::uint32_t involved = 0;  ///< involved_dim as a bit mask
    std::uint32_t involved_count = 0;
    std::vector<std::uint64_t> parents;  ///< ids, both kinds
};

/// Fills `node` (its vector is reused). Texts point into `record`. Throws std::runtime_error with a sentence for what is
/// no such message or holds an impossible value.
void decode_chakra_node(std::string_view record, ChakraNode& node);

/// True for a metadata node; false for damaged records too, which decode_chakra_node refuses.
bool is_metadata_node(std::string_view record);

/// Throws std::runtime_error where the record is no GlobalMetadata.
void check_chakra_metadata(std::string_view record);

}  // namespace fabricast::traces
