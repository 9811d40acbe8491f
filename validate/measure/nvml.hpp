// Clocks and power of a GPU while it is measured, read through the driver's management library, found at run time. Reads only:
// no clock, limit or mode is ever set. What cannot be read is told in one sentence and left unknown.
#pragma once

#include <string>
#include <vector>

#include "validate/measure/measurement.hpp"

namespace fabricast {

class Nvml {
public:
    /// library: "libnvidia-ml.so.1".
    explicit Nvml(const char* library = "libnvidia-ml.so.1");
    ~Nvml();
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    bool found() const { return handle_ != nullptr; }
    std::string driver() const;  ///< empty when not known
    /// Fills clocks, power and limit as they are now; bus_id as CUDA tells it.
    void read(const std::string& bus_id, MeasuredDevice& device);
    /// What could not be read and why, each once.
    const std::vector<std::string>& notes() const { return notes_; }

private:
    void note(std::string sentence);
    template <typename Function>
    Function symbol(const char* name) const;
    void* handle_ = nullptr;
    std::vector<std::string> notes_;
};

/// "no permission to read the power of a GPU; it stays unknown"; codes of nvml.h.
std::string nvml_sentence(int code, std::string_view what);

}  // namespace fabricast
