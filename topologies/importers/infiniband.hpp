// Reads what InfiniBand tools print about a fabric: ibnetdiscover and iblinkinfo (also its -l form).
//
//   ibnetdiscover: Switch 41 "S-<guid>" # "MF0;leaf01:MQM8700/U1" enhanced port 0 lid 12
//                  [1] "H-<guid>"[1](<port guid>) # "node01 mlx5_0" lid 5 4xHDR
//   iblinkinfo:    12  1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  5  1[  ] "node01 mlx5_0" ( Could be ... )
// iblinkinfo prints the speed of one lane on the wire, ibnetdiscover its name. Data rate of a link =
// width x data rate of a lane (SDR 2, DDR 4, QDR 8, FDR10 10, FDR 13.64, EDR 25, HDR 50, NDR 100, XDR 200 Gb/s; InfiniBand
// architecture specification). Adapters whose description starts with the same word are one host; a link that
// both ends report is one link. Ports that are down are counted in a note. Aggregation nodes inside switches are
// left out. Told: links narrower or slower than most of the same kind on their switch (or in the fabric, where a
// switch has few), ends that disagree, links the tool itself says could be better.
#pragma once

#include <optional>
#include <string_view>

#include "topologies/importers/fabric.hpp"

namespace fabricast::importers {

/// Both throw ImportError.
FabricDescription read_ibnetdiscover(const SourceText& source);
FabricDescription read_iblinkinfo(const SourceText& source);

struct IbLane {
    std::string_view name;
    double wire_gigabits_per_s;  ///< as iblinkinfo prints it
    double data_gigabits_per_s;
};
const IbLane* ib_lane_named(std::string_view name);         ///< "HDR"; null: unknown
const IbLane* ib_lane_of_wire_rate(double gigabits_per_s);  ///< within 2 %; null: none

}  // namespace fabricast::importers
