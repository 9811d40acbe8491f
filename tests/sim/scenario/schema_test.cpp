// The schema is valid, is made from the same table as the reader, and accepts every shipped scenario.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#if __has_include(<valijson/validator.hpp>)
#define FABRICAST_HAVE_VALIJSON 1
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>
#endif

#include "sim/scenario/fields.hpp"
#include "sim/scenario/yaml_source.hpp"
#include "tests/sim/scenario/helpers.hpp"

namespace fabricast::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// As an editor's YAML plug-in sees the file.
Json to_json(const Value& value) {
    switch (value.kind) {
        case Value::Kind::empty: return nullptr;
        case Value::Kind::list: {
            Json list = Json::array();
            for (const Value& item : value.items)
                list.push_back(to_json(item));
            return list;
        }
        case Value::Kind::map: {
            Json map = Json::object();
            for (const Member& member : value.members)
                map[member.key] = to_json(member.value);
            return map;
        }
        case Value::Kind::scalar: break;
    }
    if (value.quoted)
        return value.text;
    if (value.text == "true" || value.text == "false")
        return value.text == "true";
    Json number = Json::parse(value.text, nullptr, false);
    return number.is_number() ? number : Json(value.text);
}

[[maybe_unused]] Json json_of(const std::string& yaml) {
    Diagnostics diagnostics;
    const Value root = parse_yaml(yaml, "t.yaml", diagnostics);
    EXPECT_TRUE(diagnostics.ok());
    return to_json(root);
}

[[maybe_unused]] std::string slurp(const fs::path& path) {
    std::ifstream in(path);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

std::vector<fs::path> shipped() {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(FABRICAST_SOURCE_DIR) / "scenarios"))
        if (entry.path().extension() == ".yaml")
            files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

#ifdef FABRICAST_HAVE_VALIJSON
bool accepts(const Json& document, std::string& why) {
    static const Json text = Json::parse(scenario_schema());
    valijson::Schema schema;
    valijson::SchemaParser(valijson::SchemaParser::kDraft7)
        .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
    valijson::Validator validator;
    valijson::ValidationResults results;
    const bool ok = validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results);
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
        for (const std::string& part : error.context)
            why += part;
        why += ": " + error.description + "\n";
    }
    return ok;
}

TEST(Schema, AcceptsWhatTheReaderAccepts) {
    std::string why;
    EXPECT_TRUE(accepts(json_of(kGood), why)) << why;
    for (const fs::path& file : shipped()) {
        why.clear();
        EXPECT_TRUE(accepts(json_of(slurp(file)), why)) << file << "\n" << why;
    }
}

TEST(Schema, RefusesMistakes) {
    const std::pair<const char*, const char*> mistakes[] = {
        {"micro_batch: 1", "micro_bach: 1"},
        {"nic: 400 Gb/s", "nic: 400"},
        {"nic: 400 Gb/s", "nic: 400 GB"},
        {"precision: bf16", "precision: bf61"},
        {"nodes: 4", "nodes: four"},
        {"nodes: 4", "nodes: 0"},
        {"sp: true", "sp: yes"},
        {"preset: hgx-h100", "preset: dgx-1"},
        {"global_batch: 64 sequences", "global_batch: 64"},
    };
    for (const auto& [from, to] : mistakes) {
        std::string why;
        EXPECT_FALSE(accepts(json_of(replaced(kGood, from, to)), why)) << to;
    }
}
#endif

TEST(Schema, HoldsEveryFieldWithItsSentence) {
    const Json schema = Json::parse(scenario_schema());
    EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    EXPECT_EQ(schema["additionalProperties"], false);
    for (const Field& field : fields()) {
        EXPECT_FALSE(field.doc.empty()) << field.path;
        if (field.use == Use::unsupported || field.path.find('.') != std::string_view::npos)
            continue;
        ASSERT_TRUE(schema["properties"].contains(std::string(field.path))) << field.path;
        EXPECT_EQ(schema["properties"][std::string(field.path)]["description"], std::string(field.doc));
    }
    const Json& layout = schema["properties"]["training"]["properties"]["layout"]["properties"];
    EXPECT_EQ(layout["tp"]["default"], 1);
    EXPECT_EQ(layout["zero"]["maximum"], 3);
    EXPECT_EQ(schema["properties"]["faults"]["anyOf"].back()["type"], "array");  // a bare list of events
}

TEST(Fields, ParentsExistAndDefaultsAreValid) {
    for (const Field& field : fields()) {
        const std::size_t dot = field.path.rfind('.');
        if (dot == std::string_view::npos)
            continue;
        std::string parent(field.path.substr(0, dot));
        if (parent.ends_with("[]"))
            parent.resize(parent.size() - 2);
        const Field* up = find_field(parent);
        ASSERT_NE(up, nullptr) << field.path;
        EXPECT_TRUE(up->kind == FieldKind::section || up->kind == FieldKind::open_map || up->kind == FieldKind::list)
            << field.path;
        if (!field.shorthand.empty()) {
            EXPECT_NE(find_field(std::string(field.path) + "." + std::string(field.shorthand)), nullptr) << field.path;
        }
    }
}

TEST(Scenarios, AllLoad) {
    ASSERT_GE(shipped().size(), 10u);
    for (const fs::path& file : shipped())
        EXPECT_NO_THROW(load_scenario(file.string(), {})) << file;
}

TEST(Scenarios, CaseA) {
    const fs::path folder = fs::path(FABRICAST_SOURCE_DIR) / "scenarios" / "case-a";
    const struct {
        const char* name;
        std::int64_t gpus, micro_batch, micro_batches;
    } rows[] = {{"h800-64-before", 64, 4, 4},
                {"h800-256-before", 256, 4, 1},
                {"h800-512-before", 512, 2, 1},
                {"h800-1024-before", 1024, 1, 1},
                {"h800-1024-before-overlap", 1024, 1, 1},
                {"h800-1024-before-one-nic", 1024, 1, 1}};
    for (const auto& row : rows) {
        const Scenario s = load_scenario((folder / (std::string(row.name) + ".yaml")).string(), {});
        EXPECT_EQ(s.name, row.name);
        EXPECT_EQ(s.training.layout.dp, row.gpus) << row.name;
        EXPECT_EQ(s.training.micro_batch, row.micro_batch) << row.name;
        EXPECT_EQ(s.training.micro_batches(), row.micro_batches) << row.name;
        EXPECT_EQ(s.training.global_batch * s.training.sequence, 4194304) << row.name;
        EXPECT_EQ(s.training.layout.zero, 3) << row.name;
    }
    const Scenario after = load_scenario((folder / "h800-1024-tp8-pp2-dp64.yaml").string(), {});
    EXPECT_EQ(after.training.micro_batches(), 8);
    EXPECT_EQ(after.training.layout.dp, 64);
    EXPECT_EQ(after.tokens, 3.5e12);
    EXPECT_EQ(load_scenario((folder / "h800-1024-before-one-nic.yaml").string(), {}).node.nics, 1u);
}

// scenarios/REFERENCE.md is made by the program: `fabricast schema --markdown > scenarios/REFERENCE.md`.
TEST(Reference, TheOneCheckedInIsTheOneTheTableMakes) {
    std::ostringstream text;
    text << std::ifstream(FABRICAST_SOURCE_DIR "/scenarios/REFERENCE.md").rdbuf();
    EXPECT_TRUE(text.str() == scenario_reference()) << "run `fabricast schema --markdown > scenarios/REFERENCE.md`";
}

TEST(Reference, NamesEveryKeyOnce) {
    const std::string text = scenario_reference();
    for (const std::span<const Field> table : {fields(), run_fields()}) {
        for (const Field& field : table) {
            if (field.use == Use::unsupported || field.path.find('*') != std::string_view::npos)
                continue;
            const std::string row = "\n| `" + std::string(field.path) + "` | ";
            const std::size_t first = text.find(row);
            EXPECT_NE(first, std::string::npos) << row;
            EXPECT_EQ(text.find(row, first + 1), std::string::npos) << row;
        }
    }
}

}  // namespace
}  // namespace fabricast::test
