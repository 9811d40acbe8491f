#include "topologies/importers/pci_ids.hpp"

namespace fabricast::importers {

GpuCard gpu_card(std::uint32_t vendor, std::uint32_t device) {
    struct Entry {
        std::uint32_t device;
        const char* model;
        int sm;
    };
    static constexpr Entry nvidia[] = {{0x15f8, "P100 PCIe 16GB", 60},
                                       {0x15f9, "P100 SXM2 16GB", 60},
                                       {0x1b02, "Titan Xp", 61},
                                       {0x1db1, "V100 SXM2 16GB", 70},
                                       {0x1db4, "V100 PCIe 16GB", 70},
                                       {0x1db5, "V100 SXM2 32GB", 70},
                                       {0x1db6, "V100 PCIe 32GB", 70},
                                       {0x1db8, "V100 SXM3 32GB", 70},
                                       {0x1eb8, "T4", 75},
                                       {0x20b0, "A100 SXM4 40GB", 80},
                                       {0x20b2, "A100 SXM4 80GB", 80},
                                       {0x20b5, "A100 PCIe 80GB", 80},
                                       {0x20b7, "A30", 80},
                                       {0x20f1, "A100 PCIe 40GB", 80},
                                       {0x20f3, "A800 SXM4 80GB", 80},
                                       {0x2230, "RTX A6000", 86},
                                       {0x2235, "A40", 86},
                                       {0x2236, "A10", 86},
                                       {0x2237, "A10G", 86},
                                       {0x26b1, "RTX 6000 Ada", 89},
                                       {0x26b5, "L40", 89},
                                       {0x26b9, "L40S", 89},
                                       {0x27b8, "L4", 89},
                                       {0x2321, "H100 NVL", 90},
                                       {0x2324, "H800", 90},
                                       {0x2330, "H100 SXM5 80GB", 90},
                                       {0x2331, "H100 PCIe", 90},
                                       {0x2335, "H200 SXM 141GB", 90},
                                       {0x233b, "H200 NVL", 90},
                                       {0x2342, "GH200", 90},
                                       {0x2901, "B200", 100},
                                       {0x2941, "GB200", 100}};
    if (vendor == kVendorNvidia) {
        for (const Entry& entry : nvidia) {
            if (entry.device == device) {
                return {entry.model, entry.sm};
            }
        }
    }
    return {};
}

double card_gigatransfers_per_s(int sm) {
    switch (sm) {
        case 60:
        case 61:
        case 70:
        case 75: return 8;
        case 80:
        case 86:
        case 89: return 16;
        case 90:
        case 100:
        case 103:
        case 120: return 32;
        default: return 0;
    }
}

std::uint32_t usual_nvlinks(int sm) {
    switch (sm) {
        case 60: return 4;
        case 70: return 6;
        case 80: return 12;
        case 90:
        case 100:
        case 103: return 18;
        default: return 0;
    }
}

double network_card_bits_per_s(std::uint32_t vendor, std::uint32_t device) {
    struct Entry {
        std::uint32_t vendor, device;
        double gigabits_per_s;
    };
    static constexpr std::uint32_t mellanox = 0x15b3, amazon = 0x1d0f;
    static constexpr Entry cards[] = {
        {mellanox, 0x1013, 100},  // ConnectX-4
        {mellanox, 0x1015, 50},   // ConnectX-4 Lx
        {mellanox, 0x1017, 100},  // ConnectX-5
        {mellanox, 0x1019, 200},  // ConnectX-5 Ex, two ports of 100
        {mellanox, 0x101b, 200},  // ConnectX-6
        {mellanox, 0x101d, 200},  // ConnectX-6 Dx
        {mellanox, 0x101f, 50},   // ConnectX-6 Lx
        {mellanox, 0x1021, 400},  // ConnectX-7
        {mellanox, 0x1023, 800},  // ConnectX-8
        {mellanox, 0xa2d6, 200},  // BlueField-2
        {mellanox, 0xa2dc, 400},  // BlueField-3
        {amazon, 0xefa0, 100},    // EFA of p4d
    };
    for (const Entry& card : cards) {
        if (card.vendor == vendor && card.device == device) {
            return card.gigabits_per_s * 1e9;
        }
    }
    return 0;
}

std::string cpu_name(const std::string& vendor, int family, int model) {
    if (vendor == "GenuineIntel" && family == 6) {
        switch (model) {
            case 79: return "Intel Broadwell";
            case 85: return "Intel Skylake or Cascade Lake";
            case 106: return "Intel Ice Lake";
            case 143: return "Intel Sapphire Rapids";
            case 207: return "Intel Emerald Rapids";
            case 173: return "Intel Granite Rapids";
            default: return "Intel";
        }
    }
    if (vendor == "AuthenticAMD") {
        if ((family == 23 || family == 143) && model == 49) {
            return "AMD Rome";
        }
        if (family == 25) {
            return model == 1 ? "AMD Milan" : model == 17 ? "AMD Genoa" : "AMD";
        }
        return family == 26 ? "AMD Turin" : "AMD";
    }
    return "";
}

}  // namespace fabricast::importers
