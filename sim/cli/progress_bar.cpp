#include "sim/cli/progress_bar.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace fabricast::cli {
namespace {

constexpr auto kEvery = std::chrono::milliseconds(100);

bool can_show() {
    const char* term = std::getenv("TERM");
    return isatty(STDERR_FILENO) != 0 && term != nullptr && std::strcmp(term, "dumb") != 0;
}

std::string clock_text(double seconds) {
    const auto whole = static_cast<long long>(seconds + 0.5);
    return whole >= 3600 ? fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60)
                         : fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

std::string progress_line(const plan::SearchProgress& p, double seconds) {
    constexpr std::size_t kWidth = 20;
    const bool looking = p.looked_at < p.size;
    const double done = looking ? static_cast<double>(p.looked_at) : static_cast<double>(p.evaluated);
    const double all = looking ? static_cast<double>(p.size) : static_cast<double>(p.evaluated + p.ahead);
    const auto full = all > 0 ? static_cast<std::size_t>(done / all * kWidth) : 0;
    std::string text = fmt::format("[{}{}] ", std::string(full, '#'), std::string(kWidth - full, '-'));
    if (looking)
        return text + fmt::format("{} of {} layouts looked at", p.looked_at, p.size);
    text += fmt::format("{} of about {} simulated", p.evaluated, p.evaluated + p.ahead);
    if (p.known > 0)
        text += fmt::format(", {} known", p.known);
    const double rate = seconds > 0 ? static_cast<double>(p.evaluated - p.known) / seconds : 0;
    if (rate > 0)
        text += fmt::format(", {:.1f} a second, about {} left", rate, clock_text(static_cast<double>(p.ahead) / rate));
    return text;
}

ProgressBar::ProgressBar(bool quiet) : shows_(!quiet && can_show()), last_(Clock::now() - kEvery) {}

void ProgressBar::tell(const plan::SearchProgress& progress) {
    if (!shows_)
        return;
    const std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    if (!begun_ && progress.looked_at >= progress.size) {
        begun_ = true;
        begin_ = now;
    }
    if (now - last_ < kEvery)
        return;
    last_ = now;
    shown_ = true;
    const double seconds = begun_ ? std::chrono::duration<double>(now - begin_).count() : 0;
    std::fputs(fmt::format("\r{}\033[K", progress_line(progress, seconds)).c_str(), stderr);
    std::fflush(stderr);
}

void ProgressBar::clear() {
    if (!shown_)
        return;
    shown_ = false;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
}

}  // namespace fabricast::cli
