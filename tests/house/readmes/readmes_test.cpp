// Every room has its page, what the page names is there, and what it says about adding things works.
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include <gtest/gtest.h>

#include "models/hardware/read_catalogue.hpp"
#include "sim/import/importers.hpp"
#include "sim/scenario/scenario.hpp"
#include "sim/step/build_cluster.hpp"
#include "topologies/importers/detect.hpp"

namespace fabricast {
namespace {

namespace fs = std::filesystem;
const fs::path kRoot = FABRICAST_SOURCE_DIR;

std::string read_text(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::vector<std::string> rooms() {
    std::vector<std::string> found;
    const std::string cmake = read_text(kRoot / "CMakeLists.txt");
    const std::regex room(R"(\nfabricast_room\(([a-z]+/[a-z_]+))");
    for (std::sregex_iterator at(cmake.begin(), cmake.end(), room), end; at != end; ++at)
        found.push_back((*at)[1]);
    return found;
}

std::string page_of(const std::string& room) { return read_text(kRoot / room / "README.md"); }

/// The first fenced block of `language` behind a heading.
std::string example(const std::string& page, std::string_view heading, const std::string& language) {
    const std::size_t section = page.find(heading);
    const std::size_t begin = page.find("```" + language + "\n", section);
    if (section == std::string::npos || begin == std::string::npos)
        return {};
    const std::size_t from = begin + 4 + language.size();
    return page.substr(from, page.find("```", from) - from);
}

std::vector<std::string> named_files(const std::string& page) {
    std::vector<std::string> names;
    const std::regex name(R"(`([A-Za-z0-9_./-]+\.(hpp|cpp|yaml|css|js|mjs|md|cu))`)");
    for (std::sregex_iterator at(page.begin(), page.end(), name), end; at != end; ++at)
        names.push_back((*at)[1]);
    return names;
}

TEST(RoomPages, AreThereAndShort) {
    ASSERT_GT(rooms().size(), 20u);
    for (const std::string& room : rooms()) {
        const std::string page = page_of(room);
        ASSERT_FALSE(page.empty()) << room << " has no README.md";
        EXPECT_LE(std::count(page.begin(), page.end(), '\n'), 70) << room << ": one page";
        EXPECT_TRUE(page.starts_with("# " + room + "\n")) << room;
        EXPECT_TRUE(has(page, "**Limits.**")) << room;
        EXPECT_TRUE(has(page, "To add") || has(page, "To change")) << room;
    }
}

TEST(RoomPages, NameFilesThatExist) {
    for (const std::string& room : rooms()) {
        for (const std::string& name : named_files(page_of(room)))
            EXPECT_TRUE(fs::exists(kRoot / room / name) || fs::exists(kRoot / name)) << room << ": " << name;
    }
}

TEST(HowToAdd, AGpuIsOneEntryOfTheCatalogue) {
    const std::string entry = example(page_of("models/hardware"), "## To add a GPU", "yaml");
    ASSERT_FALSE(entry.empty());
    std::vector<CatalogueFile> files(catalogue_files().begin(), catalogue_files().end());
    files.emplace_back("zz_site.yaml", entry);
    const CatalogueEntries with = read_catalogue(files);
    EXPECT_EQ(with.gpus.size(), Catalogue::builtin().gpus().size() + 1);
    EXPECT_EQ(with.nodes.size(), Catalogue::builtin().nodes().size() + 1);
    const auto gpu =
        std::find_if(with.gpus.begin(), with.gpus.end(), [](const GpuSpec& g) { return g.name == "X200-SXM-120G"; });
    ASSERT_NE(gpu, with.gpus.end());
    EXPECT_EQ(gpu->peak_bf16, 1200e12);
    EXPECT_EQ(gpu->memory_mib, 122880);
    EXPECT_EQ(gpu->sources.at("hbm"), "vendor data sheet of the X200, dense peaks");
    EXPECT_EQ(gpu->gemm.emax, Catalogue::builtin().find_gpu("H100-SXM-80G")->gemm.emax) << "taken over";
    // Without its source a number is refused.
    std::string bare = entry;
    bare.replace(bare.find("{value: 144, source: sheet-x200}"), 32, "144");
    files.back().second = bare;
    EXPECT_THROW(read_catalogue(files), std::logic_error);
}

TEST(HowToAdd, ATopologyIsWrittenDownInAScenario) {
    const std::string cluster = example(page_of("topologies/builders"), "## To add a topology", "yaml");
    ASSERT_FALSE(cluster.empty());
    const Scenario scenario = parse_scenario(
        cluster +
            "model: llama3.1-8b\ntraining: {sequence: 2048 tokens, global_batch: 8 sequences, layout: {zero: 3}}\n",
        "readme.yaml");
    const Cluster built = build_cluster(scenario);
    EXPECT_EQ(built.gpu_count(), 2u);
    std::vector<LinkId> way;
    built.route(GpuId{0}, GpuId{1}, way);
    EXPECT_GE(way.size(), 2u);
}

TEST(HowToAdd, AScheduleStandsWhereThePageSays) {
    const std::string page = page_of("models/parallel");
    const std::string section = page.substr(page.find("## To add a schedule"));
    std::size_t files = 0;
    for (const std::string& name : named_files(section)) {
        if (name.starts_with("tests/"))
            continue;
        ++files;
        const std::string text = read_text(kRoot / name);
        EXPECT_TRUE(has(text, "zb_h2") || has(text, "zb-h2")) << name << " does not know ZB-H2, a schedule that exists";
    }
    EXPECT_EQ(files, 8u);
    // And nowhere else: what names the word stands in the list.
    for (const char* floor : {"topologies", "models", "sim"}) {
        for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / floor)) {
            const std::string path = fs::relative(entry.path(), kRoot).generic_string();
            if ((path.ends_with(".cpp") || path.ends_with(".hpp")) && has(read_text(entry.path()), "\"zb-h2\"")) {
                EXPECT_TRUE(has(section, path)) << path << " has the word zb-h2 and is not on the page";
            }
        }
    }
}

TEST(HowToAdd, AnImporterIsALineOfOneTable) {
    const std::string page = page_of("sim/import");
    for (const import::Format& format : import::formats())
        EXPECT_TRUE(has(page, format.name)) << format.name << " is not on the page";
    EXPECT_TRUE(has(page, "importers.hpp"));
    // Each reader is a function in one of the files of the page.
    std::string sources;
    for (const std::string& name : named_files(page)) {
        if (name.find('/') == std::string::npos)
            sources += read_text(kRoot / "sim/import" / name);
    }
    for (const import::Format& format : import::formats()) {
        std::string function = "Plan import_" + std::string(format.name) + "(";
        std::replace(function.begin(), function.end(), '-', '_');
        EXPECT_TRUE(has(sources, function)) << function;
    }
}

TEST(HowToAdd, AnImporterOfATopologyIsKnownByItsText) {
    const std::string page = page_of("topologies/importers");
    using importers::Format;
    for (const Format format : {Format::nvidia_smi_topo, Format::nccl_xml, Format::ns3_topology, Format::astra_network,
                                Format::slurm_topology, Format::ibnetdiscover, Format::iblinkinfo}) {
        const std::string name = importers::format_name(format);
        EXPECT_TRUE(has(page, name.substr(0, name.find(' ')))) << name;
    }
    EXPECT_TRUE(has(page, "detect.cpp"));
}

}  // namespace
}  // namespace fabricast
