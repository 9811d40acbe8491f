// The road of a scenario file: text -> tree -> answers -> Scenario.
#include <filesystem>

#include <fmt/format.h>

#include "sim/scenario/document.hpp"
#include "sim/scenario/fill.hpp"

namespace fabricast {

std::string_view origin_name(Origin origin) {
    switch (origin) {
        case Origin::stated: return "stated";
        case Origin::measured: return "measured";
        case Origin::fitted: return "fitted";
        case Origin::published: return "published";
        case Origin::datasheet: return "datasheet";
        case Origin::guess: return "guess";
    }
    return {};
}

Scenario parse_scenario(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides,
                        Scope scope) {
    const Value root = assemble(yaml, name, overrides);
    Scenario s;
    s.file = name;
    Diagnostics diagnostics;
    Answers answers = check(root, diagnostics, s.notes);
    diagnostics.throw_if_any();

    const Answer* title = answers.given("name");
    s.name = title ? title->text : std::filesystem::path(name).stem().string();
    const bool cluster = fill_cluster(answers, s, diagnostics);
    if (scope == Scope::cluster && !answers.given("model") && !answers.given("training")) {
        if (cluster)
            fill_comm(answers, s, diagnostics);
        fill_run(answers, s, diagnostics);
        diagnostics.throw_if_any();
        return s;
    }
    const bool model = fill_model(answers, s, diagnostics);
    if (cluster && model)
        fill_training(answers, s, diagnostics);
    if (cluster)
        fill_comm(answers, s, diagnostics);
    if (diagnostics.ok())
        fill_job(answers, s, diagnostics);
    fill_run(answers, s, diagnostics);
    if (!answers.given("training") && !(cluster && model))
        missing(answers, "training", "", diagnostics);
    diagnostics.throw_if_any();
    list_assumptions(answers, s);
    return s;
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides, Scope scope) {
    Diagnostics diagnostics;
    std::string text;
    read_file(path, {path, 0, 0}, text, diagnostics);
    diagnostics.throw_if_any();
    return parse_scenario(text, path, overrides, scope);
}

}  // namespace fabricast
