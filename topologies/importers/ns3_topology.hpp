// Reads topology files of ns-3 simulators, in the forms of ASTRA-sim and SimAI.
//
//   ASTRA-sim: nodes switches links                                        SimAI: nodes gpus_per_server nvswitches
//              switch ids                                                          switches links gpu_type
//              src dst 200Gbps 0.0005ms error_rate       (per link)                nvswitch ids, then switch ids; links
// Words are read one after the other, as ns-3 does; lines do not matter. Links are duplex. Rates and times have ns-3's
// units: bps, Kbps, Gb/s, GBps, KiB/s ...; s, ms, us, ns; bare numbers are bit/s and seconds (noted).
// Nodes that are no switch are GPUs. In SimAI files ids run GPUs, NVSwitches, switches.
// Refused: ids out of range or given twice, links to themselves, fewer or more links than the first line says.
#pragma once

#include <optional>
#include <string_view>

#include "topologies/importers/fabric.hpp"

namespace fabricast::importers {

/// Throws ImportError.
FabricDescription read_ns3_topology(const SourceText& source);

/// "200Gbps" -> 25e9 bytes/s; "0.0005ms" -> 5e-7 s. has_unit tells bare numbers.
std::optional<double> ns3_bytes_per_s(std::string_view text, bool& has_unit);
std::optional<double> ns3_seconds(std::string_view text, bool& has_unit);

}  // namespace fabricast::importers
