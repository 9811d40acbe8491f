// The environment variables of NCCL that a scenario may set: values allowed, default, and what becomes of them here.
// Source: NCCL user guide and source, 2.28; version steps are noted at the variable.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/collectives/comm_model.hpp"

namespace fabricast::comm_env {

enum class Kind { algo, proto, channels, nvls, collnet, pxn, ib_timeout, ib_retry, integer, gdr_level, level, text };
enum class Effect {
    acts,        ///< read by its own function
    unmodelled,  ///< would act on a real job; this version does not model it
    faults,      ///< acts only after something broke
    sockets,     ///< read by the TCP transport only
    logs,        ///< diagnostics or selection of an interface
    network,     ///< acts on traffic between nodes, not modelled
};

struct Variable {
    std::string_view name;
    Kind kind;
    Effect effect;
    std::int64_t low, high, fallback;  ///< integer kinds; fallback -1: depends on the platform
    std::string_view remark = {};
};

inline constexpr std::int64_t kAny = INT64_MAX;
inline constexpr Variable kVariables[] = {
    {"NCCL_ALGO", Kind::algo, Effect::acts, 0, 0, -1},
    {"NCCL_PROTO", Kind::proto, Effect::acts, 0, 0, -1},
    {"NCCL_MIN_NCHANNELS", Kind::channels, Effect::acts, 1, kAny, -1},
    {"NCCL_MAX_NCHANNELS", Kind::channels, Effect::acts, 1, kAny, -1},
    {"NCCL_MIN_CTAS", Kind::channels, Effect::acts, 1, kAny, 1},
    {"NCCL_MAX_CTAS", Kind::channels, Effect::acts, 1, kAny, 64},
    {"NCCL_NVLS_ENABLE", Kind::nvls, Effect::acts, 0, 2, 2},
    {"NCCL_IB_TIMEOUT", Kind::ib_timeout, Effect::faults, 0, 255, 20},
    {"NCCL_IB_RETRY_CNT", Kind::ib_retry, Effect::faults, 0, 7, 7},
    {"NCCL_IB_RETURN_ASYNC_EVENTS", Kind::integer, Effect::faults, 0, 1, 1},
    {"NCCL_IB_RESILIENCY_PORT_FAILOVER", Kind::integer, Effect::faults, 0, 1, 0, "read from 2.30 on"},
    {"NCCL_IB_RESILIENCY_PORT_RECOVERY", Kind::integer, Effect::faults, 0, 1, 0, "read from 2.30 on"},
    {"NCCL_RAS_ENABLE", Kind::integer, Effect::faults, 0, 1, 1, "reports, does not abort"},
    {"NCCL_SOCKET_RETRY_CNT", Kind::integer, Effect::faults, 0, kAny, 34},
    {"NCCL_SOCKET_RETRY_SLEEP_MSEC", Kind::integer, Effect::faults, 0, kAny, 100},
    {"NCCL_SOCKET_NTHREADS", Kind::integer, Effect::sockets, 1, 16, -1},
    {"NCCL_NSOCKS_PERTHREAD", Kind::integer, Effect::sockets, 1, 16, -1},
    {"NCCL_NET_GDR_LEVEL", Kind::gdr_level, Effect::unmodelled, 0, 5, 2},
    {"NCCL_NET_GDR_READ", Kind::integer, Effect::unmodelled, 0, 1, -1},
    {"NCCL_P2P_LEVEL", Kind::level, Effect::unmodelled, 0, 5, -1},
    {"NCCL_P2P_DISABLE", Kind::integer, Effect::unmodelled, 0, 1, 0},
    {"NCCL_SHM_DISABLE", Kind::integer, Effect::unmodelled, 0, 1, 0},
    {"NCCL_NTHREADS", Kind::integer, Effect::unmodelled, 64, 512, -1},
    {"NCCL_LL128_NTHREADS", Kind::integer, Effect::unmodelled, 160, 640, 640},
    {"NCCL_BUFFSIZE", Kind::integer, Effect::unmodelled, 1, kAny, 4194304},
    {"NCCL_LL_BUFFSIZE", Kind::integer, Effect::unmodelled, 1, kAny, 524288},
    {"NCCL_LL128_BUFFSIZE", Kind::integer, Effect::unmodelled, 1, kAny, 4915200},
    {"NCCL_P2P_NET_CHUNKSIZE", Kind::integer, Effect::unmodelled, 1, kAny, 131072},
    {"NCCL_NCHANNELS_PER_NET_PEER", Kind::integer, Effect::unmodelled, 1, 64, -1},
    {"NCCL_NVLS_NCHANNELS", Kind::integer, Effect::unmodelled, 1, 64, -1},
    {"NCCL_COLLNET_ENABLE", Kind::collnet, Effect::acts, 0, 1, 0, "needs the SHARP plug-in"},
    {"NCCL_CROSS_NIC", Kind::integer, Effect::unmodelled, 0, 2, 2},
    {"NCCL_PXN_DISABLE", Kind::pxn, Effect::acts, 0, 1, 0},
    {"NCCL_P2P_PXN_LEVEL", Kind::integer, Effect::unmodelled, 0, 2, 2},
    {"NCCL_PAT_ENABLE", Kind::integer, Effect::unmodelled, 0, 2, 2},
    {"NCCL_NET_OVERHEAD", Kind::integer, Effect::unmodelled, 0, kAny, -1},
    {"NCCL_THREAD_THRESHOLDS", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_TOPO_FILE", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_GRAPH_FILE", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_TUNER_PLUGIN", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_NET", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_NET_PLUGIN", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_IB_DISABLE", Kind::integer, Effect::unmodelled, 0, 1, 0, "1 would put all traffic on TCP"},
    {"NCCL_CUMEM_ENABLE", Kind::integer, Effect::unmodelled, 0, 2, 2},
    {"NCCL_LAUNCH_MODE", Kind::text, Effect::unmodelled, 0, 0, -1},
    {"NCCL_IB_QPS_PER_CONNECTION", Kind::integer, Effect::network, 1, 128, 1},
    {"NCCL_IB_SPLIT_DATA_ON_QPS", Kind::integer, Effect::network, 0, 1, 0},
    {"NCCL_IB_SL", Kind::integer, Effect::network, 0, 15, 0,
     "a service level matters only when other traffic shares the fabric"},
    {"NCCL_IB_TC", Kind::integer, Effect::network, 0, 255, 0,
     "a traffic class matters only when other traffic shares the fabric"},
    {"NCCL_IB_FIFO_TC", Kind::integer, Effect::network, 0, 255, -1},
    {"NCCL_IB_ADAPTIVE_ROUTING", Kind::integer, Effect::network, 0, 1, -1},
    {"NCCL_IB_AR_THRESHOLD", Kind::integer, Effect::network, 0, kAny, 8192},
    {"NCCL_IB_GID_INDEX", Kind::integer, Effect::network, -1, 255, -1},
    {"NCCL_IB_PCI_RELAXED_ORDERING", Kind::integer, Effect::network, 0, 2, 2},
    {"NCCL_IB_MERGE_NICS", Kind::integer, Effect::network, 0, 1, 1},
    {"NCCL_IB_CUDA_SUPPORT", Kind::integer, Effect::network, 0, 1, -1,
     "not read since 2.4; NCCL_NET_GDR_LEVEL replaced it"},
    {"NCCL_IB_HCA", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_SOCKET_IFNAME", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_SOCKET_FAMILY", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_DEBUG", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_DEBUG_SUBSYS", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_DEBUG_FILE", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_TOPO_DUMP_FILE", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_GRAPH_DUMP_FILE", Kind::text, Effect::logs, 0, 0, -1},
    {"NCCL_ASYNC_ERROR_HANDLING", Kind::integer, Effect::faults, 0, 3, -1, "renamed TORCH_NCCL_ASYNC_ERROR_HANDLING"},
    {"NCCL_BLOCKING_WAIT", Kind::integer, Effect::faults, 0, 1, -1, "renamed TORCH_NCCL_BLOCKING_WAIT"},
};

/// Functions NCCL_ALGO and NCCL_PROTO may name.
struct Function {
    std::string_view name;
    Collective kind;
};
inline constexpr Function kFunctions[] = {{"broadcast", Collective::broadcast},
                                          {"reduce", Collective::reduce},
                                          {"allgather", Collective::all_gather},
                                          {"reducescatter", Collective::reduce_scatter},
                                          {"allreduce", Collective::all_reduce}};

}  // namespace fabricast::comm_env
