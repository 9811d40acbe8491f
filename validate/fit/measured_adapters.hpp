// What perftest shows of a network adapter: rate of large messages, latency of small ones; from measurement files, or straight
// from logs of ib_write_bw, ib_read_bw, ib_send_bw and their _lat siblings.
//
//   bandwidth   messages of 64 KiB and more, where the rate stands still; smaller ones show how fast messages are posted
//   latency     messages of up to 64 bytes; one way for write and send, there and back for read and atomic
//
// perftest does not tell the line rate: an index does (column link: "HDR 200G"), or the caller's words or preset. The class of
// the network is the link type: IB is `ib`, Ethernet `roce`.
//
// Refused: a rate above what packets leave of the line, line x M / (M + h), M bytes of payload (MTU) and h of headers a packet;
// a latency below that of one switch. Left out and told: failed runs, loopback.
//
// Source of h: RoCEv2 82 = preamble 8, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC 4, FCS 4, gap 12; InfiniBand 26 = LRH 8, BTH 12,
// ICRC 4, VCRC 2 (IBTA specification volume 1, annex A17 for RoCEv2; IEEE 802.3). Public logs at MTU 4096 on RoCE: 196.07 of
// 200 Gb/s and 98.01 of 100 Gb/s; the formula gives 196.08 and 98.04.
#pragma once

#include <string>
#include <vector>

#include "validate/ingest/perftest.hpp"
#include "validate/measure/measurement.hpp"
#include "validate/score/platform.hpp"

namespace fabricast {

struct AdapterPoint {
    enum class Kind { bandwidth, latency };
    Kind kind = Kind::bandwidth;
    std::string where, run;      ///< "fabric.json: a.txt write 65536 bytes"; the run: what a cross-check leaves out
    std::string network;         ///< "ib", "roce"
    std::int64_t bytes = 0;      ///< of a message
    double line_bits_per_s = 0;  ///< of the adapter, both ways where both were summed; bandwidth alone
    int one_ways = 1;            ///< 2: there and back; latency alone
    double measured_s = 0;       ///< of a message
};

/// Logs, or an index of logs beside it (columns file, tool, link), as a measurement file; runs that cannot be used are told
/// in `notes`. Throws IngestError when nothing is left.
MeasurementFile measurement_of_perftest(const std::vector<std::string>& files, const PlatformHint& hint);

/// notes: what is left out, a sentence each. Throws IngestError for a point that cannot be.
std::vector<AdapterPoint> adapter_points(const MeasurementFile& measurement, const PlatformHint& hint,
                                         std::vector<std::string>& notes);

/// Share of the line rate that packets of this payload leave.
double packet_share(const std::string& network, double mtu_bytes);

}  // namespace fabricast
