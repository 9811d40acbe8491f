#include "sim/plan/facts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "models/hardware/read_catalogue.hpp"
#include "sim/plan/code.hpp"
#include "sim/scenario/calibration.hpp"
#include "sim/scenario/check.hpp"
#include "sim/scenario/document.hpp"

namespace fabricast::plan {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostTold = 3, kLongest = 80;

std::uint64_t fnv(std::string_view text, std::uint64_t hash = 0xcbf29ce484222325ull) {
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    return hash;
}

// Days and cost come from it, which conditions may ask for.
bool is_price(const std::string& path) {
    return path == "run.tokens" || path == "run.price" || path.starts_with("plan.price");
}

// Not what changes the table alone.
bool acts(const std::string& path) {
    for (const char* exact : {"name", "extends", "plan.where", "plan.by", "plan.top"}) {
        if (path == exact)
            return false;
    }
    return !path.starts_with("expect.") && !is_price(path);
}

// As typed; of a list its values, of a file its contents beside the name.
std::string said(const Answer& answer) {
    std::string text = answer.text;
    if (text.empty() && !answer.numbers.empty())
        text = fmt::format("[{}]", fmt::join(answer.numbers, ", "));
    if (text.empty() && !answer.words.empty())
        text = fmt::format("[{}]", fmt::join(answer.words, ", "));
    if (answer.field->kind != FieldKind::text || text.empty())
        return text;
    std::error_code error;
    const fs::path folder = answer.place.line > 0 ? fs::path(answer.place.source).parent_path() : fs::path();
    const fs::path file = folder / text;
    if (!fs::is_regular_file(file, error))
        return text;
    std::ostringstream contents;
    contents << std::ifstream(file, std::ios::binary).rdbuf();
    return fmt::format("{} ({})", fs::path(text).filename().string(), digest(contents.view()));
}

// Keys that are said and wanted, with what they say.
std::map<std::string, std::string> keys_of(const PlanSource& source, bool wanted(const std::string& path)) {
    Diagnostics diagnostics;
    std::string text = source.text;
    if (text.empty())
        read_file(source.file, {source.file, 0, 0}, text, diagnostics);
    diagnostics.throw_if_any();
    const Value root = assemble(text, source.file, source.overrides);
    std::vector<std::string> notes;
    const Answers answers = check(root, diagnostics, notes);
    diagnostics.throw_if_any();
    std::map<std::string, std::string> out;
    for (const auto& [path, answer] : answers.below("")) {
        const FieldKind kind = answer->field->kind;
        if (kind != FieldKind::section && kind != FieldKind::open_map && wanted(path))
            out[path] = kind == FieldKind::list ? fmt::format("{} entries", answer->integer) : said(*answer);
    }
    return out;
}

void add_constants(const PlanSource& source, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
                   std::map<std::string, std::string>& out) {
    for (const auto& [name, text] : catalogue_files())
        out[fmt::format("the catalogue's {}", name)] = digest(text);
    if (source.calibration) {
        Calibration plain = *source.calibration;
        plain.file.clear();
        out["the calibration"] = digest(calibration_yaml(plain));
    }
    for (std::size_t c = 0; c < clusters.size(); ++c) {
        for (const Assumption& assumption : clusters[c]->scenario().assumptions) {
            if (acts(assumption.what))
                out[c == 0 ? assumption.what : fmt::format("{} of cluster {}", assumption.what, c + 1)] +=
                    assumption.value + ";";
        }
    }
}

void append(Facts& facts, const std::string& part, const std::map<std::string, std::string>& list) {
    for (const auto& [key, value] : list)
        facts.push_back({part, key, value});
}

std::string shortened(const std::string& text) {
    return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

std::string difference(const std::string& part, const std::string& key, const std::string* there,
                       const std::string* here) {
    if (part == "code")
        return "another build of fabricast wrote it, whose code may forecast otherwise";
    if (part == "program")
        return fmt::format("fabricast {} wrote it, this is {}, which may forecast otherwise", *there, *here);
    const auto value = [](const std::string* text) { return text == nullptr ? "not said" : shortened(*text); };
    std::string what = part == "space" ? fmt::format("the list of {}", key) : key;
    if (part == "shard")
        what = key == "number"   ? "the shard"
               : key == "shards" ? "the number of shards"
               : key == "top"    ? "plan.top"
                                 : key;
    return fmt::format("{} is {} there and {} here", what, value(there), value(here));
}

}  // namespace

std::string digest(std::string_view text) { return fmt::format("{:016x}", fnv(text)); }

std::string digest(const Facts& facts) {
    std::uint64_t hash = fnv("");
    for (const Fact& fact : facts)
        hash = fnv(fmt::format("{}\t{}\t{}\n", fact.part, fact.key, fact.value), hash);
    return fmt::format("{:016x}", hash);
}

Facts facts_of(const PlanSource& source, const std::vector<std::unique_ptr<PlanCluster>>& clusters,
               const PlanSpace& space) {
    std::map<std::string, std::string> constants, dimensions;
    add_constants(source, clusters, constants);
    for (std::size_t d = 0; d < kDimensions; ++d) {
        const auto dimension = static_cast<Dimension>(d);
        std::vector<std::string> values;
        for (std::uint32_t v = 0; v < space.values(dimension); ++v)
            values.push_back(space.value_text(dimension, v));
        dimensions[std::string(dimension_name(dimension))] = fmt::format("[{}]", fmt::join(values, ", "));
    }
    Facts out;
    append(out, "code", {{"sources", kCode}});
    append(out, "constants", constants);
    append(out, "program", {{"version", FABRICAST_VERSION}});
    append(out, "scenario", keys_of(source, acts));
    append(out, "space", dimensions);
    return out;
}

Facts shard_facts(const PlanSource& source, const SearchOptions& search, const std::vector<std::string>& where) {
    Facts out = {{"shard", "conditions", fmt::format("[{}]", fmt::join(where, ", "))},
                 {"shard", "number", std::to_string(search.shard)},
                 {"shard", "pruning", search.prune ? "on" : "off"},
                 {"shard", "shards", std::to_string(search.shards)},
                 {"shard", "top", std::to_string(search.top)}};
    append(out, "shard", keys_of(source, is_price));
    return out;
}

std::string differences(const Facts& there, const Facts& here) {
    const auto shard = [](const Facts& facts) {
        return std::any_of(facts.begin(), facts.end(), [](const Fact& fact) { return fact.part == "shard"; });
    };
    if (shard(there) != shard(here))
        return fmt::format("it is of {} there and of {} here", shard(there) ? "a shard" : "the whole plan",
                           shard(here) ? "a shard" : "the whole plan");
    std::map<std::pair<std::string, std::string>, std::pair<const std::string*, const std::string*>> all;
    for (const Fact& fact : there)
        all[{fact.part, fact.key}].first = &fact.value;
    for (const Fact& fact : here)
        all[{fact.part, fact.key}].second = &fact.value;
    // The first part that differs: what the user typed says more than what follows from it.
    std::vector<std::string> told;
    std::size_t count = 0;
    for (const char* part : {"program", "scenario", "shard", "space", "constants", "code"}) {
        for (const auto& [key, values] : all) {
            const auto& [a, b] = values;
            if (key.first != part || (a != nullptr && b != nullptr && *a == *b))
                continue;
            if (told.size() < kMostTold)
                told.push_back(difference(key.first, key.second, a, b));
            ++count;
        }
        if (!told.empty())
            break;
    }
    if (count > told.size())
        told.push_back(fmt::format("{} more differ", count - told.size()));
    return fmt::format("{}", fmt::join(told, "; "));
}

}  // namespace fabricast::plan
