// The elements of a NCCL topology XML, in file order: CPUs, the PCIe tree, GPUs with their links, networks.
//
// First half of nccl_xml: what the file says, checked element by element; the second half makes paths of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/importers/machine.hpp"
#include "topologies/importers/source_text.hpp"

namespace fabricast::importers {

struct LinkTo {
    std::string target;  ///< bus id of a GPU or NVSwitch, lower case
    std::uint32_t count = 0;
    bool to_switch = false;
    std::uint32_t line = 0;
};

struct GpuElement {
    Gpu gpu;
    bool has_number = false;  ///< the file gives it a dev
    std::vector<LinkTo> links;
    std::uint32_t switch_links = 0;  ///< counted by nccl_xml
    std::uint32_t line = 0;
};

struct NcclElements {
    Machine machine;  ///< numa, pci and listed NICs; no GPUs and paths yet
    std::vector<GpuElement> gpus;
    bool any_links = false;  ///< an <nvlink> or <xgmi> is there
};

/// Throws ImportError.
NcclElements read_nccl_elements(const SourceText& source);

}  // namespace fabricast::importers
