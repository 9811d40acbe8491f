#include "validate/fit/fit_adapters.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include <fmt/format.h>

#include "validate/fit/least_squares.hpp"

namespace fabricast {
namespace {

constexpr double kRateSigma = 0.1, kLatencySigma = 0.5;
constexpr double kHealthyMtu = 4096;

using Kind = AdapterPoint::Kind;

/// The presets have one latency, that of the reference board.
double default_of(const AdapterPoint& p) {
    const Catalogue& catalogue = Catalogue::builtin();
    return p.kind == Kind::bandwidth ? catalogue.find_network(p.network)->efficiency
                                     : catalogue.find_node("hgx-a100-80g")->nic_latency_s;
}

double predicted_s(const AdapterPoint& p, double x) {
    if (p.kind == Kind::latency)
        return p.one_ways * (2 * x + Catalogue::builtin().find_fabric("rail-fat-tree")->switch_latency_s);
    const double share = packet_share(p.network, kHealthyMtu) * x / default_of(p);
    return static_cast<double>(p.bytes) * 8 / (p.line_bits_per_s * share);
}

using Points = std::vector<const AdapterPoint*>;

std::vector<double> errors(const Points& points, double x) {
    std::vector<double> out;
    for (const AdapterPoint* p : points)
        out.push_back(std::log(predicted_s(*p, x) / p->measured_s));
    return out;
}

RobustFit fit_one(const Points& points) {
    const bool rate = points.front()->kind == Kind::bandwidth;
    const double start = default_of(*points.front());
    const FitParameter parameter = rate ? FitParameter{"efficiency", start, .005, 1, kRateSigma, 0}
                                        : FitParameter{"nic_latency", start, 1e-9, 1e-3, kLatencySigma, 0};
    return robust_least_squares({parameter}, [&](const std::vector<double>& x) { return errors(points, x.front()); });
}

void fit_class(const Points& points, AdapterFit& out) {
    const AdapterPoint& first = *points.front();
    const RobustFit fit = fit_one(points);
    const double x = fit.values.front();
    PartFit part;
    part.what = adapter_part(first);
    const std::vector<double> before = errors(points, default_of(first)), after = errors(points, x);
    std::set<std::string> runs;
    for (std::size_t i = 0; i < points.size(); ++i) {
        runs.insert(points[i]->run);
        part.points.push_back({points[i]->where, points[i]->run, before[i], after[i], after[i], fit.weights[i] == 0});
    }
    part.crossed = runs.size() > 1;
    for (const std::string& run : runs) {
        Points others;
        std::copy_if(points.begin(), points.end(), std::back_inserter(others),
                     [&](const AdapterPoint* p) { return p->run != run; });
        if (others.empty())
            continue;
        const double without = fit_one(others).values.front();
        for (std::size_t i = 0; i < points.size(); ++i) {
            if (points[i]->run == run)
                part.points[i].cross_error = errors({points[i]}, without).front();
        }
    }
    settle(part);
    if (part.kept) {
        const std::string key = first.kind == Kind::bandwidth ? "efficiency" : "nic_latency";
        auto at = std::find_if(out.networks.begin(), out.networks.end(),
                               [&](const auto& one) { return one.first == first.network; });
        if (at == out.networks.end())
            at = out.networks.emplace(out.networks.end(), first.network, Calibration::Values{});
        at->second.emplace_back(key, x);
    }
    out.parts.push_back(std::move(part));
}

}  // namespace

std::string adapter_part(const AdapterPoint& point) {
    return fmt::format("adapters {} {}", point.network, point.kind == Kind::bandwidth ? "bandwidth" : "latency");
}

double predicted_adapter_s(const AdapterPoint& point, const Calibration& calibration) {
    double x = default_of(point);
    if (const Calibration::Values* values = calibration.find(calibration.networks, point.network)) {
        for (const auto& [key, value] : *values) {
            if (key == (point.kind == Kind::bandwidth ? "efficiency" : "nic_latency"))
                x = value;
        }
    }
    return predicted_s(point, x);
}

AdapterFit fit_adapters(const std::vector<AdapterPoint>& points, const std::vector<std::string>& with_curves) {
    std::map<std::string, Points> classes;
    for (const AdapterPoint& p : points) {
        const bool decided = std::find(with_curves.begin(), with_curves.end(), p.network) != with_curves.end();
        if (p.kind == Kind::latency || !decided)
            classes[adapter_part(p)].push_back(&p);
    }
    AdapterFit out;
    for (const auto& [what, own] : classes)
        fit_class(own, out);
    return out;
}

}  // namespace fabricast
