// What a PCI device id or a CPU model number says: the few devices of GPU servers, by name.
//
// Source: the public PCI id list (pci-ids.ucw.cz) for devices; vendors' product pages for PCIe generation, port rates
// and NVLinks per GPU; CPU model numbers as NCCL's topology code groups them.
// An id that is not here is unknown, never guessed.
#pragma once

#include <cstdint>
#include <string>

namespace fabricast::importers {

inline constexpr std::uint32_t kVendorNvidia = 0x10de, kVendorAmd = 0x1002, kVendorBroadcom = 0x1000;

struct GpuCard {
    std::string model;  ///< empty: unknown
    int sm = 0;         ///< compute capability times ten
};
GpuCard gpu_card(std::uint32_t vendor, std::uint32_t device);

/// PCIe transfer rate a GPU of this compute capability can do, GT/s; 0: unknown.
double card_gigatransfers_per_s(int sm);

/// NVLinks of the full board part of this compute capability; 0: unknown or none.
std::uint32_t usual_nvlinks(int sm);

/// Most a network card can do on all its ports, bit/s; 0: unknown card.
double network_card_bits_per_s(std::uint32_t vendor, std::uint32_t device);

/// "Intel Sapphire Rapids"; empty: unknown. family and model as NCCL writes them: extended fields folded in
/// (AMD 23/49, 25/1) or the raw cpuid family (AMD 143).
std::string cpu_name(const std::string& vendor, int family, int model);

}  // namespace fabricast::importers
