// Which of the readable formats a text is, and one door to all readers.
//
// Decided by what only that format has: a <system> or <graphs> element, a header of GPU names, Switch/Ca lines with
// quoted ids, "==(" arrows, SwitchName=/BlockName=, the four lists of ASTRA-sim, a first line of three or six counts.
#pragma once

#include <string>
#include <variant>

#include "topologies/importers/fabric.hpp"
#include "topologies/importers/machine.hpp"

namespace fabricast::importers {

enum class Format : std::uint8_t {
    unknown,
    nvidia_smi_topo,
    nccl_xml,
    ns3_topology,
    astra_network,  ///< the retired JSON form and logical dimensions too: their reader refuses them by name
    slurm_topology,
    ibnetdiscover,
    iblinkinfo
};
std::string format_name(Format format);
/// "nvidia-smi topo -m, NCCL topology XML, ...", for messages.
std::string readable_formats();

Format detect(const SourceText& source);

using Imported = std::variant<Machine, FabricDescription>;

/// Detects and reads. Throws ImportError; for an unknown format its sentence lists the readable ones.
Imported import_text(const SourceText& source);
Imported import_file(const std::string& path);

}  // namespace fabricast::importers
