#include "models/compute/interference.hpp"

#include <algorithm>

namespace fabricast {

Available available(const GpuSpec& gpu, Interference state) {
    double sms = 0, wire = 0;
    switch (state) {
        case Interference::alone:
        case Interference::count: break;
        case Interference::kernel_waiting: sms = kNetworkSms; break;
        case Interference::network:
            sms = kNetworkSms;
            wire = kNetworkBytesPerSecond;
            break;
        case Interference::nvlink:
            sms = kNvlinkSms;
            wire = std::max(gpu.nvlink_achieved_bytes_per_s, kNetworkBytesPerSecond);
            break;
        case Interference::both:
            sms = kNvlinkSms + kNetworkSms;
            wire = std::max(gpu.nvlink_achieved_bytes_per_s, kNetworkBytesPerSecond) + kNetworkBytesPerSecond;
            break;
    }
    const double total = static_cast<double>(gpu.sms);
    return {std::max(total - sms, total / kMaxSlowdown),
            std::max(gpu.hbm_bytes_per_s - kHbmBytesPerWireByte * wire, gpu.hbm_bytes_per_s / kMaxSlowdown)};
}

}  // namespace fabricast
