// A module of an earlier interface: nothing behind its number may be read.
#include <cstdint>

extern "C" const std::uint32_t* fabricast_cuda_module() {
    static constexpr std::uint32_t kNumber = 0;
    return &kNumber;
}
