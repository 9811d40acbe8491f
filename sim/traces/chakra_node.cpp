#include "sim/traces/chakra_node.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <protozero/pbf_reader.hpp>

namespace fabricast::traces {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr double kLargestCount = 9007199254740992.0;  ///< 2^53: a double holds all whole numbers up to here
constexpr std::uint32_t kMostDimensions = 32;

std::string_view text_of(pbf_reader& reader) {
    const protozero::data_view view = reader.get_view();
    return {view.data(), view.size()};
}

[[noreturn]] void wrong_type(const char* what, pbf_wire_type type) {
    throw std::runtime_error(fmt::format("{} has wire type {}", what, static_cast<int>(type)));
}

std::uint64_t varint(pbf_reader& reader, const char* what) {
    if (reader.wire_type() != pbf_wire_type::varint)
        wrong_type(what, reader.wire_type());
    return reader.get_uint64();
}

std::string_view bytes(pbf_reader& reader, const char* what) {
    if (reader.wire_type() != pbf_wire_type::length_delimited)
        wrong_type(what, reader.wire_type());
    return text_of(reader);
}

/// An attribute's value: a number, a text or a list of numbers.
struct Value {
    enum class Kind : std::uint8_t { none, whole, negative, real, text, list } kind = Kind::none;
    std::uint64_t whole = 0;
    double real = 0;
    std::string_view text;
};

void set_signed(Value& value, std::int64_t number) {
    value.kind = number < 0 ? Value::Kind::negative : Value::Kind::whole;
    value.whole = static_cast<std::uint64_t>(number);
}

void set_real(Value& value, double number) {
    value.kind = Value::Kind::real;
    value.real = number;
}

/// Arms 3, 5, 7, ... 31 of AttributeProto; even ones are lists.
void read_arm(pbf_reader& reader, Value& value) {
    const pbf_wire_type type = reader.wire_type();
    const auto expect = [&](pbf_wire_type wanted) {
        if (type != wanted)
            wrong_type("an attribute's value", type);
    };
    switch (reader.tag()) {
        case 3: expect(pbf_wire_type::fixed64); return set_real(value, reader.get_double());
        case 5: expect(pbf_wire_type::fixed32); return set_real(value, static_cast<double>(reader.get_float()));
        case 7:
        case 9: expect(pbf_wire_type::varint); return set_signed(value, reader.get_int64());
        case 11:
        case 13:
        case 27:
            expect(pbf_wire_type::varint);
            value.kind = Value::Kind::whole;
            value.whole = reader.get_uint64();
            return;
        case 15:
        case 17: expect(pbf_wire_type::varint); return set_signed(value, reader.get_sint64());
        case 19:
            expect(pbf_wire_type::fixed32);
            value.kind = Value::Kind::whole;
            value.whole = reader.get_fixed32();
            return;
        case 21:
            expect(pbf_wire_type::fixed64);
            value.kind = Value::Kind::whole;
            value.whole = reader.get_fixed64();
            return;
        case 23: expect(pbf_wire_type::fixed32); return set_signed(value, reader.get_sfixed32());
        case 25: expect(pbf_wire_type::fixed64); return set_signed(value, reader.get_sfixed64());
        case 29:
        case 31:
            value.kind = Value::Kind::text;
            value.text = bytes(reader, "an attribute's value");
            return;
        default: break;
    }
    if (reader.tag() >= 4 && reader.tag() <= 32 && reader.tag() % 2 == 0) {
        value.kind = Value::Kind::list;
        value.text = bytes(reader, "an attribute's list");
        return;
    }
    reader.skip();
}

std::uint64_t count_of(const Value& value, std::string_view name) {
    switch (value.kind) {
        case Value::Kind::whole: return value.whole;
        case Value::Kind::real:
            if (value.real >= 0 && value.real <= kLargestCount)
                return static_cast<std::uint64_t>(value.real);
            throw std::runtime_error(fmt::format("attribute {} is {}: a number from 0 is expected", name, value.real));
        case Value::Kind::negative:
            throw std::runtime_error(fmt::format("attribute {} is {}: a number from 0 is expected", name,
                                                 static_cast<std::int64_t>(value.whole)));
        default: break;
    }
    throw std::runtime_error(fmt::format("attribute {} is no number", name));
}

/// Varints of a list message, packed or not.
void read_list(std::string_view list, ChakraNode& node) {
    pbf_reader reader(list.data(), list.size());
    const auto add = [&](std::uint64_t value) {
        if (node.involved_count == kMostDimensions)
            throw std::runtime_error(fmt::format("attribute involved_dim has more than {} entries", kMostDimensions));
        node.involved |= (value != 0 ? 1u : 0u) << node.involved_count++;
    };
    while (reader.next()) {
        if (reader.tag() != 1) {
            reader.skip();
        } else if (reader.wire_type() == pbf_wire_type::length_delimited) {
            for (const std::uint64_t value : reader.get_packed_uint64())
                add(value);
        } else {
            add(varint(reader, "attribute involved_dim"));
        }
    }
}

void read_attribute(std::string_view message, ChakraNode& node) {
    pbf_reader reader(message.data(), message.size());
    std::string_view name;
    Value value;
    while (reader.next()) {
        if (reader.tag() == 1)
            name = bytes(reader, "an attribute's name");
        else
            read_arm(reader, value);
    }
    const auto count = [&](std::uint64_t& into, std::uint32_t bit) {
        into = count_of(value, name);
        node.has |= bit;
    };
    std::uint64_t number = 0;
    if (name == "is_cpu_op") {
        count(number, 0);
        node.cpu = number != 0;
    } else if (name == "num_ops") {
        if (value.kind == Value::Kind::real && value.real >= 0 && value.real <= 1e30) {
            node.ops = value.real;
        } else {
            count(number, 0);
            node.ops = static_cast<double>(number);
        }
        node.has |= ChakraNode::kOps;
    } else if (name == "tensor_size") {
        count(node.tensor_size, ChakraNode::kSize);
    } else if (name == "comm_size") {
        count(node.comm_size, ChakraNode::kCommSize);
    } else if (name == "comm_type") {
        count(node.comm_type, ChakraNode::kCommType);
    } else if (name == "comm_src") {
        count(node.source, ChakraNode::kSource);
    } else if (name == "comm_dst") {
        count(node.destination, ChakraNode::kDestination);
    } else if (name == "comm_tag") {
        count(node.tag, 0);
    } else if (name == "pg_name") {
        if (value.kind == Value::Kind::text)
            node.group = value.text;
        else
            count(node.group_number, ChakraNode::kGroupNumber);
    } else if (name == "involved_dim") {
        if (value.kind != Value::Kind::list)
            throw std::runtime_error("attribute involved_dim is no list");
        node.has |= ChakraNode::kInvolved;
        read_list(value.text, node);
    }
}

void read_parents(pbf_reader& reader, ChakraNode& node) {
    if (reader.wire_type() == pbf_wire_type::length_delimited) {
        for (const std::uint64_t parent : reader.get_packed_uint64())
            node.parents.push_back(parent);
    } else {
        node.parents.push_back(varint(reader, "a dependency"));
    }
}

void decode(std::string_view record, ChakraNode& node) {
    pbf_reader reader(record.data(), record.size());
    while (reader.next()) {
        switch (reader.tag()) {
            case 1: node.id = varint(reader, "the id"); break;
            case 2: node.name = bytes(reader, "the name"); break;
            case 3: {
                const std::uint64_t type = varint(reader, "the type");
                if (type > static_cast<std::uint64_t>(ChakraType::collective))
                    throw std::runtime_error(fmt::format("node type {} is unknown, 0 to 7 are", type));
                node.type = static_cast<ChakraType>(type);
                break;
            }
            case 4:
            case 5: read_parents(reader, node); break;
            case 7: node.duration_us = varint(reader, "the duration"); break;
            case 8: {
                const std::string_view inputs = bytes(reader, "the inputs");
                pbf_reader inside(inputs.data(), inputs.size());
                while (inside.next()) {
                    if (inside.tag() == 1)
                        node.inputs = bytes(inside, "the values of the inputs");
                    else
                        inside.skip();
                }
                break;
            }
            case 10: read_attribute(bytes(reader, "an attribute"), node); break;
            default: reader.skip();
        }
    }
}

}  // namespace

void decode_chakra_node(std::string_view record, ChakraNode& node) {
    std::vector<std::uint64_t> parents = std::move(node.parents);
    parents.clear();
    node = {};
    node.parents = std::move(parents);
    try {
        decode(record, node);
    } catch (const protozero::exception& error) {
        throw std::runtime_error(fmt::format("the record is no message of this format ({})", error.what()));
    }
}

bool is_metadata_node(std::string_view record) {
    bool found = false;
    try {
        pbf_reader reader(record.data(), record.size());
        while (reader.next()) {
            if (reader.tag() == 3 && reader.wire_type() == pbf_wire_type::varint)
                found = reader.get_uint64() == static_cast<std::uint64_t>(ChakraType::metadata);
            else
                reader.skip();
        }
    } catch (const protozero::exception&) {
        return false;
    }
    return found;
}

void check_chakra_metadata(std::string_view record) {
    try {
        pbf_reader reader(record.data(), record.size());
        while (reader.next()) {
            if (reader.tag() > 2 || reader.wire_type() != pbf_wire_type::length_delimited)
                throw std::runtime_error("the first record is no GlobalMetadata; is this a Chakra execution trace?");
            reader.skip();
        }
    } catch (const protozero::exception&) {
        throw std::runtime_error("the first record is no GlobalMetadata; is this a Chakra execution trace?");
    }
}

}  // namespace fabricast::traces
