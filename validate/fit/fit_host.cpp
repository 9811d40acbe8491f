#include "validate/fit/fit_host.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "validate/fit/least_squares.hpp"

namespace fabricast {
namespace {

constexpr double kFree = 5;
constexpr std::size_t kGroups = 5, kFewest = 4;
constexpr double kFloat = 4;

double value(const Calibration::Values& constants, std::string_view key) {
    for (const auto& [name, x] : constants) {
        if (name == key)
            return x;
    }
    return 0;
}

using Points = std::vector<const HostPoint*>;

std::vector<FitParameter> parameters_of(const std::string& test, const Points& points) {
    double most = 0, least = 1e9;
    for (const HostPoint* p : points) {
        const double work = test == "gemm" ? 2 * p->a * p->b * p->c : test == "memory" ? p->a : p->b;
        most = std::max(most, work / p->measured_s);
        least = std::min(least, p->measured_s);
    }
    const auto rate = [&](std::string name, double start) {
        return FitParameter{std::move(name), start, 1e5, 1e15, kFree, 0};
    };
    const auto time = [&](std::string name, double start) {
        return FitParameter{std::move(name), start, 1e-9, .09, kFree, 0};
    };
    if (test == "gemm")
        return {time("gemm.t0", least / 4),
                rate("gemm.rate", most),
                {"gemm.small", 4, .01, 1e4, kFree, 0},
                rate("gemm.bandwidth", most)};
    if (test == "memory")
        return {time("memory.t0", least / 4),
                rate("memory", most / 2),
                rate("memory.cache", most),
                {"memory.cache_size", 1 << 20, 32e3, 1e9, kFree, 0}};
    return {time(test + ".hop", least / 4), rate(test + ".bandwidth", most)};
}

Calibration::Values constants_of(const std::vector<FitParameter>& parameters, const std::vector<double>& x) {
    Calibration::Values out;
    for (std::size_t k = 0; k < x.size(); ++k)
        out.emplace_back(parameters[k].name, x[k]);
    return out;
}

std::vector<double> errors(const Points& points, const Calibration::Values& constants) {
    std::vector<double> out;
    for (const HostPoint* p : points)
        out.push_back(std::log(predicted_host_s(*p, constants) / p->measured_s));
    return out;
}

RobustFit fit_points(const Points& points, const std::vector<FitParameter>& parameters) {
    return robust_least_squares(
        parameters, [&](const std::vector<double>& x) { return errors(points, constants_of(parameters, x)); },
        {.floor = .03, .most_iterations = 40});
}

}  // namespace

double predicted_host_s(const HostPoint& p, const Calibration::Values& constants) {
    const auto of = [&](std::string_view key) { return value(constants, key); };
    if (p.test == "gemm") {
        if (!(of("gemm.rate") > 0))
            return 0;
        const double elements = p.a * p.c + p.c * p.b + p.a * p.b;
        return of("gemm.t0") +
               2 * p.a * p.b * p.c / of("gemm.rate") * (1 + of("gemm.small") * (1 / p.a + 1 / p.b + 1 / p.c)) +
               kFloat * elements / of("gemm.bandwidth");
    }
    if (p.test == "memory") {
        if (!(of("memory") > 0))
            return 0;
        const double inside = std::min(1.0, of("memory.cache_size") / p.b);
        return of("memory.t0") + p.a * (inside / of("memory.cache") + (1 - inside) / of("memory"));
    }
    const double bandwidth = of(p.test + ".bandwidth");
    return bandwidth > 0 ? 2 * (p.a - 1) * (of(p.test + ".hop") + p.b / p.a / bandwidth) : 0;
}

std::vector<HostPoint> host_points(const MeasurementFile& m) {
    std::vector<HostPoint> out;
    if (m.backend != "host")
        return out;
    for (std::size_t i = 0; i < m.points.size(); ++i) {
        const MeasuredPoint& p = m.points[i];
        const std::string where = fmt::format("{}: points[{}]", m.file, i);
        const double seconds = p.time.median_us * 1e-6;
        if (p.test == "gemm")
            out.push_back({"gemm", where, double(p.at("m")), double(p.at("n")), double(p.at("k")), seconds});
        else if (p.test == "memory")
            out.push_back({"memory", where, double(p.at("bytes")), double(p.at("working_set")), 0, seconds});
    }
    for (const MeasuredCurve& curve : m.curves) {
        for (const MeasuredCurve::Point& p : curve.points) {
            if (!curve.link.empty() && curve.collective == "all_reduce")
                out.push_back(
                    {curve.link,
                     fmt::format("{}: {} all_reduce of {} ranks, {} bytes", m.file, curve.link, curve.ranks, p.bytes),
                     double(curve.ranks), double(p.bytes), 0, p.out_of_place_us * 1e-6});
        }
    }
    return out;
}

HostFit fit_host(const MeasurementFile& measurement) {
    const std::vector<HostPoint> all = host_points(measurement);
    HostFit out;
    for (const char* test : {"gemm", "memory", "threads", "loopback"}) {
        Points points;
        for (const HostPoint& p : all) {
            if (p.test == test)
                points.push_back(&p);
        }
        if (points.size() < kFewest)
            continue;
        const std::vector<FitParameter> parameters = parameters_of(test, points);
        std::vector<double> start;
        for (const FitParameter& p : parameters)
            start.push_back(p.start);
        const std::vector<double> before = errors(points, constants_of(parameters, start));
        const RobustFit fit = fit_points(points, parameters);
        PartFit part;
        part.what = std::string("host ") + test;
        for (std::size_t i = 0; i < points.size(); ++i)
            part.points.push_back({points[i]->where, fmt::format("{}", i % kGroups), before[i], fit.residuals[i],
                                   fit.residuals[i], fit.weights[i] == 0});
        part.crossed = points.size() >= 2 * kGroups;
        for (std::size_t group = 0; part.crossed && group < kGroups; ++group) {
            Points others, own;
            for (std::size_t i = 0; i < points.size(); ++i)
                (i % kGroups == group ? own : others).push_back(points[i]);
            const std::vector<double> left_out =
                errors(own, constants_of(parameters, fit_points(others, parameters).values));
            for (std::size_t i = 0; i < own.size(); ++i)
                part.points[group + i * kGroups].cross_error = left_out[i];
        }
        settle(part);
        part.kept = true;  // there are no defaults of a host to fall back on
        part.reason.clear();
        for (auto& one : constants_of(parameters, fit.values))
            out.constants.push_back(std::move(one));
        out.parts.push_back(std::move(part));
    }
    return out;
}

}  // namespace fabricast
