// Units and identifiers shared by every room.
//
// Time inside a step is an integer count of picoseconds; sizes are integer bytes; a rate is an integer
// count of 1/1024 byte per second (so that 1 byte/s .. 8 PB/s is exact in 64 bits). Decimal prefixes are
// powers of ten (GB = 1e9 bytes), binary prefixes powers of two (GiB = 2^30 bytes).
//
// Identifiers are distinct enum types: a GpuId cannot be passed where a LinkId is wanted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fabricast {

using Picoseconds = std::int64_t;  ///< simulated time inside a step
using Bytes = std::int64_t;        ///< a size or a payload
using Rate = std::int64_t;         ///< 1/1024 byte per second

inline constexpr Picoseconds kPicosecondsPerSecond = 1'000'000'000'000;
inline constexpr std::int64_t kRateUnitsPerByte = 1024;

enum class GpuId : std::uint32_t {};   ///< a GPU of the cluster, node-major: node * gpus_per_node + local
enum class NodeId : std::uint32_t {};  ///< a server
enum class NicId : std::uint32_t {};   ///< a network adapter, node-major
enum class LinkId : std::uint32_t {};  ///< a directed link or a capacity-limited node

template <typename Id>
constexpr std::size_t index(Id id) {
    return static_cast<std::size_t>(id);
}

/// bytes per second -> Rate, rounded down (a capacity is never overstated). bytes_per_s >= 0.
constexpr Rate rate_from_bytes_per_s(double bytes_per_s) {
    return static_cast<Rate>(bytes_per_s * static_cast<double>(kRateUnitsPerByte));
}
constexpr double bytes_per_s(Rate rate) { return static_cast<double>(rate) / static_cast<double>(kRateUnitsPerByte); }
/// seconds -> picoseconds, rounded to nearest. The only place where floating seconds become time.
constexpr Picoseconds picoseconds_from_s(double seconds) {
    const double ps = seconds * static_cast<double>(kPicosecondsPerSecond);
    return static_cast<Picoseconds>(ps + (ps < 0 ? -0.5 : 0.5));
}
constexpr double seconds(Picoseconds ps) {
    return static_cast<double>(ps) / static_cast<double>(kPicosecondsPerSecond);
}

}  // namespace fabricast
