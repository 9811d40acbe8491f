// The walls of the house: which room may include which, checked on the text of the sources.
//
// A room is the first two folders of a path. kAllowed lists for each room what it may include besides itself;
// it has no cycle, and a room that is missing from it is an error, so a new room is entered here on purpose.
// Also checked: sources never include tests; <random>, <math.h> and libm beyond sqrt and rounding stay out of
// topologies, models and sim, where results must not depend on the machine; the top level holds known names only.
// The rules see text, not the preprocessor: line comments are cut off, conditional includes count.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace {

namespace fs = std::filesystem;

struct Source {
    std::string path;  ///< from the root, "sim/engine/network.hpp"
    std::string text;
};

const std::set<std::string_view> kFloors = {"topologies", "models", "sim", "validate"};

/// room -> rooms or single headers it may include.
const std::map<std::string_view, std::set<std::string_view>>& allowed() {
    static const std::set<std::string_view> topologies = {"topologies/graph", "topologies/builders",
                                                          "topologies/importers"};
    static const std::set<std::string_view> models = {"models/hardware",    "models/compute",  "models/collectives",
                                                      "models/transformer", "models/parallel", "models/program",
                                                      "models/faults",      "models/monitors"};
    using Rooms = std::set<std::string_view>;
    const auto join = [](std::initializer_list<Rooms> parts) {
        Rooms all;
        for (const Rooms& part : parts) {
            all.insert(part.begin(), part.end());
        }
        return all;
    };
    const Rooms below = join({topologies, models});
    static const std::map<std::string_view, Rooms> table = {
        {"topologies/graph", {}},
        {"topologies/builders", {"topologies/graph", "topologies/importers"}},
        {"topologies/importers", {"topologies/graph"}},

        {"models/hardware", topologies},
        {"models/program", {"topologies/graph"}},
        {"models/compute", {"topologies/graph/units.hpp", "models/hardware", "models/program"}},
        {"models/collectives", join({topologies, {"models/hardware", "models/compute/math.hpp"}})},
        {"models/transformer", {"topologies/graph/units.hpp", "models/compute", "models/hardware", "models/program"}},
        {"models/faults",
         join({topologies,
               {"models/hardware", "models/program", "models/compute/math.hpp", "models/compute/spread.hpp"}})},
        {"models/monitors", {"models/compute/math.hpp"}},
        {"models/parallel",
         join({topologies,
               {"models/hardware", "models/compute", "models/collectives", "models/transformer", "models/program"}})},

        {"sim/engine", {"models/program", "topologies/graph/units.hpp", "topologies/graph/links.hpp"}},
        {"sim/scenario", join({below, {"sim/engine"}})},
        {"sim/import", {"models/transformer", "sim/scenario"}},
        {"sim/export", join({below, {"sim/scenario", "sim/import"}})},
        {"sim/traces", join({topologies, {"models/program", "sim/engine"}})},
        {"sim/step", join({below, {"sim/engine", "sim/scenario"}})},
        {"sim/observed", {"models/compute"}},
        {"sim/diagnose", join({below, {"sim/engine", "sim/scenario", "sim/step", "sim/observed"}})},
        {"sim/campaign", join({below, {"sim/engine", "sim/scenario", "sim/step"}})},
        {"sim/monitor", join({below, {"sim/scenario", "sim/step", "sim/campaign"}})},
        {"sim/plan", join({below, {"sim/engine", "sim/scenario", "sim/step", "sim/campaign"}})},
        // report is made from a result, not from a running engine
        {"sim/report", join({below,
                             {"sim/scenario", "sim/traces", "sim/step", "sim/campaign", "sim/monitor", "sim/plan",
                              "sim/observed", "sim/diagnose"}})},
        {"sim/cli", join({below,
                          {"sim/engine", "sim/scenario", "sim/import", "sim/export", "sim/traces", "sim/step",
                           "sim/campaign", "sim/monitor", "sim/plan", "sim/report", "sim/observed", "sim/diagnose"}})},

        {"validate/measure", join({below, {"validate/ingest", "sim/observed"}})},
        {"validate/ingest", join({below, {"sim/observed"}})},
        {"validate/score", join({below,
                                 {"sim/engine", "sim/scenario", "sim/step", "sim/report", "sim/observed",
                                  "validate/measure", "validate/ingest"}})},
        // constants are fitted by what scores them
        {"validate/fit", join({below,
                               {"sim/engine", "sim/scenario", "sim/step", "sim/report", "sim/observed",
                                "validate/measure", "validate/ingest", "validate/score"}})},
        {"validate/cli", join({below,
                               {"sim/scenario", "sim/report", "sim/observed", "validate/measure", "validate/ingest",
                                "validate/fit", "validate/score"}})},
    };
    return table;
}

std::string_view room_of(std::string_view path) {
    const std::size_t floor = path.find('/');
    const std::size_t room = floor == std::string_view::npos ? floor : path.find('/', floor + 1);
    return room == std::string_view::npos ? std::string_view() : path.substr(0, room);
}

std::string_view floor_of(std::string_view path) { return path.substr(0, path.find('/')); }

struct Include {
    std::string where;   ///< "sim/engine/network.hpp:12"
    std::string source;  ///< path of the including file
    std::string target;
    bool quoted = false;
};

std::string_view trimmed(std::string_view text) {
    const std::size_t begin = text.find_first_not_of(" \t");
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
}

template <typename Visit>
void for_each_line(const Source& source, Visit visit) {
    std::istringstream stream(source.text);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
        visit(std::string_view(line).substr(0, line.find("//")), source.path + ":" + std::to_string(number));
    }
}

std::vector<Include> includes(const Source& source) {
    std::vector<Include> result;
    for_each_line(source, [&](std::string_view line, const std::string& where) {
        line = trimmed(line);
        if (line.substr(0, 1) != "#") {
            return;
        }
        line = trimmed(line.substr(1));
        if (line.substr(0, 7) != "include") {
            return;
        }
        line = trimmed(line.substr(7));
        const char open = line.empty() ? ' ' : line.front();
        const std::size_t end = line.find(open == '<' ? '>' : '"', 1);
        if ((open == '<' || open == '"') && end != std::string_view::npos) {
            result.push_back({where, source.path, std::string(line.substr(1, end - 1)), open == '"'});
        }
    });
    return result;
}

/// Sources against the table of edges.
std::vector<std::string> wrong_includes(const std::vector<Source>& sources) {
    std::vector<std::string> wrong;
    for (const Source& source : sources) {
        const std::string_view from = room_of(source.path);
        const auto entry = allowed().find(from);
        if (entry == allowed().end()) {
            wrong.push_back(source.path + ": its room is not in the table of allowed includes");
            continue;
        }
        for (const Include& include : includes(source)) {
            const std::string_view floor = floor_of(include.target);
            if (floor == "tests") {
                wrong.push_back(include.where + ": includes a test, " + include.target);
            } else if (include.quoted && kFloors.count(floor) == 0) {
                wrong.push_back(include.where + ": \"" + include.target + "\" is not a path from the top of the tree");
            } else if (kFloors.count(floor) != 0) {
                const std::string_view to = room_of(include.target);
                if (to != from && entry->second.count(to) == 0 && entry->second.count(include.target) == 0) {
                    wrong.push_back(include.where + ": " + std::string(from) + " may not include " + include.target);
                }
            }
        }
    }
    return wrong;
}

/// Edges of rooms that include each other in a circle, and of those that lead to one; empty when there is none.
std::string room_cycle(const std::vector<Source>& sources) {
    std::map<std::string, std::set<std::string>> leads_to;
    for (const Source& source : sources) {
        const std::string from(room_of(source.path));
        leads_to[from];
        for (const Include& include : includes(source)) {
            const std::string to(room_of(include.target));
            if (kFloors.count(floor_of(include.target)) != 0 && to != from) {
                leads_to[from].insert(to);
            }
        }
    }
    for (bool removed = true; removed;) {  // take away rooms that lead to none that is left
        removed = false;
        for (auto room = leads_to.begin(); room != leads_to.end();) {
            const bool leads_nowhere = std::none_of(room->second.begin(), room->second.end(),
                                                    [&](const std::string& to) { return leads_to.count(to) != 0; });
            room = leads_nowhere ? leads_to.erase(room) : std::next(room);
            removed = removed || leads_nowhere;
        }
    }
    std::string cycle;
    for (const auto& [room, targets] : leads_to) {
        for (const std::string& to : targets) {
            cycle += leads_to.count(to) != 0 ? room + " -> " + to + "; " : "";
        }
    }
    return cycle;
}

/// libm functions whose last bit differs between machines, and headers that bring them or their like.
std::vector<std::string> machine_dependent(const std::vector<Source>& sources) {
    static const std::set<std::string_view> functions = {
        "exp",   "exp2", "expm1", "log",   "log2", "log10",  "log1p",  "pow",   "sin",   "cos",   "tan",
        "asin",  "acos", "atan",  "atan2", "sinh", "cosh",   "tanh",   "asinh", "acosh", "atanh", "cbrt",
        "hypot", "fma",  "erf",   "erfc",  "beta", "tgamma", "lgamma", "expf",  "logf",  "powf"};
    std::vector<std::string> found;
    for (const Source& source : sources) {
        const std::string_view floor = floor_of(source.path);
        if (floor != "topologies" && floor != "models" && floor != "sim") {
            continue;
        }
        for (const Include& include : includes(source)) {
            if (include.target == "random" || include.target == "math.h") {
                found.push_back(include.where + ": <" + include.target + "> is not for results that repeat everywhere");
            }
        }
        if (source.path == "models/compute/math.hpp") {
            continue;
        }
        for_each_line(source, [&](std::string_view line, const std::string& where) {
            if (line.find("long double") != std::string_view::npos) {
                found.push_back(where + ": long double differs between machines");
            }
            for (std::size_t at = line.find("std::"); at != std::string_view::npos; at = line.find("std::", at)) {
                at += 5;
                const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", at);
                const std::string_view name = line.substr(at, end == std::string_view::npos ? end : end - at);
                if (functions.count(name) != 0) {
                    found.push_back(where + ": std::" + std::string(name) + " belongs into models/compute/math.hpp");
                }
            }
        });
    }
    return found;
}

bool top_level_name_allowed(const std::string& name) {
    static const std::set<std::string_view> names = {
        "CMakeLists.txt",
        "CMakePresets.json",
        "LICENSE",
        "README.md",
        "dev",
        "models",
        "notebooks",
        "scenarios",
        "sim",
        "tests",
        "validate",
        "topologies",
        "compile_commands.json"};  // the last is a link for editors that git ignores
    return name.front() == '.' || name.rfind("build", 0) == 0 || names.count(name) != 0;
}

const fs::path kRoot = FABRICAST_SOURCE_DIR;

std::vector<Source> all_sources() {
    std::vector<Source> sources;
    for (const std::string_view floor : kFloors) {
        if (!fs::exists(kRoot / floor)) {
            continue;
        }
        for (const auto& entry : fs::recursive_directory_iterator(kRoot / floor)) {
            const std::string extension = entry.path().extension().string();
            if (entry.is_regular_file() && (extension == ".hpp" || extension == ".cpp" || extension == ".cu")) {
                std::ostringstream text;
                text << std::ifstream(entry.path()).rdbuf();
                sources.push_back({fs::relative(entry.path(), kRoot).generic_string(), text.str()});
            }
        }
    }
    std::sort(sources.begin(), sources.end(), [](const Source& a, const Source& b) { return a.path < b.path; });
    return sources;
}

std::string lines(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) {
        all += text + "\n";
    }
    return all;
}

TEST(IncludeDirection, EveryIncludeIsAllowed) {
    const std::vector<Source> sources = all_sources();
    ASSERT_GT(sources.size(), 10u) << "no sources under " << kRoot;
    EXPECT_EQ(lines(wrong_includes(sources)), "");
}

TEST(IncludeDirection, RoomsHaveNoCycle) { EXPECT_EQ(room_cycle(all_sources()), ""); }

TEST(IncludeDirection, ResultsDoNotDependOnTheMachine) { EXPECT_EQ(lines(machine_dependent(all_sources())), ""); }

TEST(IncludeDirection, TopLevelHoldsKnownNamesOnly) {
    for (const auto& entry : fs::directory_iterator(kRoot)) {
        const std::string name = entry.path().filename().string();
        EXPECT_TRUE(top_level_name_allowed(name)) << name << " does not belong at the top level";
    }
}

// The rules themselves, on made-up sources.

TEST(IncludeDirection, TableHasNoCycle) {
    std::vector<Source> sources;
    for (const auto& [room, targets] : allowed()) {
        Source source = {std::string(room) + "/x.hpp", ""};
        for (const std::string_view target : targets) {
            const bool is_header = target.find(".hpp") != std::string_view::npos;
            source.text += "#include \"" + std::string(target) + (is_header ? "\"\n" : "/y.hpp\"\n");
        }
        sources.push_back(source);
    }
    EXPECT_EQ(room_cycle(sources), "");
    EXPECT_EQ(lines(wrong_includes(sources)), "");
}

TEST(IncludeDirection, FindsForbiddenEdges) {
    const auto wrong = [](const std::string& path, const std::string& text) {
        return lines(wrong_includes({{path, text}}));
    };
    EXPECT_EQ(wrong("sim/engine/a.hpp", "#include \"topologies/graph/links.hpp\"\n#include <vector>\n"), "");
    EXPECT_EQ(wrong("sim/engine/a.hpp", "\n  #  include \"topologies/graph/cluster.hpp\"\n"),
              "sim/engine/a.hpp:2: sim/engine may not include topologies/graph/cluster.hpp\n");
    EXPECT_EQ(wrong("models/program/a.hpp", "#include \"sim/engine/network.hpp\""),
              "models/program/a.hpp:1: models/program may not include sim/engine/network.hpp\n");
    EXPECT_EQ(wrong("models/program/a.hpp", "#include <sim/engine/network.hpp>"),
              "models/program/a.hpp:1: models/program may not include sim/engine/network.hpp\n");
    EXPECT_EQ(wrong("models/collectives/a.hpp", "#include \"models/compute/math.hpp\""), "");
    EXPECT_EQ(wrong("models/collectives/a.hpp", "#include \"models/compute/gemm.hpp\""),
              "models/collectives/a.hpp:1: models/collectives may not include models/compute/gemm.hpp\n");
    EXPECT_EQ(wrong("sim/step/a.cpp", "#include \"tests/sim/step/helper.hpp\""),
              "sim/step/a.cpp:1: includes a test, tests/sim/step/helper.hpp\n");
    EXPECT_EQ(wrong("sim/step/a.cpp", "#include \"a.hpp\"  // mine"),
              "sim/step/a.cpp:1: \"a.hpp\" is not a path from the top of the tree\n");
    EXPECT_EQ(wrong("sim/attic/a.cpp", ""), "sim/attic/a.cpp: its room is not in the table of allowed includes\n");
    EXPECT_EQ(wrong("sim/a.cpp", ""), "sim/a.cpp: its room is not in the table of allowed includes\n");
}

TEST(IncludeDirection, FindsCycles) {
    EXPECT_EQ(room_cycle({{"models/compute/a.hpp", "#include \"models/hardware/b.hpp\""},
                          {"models/hardware/b.hpp", "#include \"models/compute/c.hpp\""},
                          {"sim/step/a.hpp", "#include \"models/compute/a.hpp\""}}),
              "models/compute -> models/hardware; models/hardware -> models/compute; sim/step -> models/compute; ");
    EXPECT_EQ(room_cycle({{"sim/step/a.hpp", "#include \"models/compute/a.hpp\""}}), "");
}

TEST(IncludeDirection, FindsMachineDependentMathematics) {
    const auto found = [](const std::string& path, const std::string& text) {
        return lines(machine_dependent({{path, text}}));
    };
    EXPECT_EQ(found("sim/step/a.cpp", "throw std::logic_error(text); x = std::sqrt(std::ceil(y)); // std::pow(x, 2)"),
              "");
    EXPECT_EQ(found("sim/step/a.cpp", "double x = std::round(std::pow(y, 2));"),
              "sim/step/a.cpp:1: std::pow belongs into models/compute/math.hpp\n");
    EXPECT_EQ(found("models/faults/a.cpp", "#include <random>"),
              "models/faults/a.cpp:1: <random> is not for results that repeat everywhere\n");
    EXPECT_EQ(found("models/compute/math.hpp", "std::exp(x)"), "");
    EXPECT_EQ(found("validate/fit/a.cpp", "std::exp(x)"), "");
}

TEST(IncludeDirection, KnowsTopLevelNames) {
    EXPECT_TRUE(top_level_name_allowed(".clang-format"));
    EXPECT_TRUE(top_level_name_allowed("build-debug"));
    EXPECT_TRUE(top_level_name_allowed("dev"));
    EXPECT_FALSE(top_level_name_allowed("docs"));
    EXPECT_FALSE(top_level_name_allowed("notes.txt"));
}

}  // namespace
