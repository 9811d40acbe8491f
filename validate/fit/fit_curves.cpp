#include "validate/fit/fit_curves.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "validate/fit/least_squares.hpp"
#include "validate/score/nccl_score.hpp"

namespace fabricast {
namespace {

constexpr double kRateSigma = 0.10, kHopSigmaUs = 20;
constexpr double kFelt = 0.005;        ///< a constant that moves no point so much is not felt
constexpr double kWorthwhile = 0.005;  ///< median error that a correction of a collective must take away

struct Point {
    const RunCase* run;
    std::int64_t bytes;
    double measured_us;
};
using Cases = std::vector<const RunCase*>;

std::vector<Point> points_of(const Cases& cases) {
    std::vector<Point> out;
    for (const RunCase* run : cases) {
        if (run->kind == Collective::send_recv && run->platform.nodes >= 3)
            continue;  // its flows collide by chance: the link does not show
        for (const NcclPoint& point : curve(run->run)) {
            if (point.bytes > 0 && point.out_of_place.time_us.value > 0)
                out.push_back({run, point.bytes, point.out_of_place.time_us.value});
        }
    }
    return out;
}

std::string where_of(const Point& p) {
    return fmt::format("{}: {}, {} ranks, {} bytes", p.run->file, collective_name(p.run->kind), p.run->run.ranks,
                       p.bytes);
}

/// Constants of a link class by the order of its parameters.
class LinkClass {
public:
    /// nvlink: GB/s that the curves of one node show; 0 = of the catalogue.
    LinkClass(std::string network, const GpuSpec& gpu, double nvlink) : network_(std::move(network)), nvlink_(nvlink) {
        if (over_nodes()) {
            const NetworkSpec& spec = *Catalogue::builtin().find_network(network_);
            add("efficiency", spec.efficiency, .02, 1, kRateSigma, 0);
            add("ll_hop", spec.ll_hop_us, 0, 1000, 1, kHopSigmaUs);
            add("ll128_hop", spec.ll128_hop_us, 0, 1000, 1, kHopSigmaUs);
            add("simple_hop", spec.simple_hop_us, 0, 1000, 1, kHopSigmaUs);
            add("slot", spec.slot_us, 0, 1000, 1, kHopSigmaUs);
            if (gpu.network_channel_bytes_per_s > 0)
                add("network_channel", gpu.network_channel_bytes_per_s * 1e-9, 1, 200, kRateSigma, 0);
        }
        if (!over_nodes() && gpu.nvlink_achieved_bytes_per_s > 0)
            add("nvlink_achieved", gpu.nvlink_achieved_bytes_per_s * 1e-9, 1, gpu.nvlink_nominal_bytes_per_s * 1e-9,
                kRateSigma, 0);
    }
    bool over_nodes() const { return network_ != "node"; }
    const std::vector<FitParameter>& parameters() const { return parameters_; }
    std::vector<double> start() const {
        std::vector<double> out;
        for (const FitParameter& p : parameters_)
            out.push_back(p.start);
        return out;
    }
    std::unique_ptr<Predictor> predictor(const RunCase& run, const std::vector<double>& x,
                                         const CollectiveCorrection& correction) const {
        NetworkConstants constants;
        Platform platform = run.platform;
        if (over_nodes()) {
            constants = {.efficiency = x[0],
                         .timing = {.hop_us = {x[1], x[2], x[3]}, .slot_us = x[4], .channel_gb_per_s = 0},
                         .correction = {}};
            constants = with_collisions(constants, run.kind, platform);
        }
        if (nvlink_ > 0)
            platform.gpu.nvlink_achieved_bytes_per_s = nvlink_ * 1e9;
        for (std::size_t k = 0; k < parameters_.size(); ++k) {
            if (parameters_[k].name == "network_channel")
                constants.timing.channel_gb_per_s = x[k];
            if (parameters_[k].name == "nvlink_achieved")
                platform.gpu.nvlink_achieved_bytes_per_s = x[k] * 1e9;
        }
        constants.correction = correction;
        return std::make_unique<Predictor>(platform, constants, run.settings);
    }
    std::vector<double> errors(const std::vector<Point>& points, const std::vector<double>& x,
                               const CollectiveCorrection& correction = {}) const {
        std::map<const RunCase*, std::unique_ptr<Predictor>> predictors;
        std::vector<double> out;
        for (const Point& p : points) {
            auto& predictor = predictors[p.run];
            if (!predictor)
                predictor = this->predictor(*p.run, x, correction);
            const auto predicted = predictor->predict(p.run->kind, p.bytes);
            const double us = kLaunch.with(predicted.time_us, p.run->gpus_per_thread, predicted.channels);
            out.push_back(std::log(us / p.measured_us));
        }
        return out;
    }
    /// Which constants the points feel.
    std::vector<bool> felt(const std::vector<Point>& points) const {
        const std::vector<double> x = start(), before = errors(points, x);
        std::vector<bool> out;
        for (std::size_t k = 0; k < parameters_.size(); ++k) {
            std::vector<double> moved = x;
            const FitParameter& p = parameters_[k];
            moved[k] = p.unit > 0 ? p.start + p.unit : p.start * .9;
            const std::vector<double> after = errors(points, moved);
            bool any = false;
            for (std::size_t i = 0; i < before.size(); ++i)
                any |= std::abs(after[i] - before[i]) > kFelt;
            out.push_back(any);
        }
        return out;
    }

private:
    void add(std::string name, double start, double least, double most, double sigma, double unit) {
        parameters_.push_back({std::move(name), start, least, most, sigma, unit});
    }
    std::string network_;
    double nvlink_;
    std::vector<FitParameter> parameters_;
};

/// Where between the defaults and a fit the median error is least: least squares ask for another measure than what a
/// fit is judged by, and may lose by it.
std::vector<double> settle_between(const LinkClass& link, const std::vector<Point>& points,
                                   const std::vector<double>& fitted) {
    constexpr int kSteps = 8;
    std::vector<double> best = link.start();
    double least = median_error(link.errors(points, best));
    for (int step = 1; step <= kSteps; ++step) {
        std::vector<double> x = link.start();
        for (std::size_t k = 0; k < x.size(); ++k)
            x[k] += (fitted[k] - x[k]) * step / kSteps;
        const double error = median_error(link.errors(points, x));
        if (error < least) {
            least = error;
            best = x;
        }
    }
    return best;
}

/// The constants that these points want; those they do not feel stay.
std::vector<double> fit_class(const LinkClass& link, const std::vector<Point>& points, RobustFit* found = nullptr) {
    const std::vector<bool> felt = link.felt(points);
    std::vector<FitParameter> free;
    std::vector<std::size_t> index;
    for (std::size_t k = 0; k < felt.size(); ++k) {
        if (felt[k]) {
            free.push_back(link.parameters()[k]);
            index.push_back(k);
        }
    }
    std::vector<double> x = link.start();
    const RobustFit fit = robust_least_squares(free, [&](const std::vector<double>& values) {
        std::vector<double> at = link.start();
        for (std::size_t k = 0; k < index.size(); ++k)
            at[index[k]] = values[k];
        return link.errors(points, at);
    });
    for (std::size_t k = 0; k < index.size(); ++k)
        x[index[k]] = fit.values[k];
    if (found != nullptr)
        *found = fit;
    return settle_between(link, points, x);
}

void fit_corrections(const LinkClass& link, const std::string& name, const std::vector<Point>& points,
                     const std::vector<double>& x, CurveFit& out) {
    std::map<Collective, std::vector<Point>> by_kind;
    for (const Point& p : points)
        by_kind[p.run->kind].push_back(p);
    for (const auto& [kind, members] : by_kind) {
        const auto& own = members;  // clang 14 captures no bindings
        constexpr std::size_t kFewest = 5;
        if (own.size() < kFewest)
            continue;
        const std::vector<FitParameter> parameters = {{"latency", 0, 0, 1e4, 1, kHopSigmaUs},
                                                      {"rate", 1, .1, 1, kRateSigma, 0}};
        const RobustFit fit = robust_least_squares(parameters, [&](const std::vector<double>& v) {
            return link.errors(own, x, {v[0] * 1e-6, v[1]});
        });
        if (fit.median_error() < median_error(link.errors(own, x)) - kWorthwhile)
            out.collectives.push_back({name, kind, {fit.values[0] * 1e-6, fit.values[1]}});
    }
}

/// NVLink as the curves of one node show it without one collective ("" = with all), GB/s; 0 where they do not.
using NvlinkWithout = std::function<double(const std::string&)>;

std::vector<Point> without(const std::vector<Point>& points, const std::string& left_out) {
    std::vector<Point> out;
    for (const Point& p : points) {
        if (collective_name(p.run->kind) != left_out)
            out.push_back(p);
    }
    return out;
}

/// cross_error of every point: its collective predicted by the others.
void cross_check(const std::string& name, const GpuSpec& gpu, const std::vector<Point>& points,
                 const NvlinkWithout& nvlink, PartFit& part) {
    std::set<std::string> groups;
    for (const FittedPoint& p : part.points)
        groups.insert(p.group);
    part.crossed = groups.size() > 1;
    for (const std::string& left_out : groups) {
        if (!part.crossed)
            break;
        const LinkClass link(name, gpu, nvlink(left_out));
        const std::vector<double> x = fit_class(link, without(points, left_out));
        for (std::size_t i = 0; i < points.size(); ++i) {
            if (part.points[i].group == left_out)
                part.points[i].cross_error = link.errors({points[i]}, x).front();
        }
    }
}

void fit_link(const std::string& name, const std::vector<Point>& points, const NvlinkWithout& nvlink, CurveFit& out) {
    const GpuSpec& gpu = points.front().run->platform.gpu;
    const LinkClass link(name, gpu, nvlink("")), untouched(name, gpu, 0);
    if (link.parameters().empty())
        return;
    PartFit part;
    part.what = link.over_nodes() ? "networks " + name : "node " + gpu.name;
    const std::vector<double> before = untouched.errors(points, link.start());
    RobustFit fit;
    const std::vector<double> x = fit_class(link, points, &fit);
    const std::vector<double> after = link.errors(points, x);
    for (std::size_t i = 0; i < points.size(); ++i)
        part.points.push_back({where_of(points[i]), std::string(collective_name(points[i].run->kind)), before[i],
                               after[i], after[i], fit.weights[i] == 0});
    cross_check(name, gpu, points, nvlink, part);
    settle(part);
    if (part.kept) {
        const std::vector<bool> felt = link.felt(points);
        Calibration::Values network, of_gpu;
        for (std::size_t k = 0; k < x.size(); ++k) {
            const std::string& key = link.parameters()[k].name;
            if (!felt[k] || x[k] == link.parameters()[k].start)
                continue;
            if (key == "network_channel" || key == "nvlink_achieved")
                of_gpu.emplace_back(key, x[k] * 1e9);
            else
                network.emplace_back(key, key == "efficiency" ? x[k] : x[k] * 1e-6);
        }
        if (!network.empty())
            out.networks.emplace_back(name, std::move(network));
        if (!of_gpu.empty())
            out.gpus.emplace_back(gpu.name, std::move(of_gpu));
        fit_corrections(link, name, points, x, out);
    }
    out.parts.push_back(std::move(part));
}

}  // namespace

void settle(PartFit& fit) {
    std::vector<double> before, after, cross;
    for (const FittedPoint& p : fit.points) {
        before.push_back(p.default_error);
        after.push_back(p.fitted_error);
        cross.push_back(p.cross_error);
    }
    fit.default_median = median_error(before);
    fit.fitted_median = median_error(after);
    fit.cross_median = fit.crossed ? median_error(cross) : fit.fitted_median;
    if (fit.fitted_median > fit.default_median || (fit.crossed && fit.cross_median > fit.default_median)) {
        fit.kept = false;
        fit.reason = fmt::format(
            "{}: the fit explains less than the defaults (median error {:.1f} %{}, defaults {:.1f} %) and is refused",
            fit.what, 100 * fit.fitted_median,
            fit.crossed ? fmt::format(", {:.1f} % where left out", 100 * fit.cross_median) : "",
            100 * fit.default_median);
    }
}

CurveFit fit_curves(const std::vector<RunCase>& cases) {
    std::map<std::string, Cases> by_link;
    for (const RunCase& run : cases)
        by_link[run.platform.nodes > 1 ? std::string(run.carried_by()) : "node"].push_back(&run);
    CurveFit out;
    const std::vector<Point> inside = points_of(by_link["node"]);
    by_link.erase("node");
    const NvlinkWithout none = [](const std::string&) { return 0.0; };
    if (!inside.empty())
        fit_link("node", inside, none, out);
    const bool kept = !out.parts.empty() && out.parts.front().kept && !out.gpus.empty();
    std::map<std::string, double> known;
    const NvlinkWithout shown = [&](const std::string& left_out) {
        const auto [at, fresh] = known.try_emplace(left_out, 0);
        const std::vector<Point> rest = without(inside, left_out);
        if (fresh && kept && !rest.empty()) {
            const LinkClass link("node", rest.front().run->platform.gpu, 0);
            if (!link.parameters().empty())
                at->second = fit_class(link, rest).front();
        }
        return at->second;
    };
    for (const auto& [name, own] : by_link) {
        const std::vector<Point> points = points_of(own);
        if (!points.empty())
            fit_link(name, points, shown, out);
    }
    return out;
}

}  // namespace fabricast
