// The road of a scenario file: text -> tree -> answers -> Scenario.
#include <filesystem>

#include <fmt/format.h>

#include "sim/scenario/calibration.hpp"
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

namespace {

/// What a calibration does not have for this scenario stays at its default, and the report says so.
void note_calibration(Scenario& s) {
    if (!s.calibration)
        return;
    const Calibration& c = *s.calibration;
    const bool gpu = c.find(c.gpus, s.gpu.name) != nullptr, stack = c.find(c.software, s.software.name) != nullptr;
    bool link = s.nodes > 1 && c.find(c.networks, s.node.network) != nullptr;
    for (const Calibration::CollectiveRow& row : c.collectives)
        link |= row.link == (s.nodes > 1 ? std::string_view(s.node.network) : std::string_view("node"));
    if (!gpu && !stack && !link) {
        s.notes.push_back(
            fmt::format("calibration {}: nothing in it for {}, its network `{}` and `{}`; defaults are used", c.file,
                        s.gpu.name, s.node.network, s.software.name));
    } else if (!gpu && !c.gpus.empty()) {
        s.notes.push_back(fmt::format("calibration {}: measured on {}, not on {}; its GPU constants are not used",
                                      c.file, c.gpus.front().first, s.gpu.name));
    }
}

}  // namespace

Scenario parse_scenario(const std::string& yaml, const std::string& name, const std::vector<std::string>& overrides,
                        Scope scope, std::shared_ptr<const Calibration> calibration) {
    const Value root = assemble(yaml, name, overrides);
    Scenario s;
    s.file = name;
    s.calibration = std::move(calibration);
    s.layout_open = scope == Scope::plan;
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
        note_calibration(s);
        return s;
    }
    const bool model = fill_model(answers, s, diagnostics);
    if (cluster && model)
        fill_training(answers, s, diagnostics);
    if (cluster)
        fill_comm(answers, s, diagnostics);
    if (diagnostics.ok() && scope != Scope::plan)
        fill_job(answers, s, diagnostics);
    fill_run(answers, s, diagnostics);
    fill_plan(answers, s, diagnostics);
    if (diagnostics.ok() && scope != Scope::plan)
        fill_campaign(answers, s, diagnostics);
    if (!answers.given("training") && !(cluster && model))
        missing(answers, "training", "", diagnostics);
    diagnostics.throw_if_any();
    note_calibration(s);
    list_assumptions(answers, s);
    return s;
}

Scenario load_scenario(const std::string& path, const std::vector<std::string>& overrides, Scope scope,
                       std::shared_ptr<const Calibration> calibration) {
    Diagnostics diagnostics;
    std::string text;
    read_file(path, {path, 0, 0}, text, diagnostics);
    diagnostics.throw_if_any();
    return parse_scenario(text, path, overrides, scope, std::move(calibration));
}

}  // namespace fabricast
