#include "validate/measure/nvml.hpp"

#include <algorithm>
#include <array>

#include <dlfcn.h>
#include <fmt/format.h>

namespace fabricast {
namespace {

// of nvml.h; the interface is stable and versioned by the names of its functions
constexpr int kSuccess = 0, kNotSupported = 3, kNoPermission = 4, kDriverNotLoaded = 9;
constexpr int kClockSm = 1, kClockMemory = 2;
using Device = void*;

}  // namespace

std::string nvml_sentence(int code, std::string_view what) {
    const std::string why = code == kNoPermission      ? "no permission to read"
                            : code == kNotSupported    ? "this GPU does not tell"
                            : code == kDriverNotLoaded ? "no driver is loaded that would tell"
                                                       : fmt::format("NVML error {} on reading", code);
    return fmt::format("{} the {}; it stays unknown", why, what);
}

template <typename Function>
Function Nvml::symbol(const char* name) const {
    return handle_ == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle_, name));
}

Nvml::Nvml(const char* library) {
    handle_ = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) {
        note(fmt::format("{} is not there: driver, clocks and power stay unknown", library));
        return;
    }
    const auto init = symbol<int (*)()>("nvmlInit_v2");
    const int code = init == nullptr ? kNotSupported : init();
    if (code != kSuccess) {
        note(nvml_sentence(code, "driver, clocks and power"));
        dlclose(handle_);
        handle_ = nullptr;
    }
}

Nvml::~Nvml() {
    if (handle_ == nullptr)
        return;
    if (const auto shutdown = symbol<int (*)()>("nvmlShutdown"))
        shutdown();
    dlclose(handle_);
}

void Nvml::note(std::string sentence) {
    if (std::find(notes_.begin(), notes_.end(), sentence) == notes_.end())
        notes_.push_back(std::move(sentence));
}

std::string Nvml::driver() const {
    std::array<char, 96> text{};
    const auto read = symbol<int (*)(char*, unsigned)>("nvmlSystemGetDriverVersion");
    return read != nullptr && read(text.data(), text.size() - 1) == kSuccess ? text.data() : "";
}

void Nvml::read(const std::string& bus_id, MeasuredDevice& device) {
    const auto find = symbol<int (*)(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
    Device gpu = nullptr;
    if (find == nullptr)
        return;
    if (const int code = find(bus_id.c_str(), &gpu); code != kSuccess)
        return note(nvml_sentence(code, "state of a GPU"));
    const auto take = [&](int code, unsigned value, double scale, std::string_view what, double& into) {
        if (code == kSuccess)
            into = value * scale;
        else
            note(nvml_sentence(code, what));
    };
    unsigned value = 0;
    if (const auto clock = symbol<int (*)(Device, int, unsigned*)>("nvmlDeviceGetClockInfo")) {
        int code = clock(gpu, kClockSm, &value);
        take(code, value, 1, "clock of a GPU", device.clock_mhz);
        code = clock(gpu, kClockMemory, &value);
        take(code, value, 1, "memory clock of a GPU", device.memory_clock_mhz);
    }
    if (const auto power = symbol<int (*)(Device, unsigned*)>("nvmlDeviceGetPowerUsage")) {
        const int code = power(gpu, &value);
        take(code, value, 1e-3, "power of a GPU", device.power_w);
    }
    if (const auto limit = symbol<int (*)(Device, unsigned*)>("nvmlDeviceGetEnforcedPowerLimit")) {
        const int code = limit(gpu, &value);
        take(code, value, 1e-3, "power limit of a GPU", device.power_limit_w);
    }
}

}  // namespace fabricast
