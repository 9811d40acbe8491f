#include "sim/report/interval.hpp"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "models/compute/math.hpp"
#include "sim/scenario/calibration.hpp"

namespace fabricast {

namespace embedded {
std::span<const std::pair<std::string_view, std::string_view>> sim_report();
}

namespace {

constexpr int kFewest = 20;
constexpr double kNearJob = 4;  ///< measured jobs speak for jobs of so many times more or fewer GPUs

struct Class {
    std::string model, gpu;
    int runs = 0;
    double p10 = 1, p90 = 1;
};

bool near(const CalibrationFit& fit, double gpus) {
    if (fit.gpus.empty())
        return false;
    const auto [least, most] = std::minmax_element(fit.gpus.begin(), fit.gpus.end());
    return gpus * kNearJob >= static_cast<double>(*least) && gpus <= kNearJob * static_cast<double>(*most);
}

std::vector<Class> read_classes() {
    std::vector<Class> out;
    for (const auto& [file, content] : embedded::sim_report()) {
        if (!file.ends_with(".yaml"))
            continue;
        const YAML::Node root = YAML::Load(std::string(content));
        for (const YAML::Node& one : root["classes"]) {
            Class c;
            c.model = one["model"].as<std::string>();
            c.gpu = one["gpu"].as<std::string>();
            c.runs = one["runs"].as<int>();
            c.p10 = one["p10"].as<double>();
            c.p90 = one["p90"].as<double>();
            if (!(c.p10 > 0 && c.p90 >= c.p10))
                throw std::logic_error(fmt::format("{}: percentiles of {} {} are out of order", file, c.model, c.gpu));
            out.push_back(std::move(c));
        }
    }
    return out;
}

}  // namespace

std::string gpu_family(std::string_view gpu) {
    constexpr std::pair<std::string_view, std::string_view> kFamilies[] = {
        {"A100", "A100"},  {"A800", "A100"}, {"H100", "H100"}, {"H200", "H100"},  {"H800", "H100"},
        {"GH200", "H100"}, {"B200", "B200"}, {"B300", "B200"}, {"GB200", "B200"}, {"GB300", "B200"}};
    for (const auto& [name, family] : kFamilies)
        if (gpu.starts_with(name))
            return std::string(family);
    return "other";
}

StepInterval step_interval(const Scenario& scenario, double step_s) {
    static const std::vector<Class> classes = read_classes();
    const std::string model = scenario.model.moe.experts > 0 ? "moe" : "dense";
    const std::string family = gpu_family(scenario.gpu.name);
    const Class* best = nullptr;
    for (const Class& c : classes) {
        if (c.model != model)
            continue;
        if (c.gpu == family && c.runs >= kFewest)
            best = &c;
        else if (c.gpu == "all" && best == nullptr)
            best = &c;
    }
    if (best == nullptr || !(step_s > 0))
        return {};
    StepInterval out{step_s / best->p90, step_s / best->p10,
                     best->gpu == "all" ? best->model + " runs" : fmt::format("{} runs on {}", best->model, best->gpu),
                     best->runs};
    const CalibrationFit* own = scenario.calibration
                                    ? scenario.calibration->fit(fmt::format("steps {} {}", model, scenario.gpu.name))
                                    : nullptr;
    if (own == nullptr || !near(*own, static_cast<double>(scenario.training.layout.world())))
        return out;
    const double weight = static_cast<double>(own->points) / (own->points + kFewest);
    const auto blend = [&](double of_class, double of_site) {
        return math::exp((1 - weight) * math::log(of_class) + weight * math::log(of_site));
    };
    out.low_s = step_s / blend(best->p90, own->p90);
    out.high_s = step_s / blend(best->p10, own->p10);
    out.like = fmt::format("{} measured steps of {} and {}", own->points, scenario.calibration->name, out.like);
    out.runs += own->points;
    return out;
}

}  // namespace fabricast
