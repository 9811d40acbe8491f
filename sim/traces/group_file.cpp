#include "sim/traces/group_file.hpp"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topologies/importers/source_text.hpp"

namespace fabricast::traces {
namespace {

using importers::SourceText;
using nlohmann::json;

std::vector<std::uint32_t> ranks_of(const json& list) {
    if (!list.is_array())
        throw std::runtime_error("a list of ranks is expected");
    std::vector<std::uint32_t> members;
    members.reserve(list.size());
    for (const json& item : list) {
        if (!item.is_number_integer() || item < 0 || item > 0x7FFFFFFF)
            throw std::runtime_error(
                fmt::format("rank {} is no whole number from 0", importers::in_quotes(item.dump())));
        members.push_back(item.get<std::uint32_t>());
    }
    return members;
}

}  // namespace

std::uint32_t enter_group(Workload& workload, std::string name, std::vector<std::uint32_t> members,
                          std::uint32_t ranks) {
    if (members.empty())
        throw std::runtime_error("a group without ranks");
    std::vector<std::uint32_t> sorted = members;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.back() >= ranks)
        throw std::runtime_error(fmt::format("rank {} does not exist, the network has {}", sorted.back(), ranks));
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        throw std::runtime_error(fmt::format("rank {} is there twice", *twice));
    if (members.size() == ranks)
        return 0;
    workload.groups.push_back({std::move(name), std::move(members)});
    return static_cast<std::uint32_t>(workload.groups.size() - 1);
}

GroupNames read_group_file(const std::string& path, Workload& workload, std::uint32_t ranks) {
    const SourceText source = SourceText::from_file(path);
    std::map<std::string, int> seen;
    std::string twice;
    int depth = 0;
    const json::parser_callback_t watch = [&](int, json::parse_event_t event, json& parsed) {
        depth += event == json::parse_event_t::object_start ? 1 : event == json::parse_event_t::object_end ? -1 : 0;
        if (event == json::parse_event_t::key && depth == 1 && seen[parsed.get<std::string>()]++ > 0)
            twice = parsed.get<std::string>();
        return true;
    };
    json root;
    try {
        root = json::parse(source.text(), watch);
    } catch (const json::parse_error& error) {
        const std::size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, source.text().size());
        source.refuse(source.line_number(at), "no JSON; groups are written {\"1\": [0, 1], \"2\": [2, 3]}");
    }
    if (!root.is_object())
        source.refuse(1, "groups are written {\"1\": [0, 1], \"2\": [2, 3]}");
    if (!twice.empty())
        source.refuse(0, fmt::format("group {} is there twice", importers::in_quotes(twice)));
    GroupNames names;
    for (const auto& entry : root.items()) {
        const std::string& name = entry.key();
        const auto refuse = [&](const std::string& sentence) {
            const std::size_t at = source.text().find('"' + name + '"');
            source.refuse(at == std::string_view::npos ? 0 : source.line_number(at), sentence);
        };
        const auto number = importers::to_unsigned(name);
        if (!number || *number > 0x7FFFFFFF)
            refuse(fmt::format("group {}: a whole number is expected as its name", importers::in_quotes(name)));
        if (*number == 0)
            refuse("group 0 is kept for all ranks");
        try {
            names[std::to_string(*number)] = enter_group(workload, name, ranks_of(entry.value()), ranks);
        } catch (const std::runtime_error& error) {
            refuse(fmt::format("group {}: {}", name, error.what()));
        }
    }
    return names;
}

bool read_process_groups(std::string_view inputs, Workload& workload, std::uint32_t ranks, GroupNames& names) {
    if (inputs.size() < 4)
        return false;
    std::string text(inputs.substr(2, inputs.size() - 4));
    json list = json::parse(text, nullptr, false);
    if (list.is_discarded()) {  // the text may be quoted once more
        std::string plain;
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\\' && i + 1 < text.size())
                ++i;
            plain.push_back(text[i]);
        }
        list = json::parse(plain, nullptr, false);
    }
    if (!list.is_array())
        return false;
    bool found = false;
    for (const json& item : list) {
        if (!item.is_object() || !item.contains("pg_name") || !item.contains("ranks"))
            continue;
        const json& name = item["pg_name"];
        const std::string text_name = name.is_string() ? name.get<std::string>() : name.dump();
        std::vector<std::uint32_t> members = ranks_of(item["ranks"]);
        std::uint32_t group = 0;
        try {
            const auto known = std::find_if(
                workload.groups.begin(), workload.groups.end(),
                [&](const TraceGroup& other) { return other.name == text_name && other.members == members; });
            group = members.empty()                  ? 0
                    : known != workload.groups.end() ? static_cast<std::uint32_t>(known - workload.groups.begin())
                                                     : enter_group(workload, text_name, std::move(members), ranks);
        } catch (const std::runtime_error& error) {
            throw std::runtime_error(
                fmt::format("process group {}: {}", importers::in_quotes(text_name), error.what()));
        }
        names.insert_or_assign(text_name, group);
        found = true;
    }
    return found;
}

}  // namespace fabricast::traces
