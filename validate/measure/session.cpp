#include "validate/measure/session.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>

#include <fmt/format.h>

namespace fabricast {
namespace {

std::atomic<bool> stop_asked = false;
std::int32_t (*stop_asked_of_program)() = nullptr;
void on_signal(int) { stop_asked = true; }

}  // namespace

MeasureSession::MeasureSession(MeasurementFile start, MeasureOptions options)
    : file_(std::move(start)), options_(std::move(options)) {
    stop_asked = false;
    file_.complete = false;
    file_.reason = "the measurement was still running";
    file_.date = utc_now();
    file_.tool = "fabricast-validate " FABRICAST_VERSION;
    save();  // an output that cannot be written is told before anything is measured
}

bool MeasureSession::interrupted() {
    return stop_asked || (stop_asked_of_program != nullptr && stop_asked_of_program() != 0);
}
void MeasureSession::ask_too(std::int32_t (*asked)()) { stop_asked_of_program = asked; }
void MeasureSession::interrupt() { stop_asked = true; }
void MeasureSession::catch_interrupts() {
    std::signal(SIGINT, on_signal);
    std::signal(SIGTERM, on_signal);
}

Samples MeasureSession::sample(const std::function<double()>& once) const {
    using Clock = std::chrono::steady_clock;
    const int warm_ups = options_.quick ? 1 : 5, most = options_.quick ? 7 : 25, fewest = 3;
    const auto budget = std::chrono::milliseconds(options_.quick ? 60 : 1000);
    for (int i = 0; i < warm_ups && !interrupted(); ++i)
        once();
    std::vector<double> us;
    const auto start = Clock::now();
    while (static_cast<int>(us.size()) < most &&
           (static_cast<int>(us.size()) < fewest || Clock::now() - start < budget)) {
        us.push_back(once());
        if (interrupted())
            break;
    }
    return samples_of(std::move(us));
}

void MeasureSession::tell(const std::string& what) const {
    if (options_.progress)
        std::fprintf(stderr, "%s\n", what.c_str());
}

void MeasureSession::add(MeasuredPoint point) {
    std::string shape;
    for (const auto& [key, value] : point.shape)
        shape += fmt::format(" {} {}", key, value);
    tell(fmt::format("{} {} {}{}: {:.4g} us ({:.4g} to {:.4g})", point.test, point.what, point.mode, shape,
                     point.time.median_us, point.time.p10_us, point.time.p90_us));
    file_.points.push_back(std::move(point));
    save();
}

void MeasureSession::add(MeasuredCurve curve) {
    tell(fmt::format("{} {} of {} ranks: {} sizes", curve.link, curve.collective, curve.ranks, curve.points.size()));
    file_.curves.push_back(std::move(curve));
    save();
}

void MeasureSession::note(std::string sentence) {
    tell(sentence);
    file_.notes.push_back(std::move(sentence));
}

void MeasureSession::save() const {
    if (!options_.output.empty())
        write_measurement(file_, options_.output);
}

MeasurementFile MeasureSession::finish() {
    file_.complete = !interrupted();
    file_.reason = file_.complete ? "" : "interrupted; the tests after the last one here were not run";
    save();
    return file_;
}

}  // namespace fabricast
