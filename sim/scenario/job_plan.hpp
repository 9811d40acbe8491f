// What a job does beyond one step of a healthy machine: its data, its patience, and what is wrong with it.
//
// Times are seconds, all checked. A sample is one sequence. sim/step turns these into edits of the program, of capacities
// and of speeds; nothing here is a step time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fabricast {

/// How the samples of an epoch come to the data-parallel ranks.
struct DataPlan {
    enum class Sharding : std::uint8_t {
        padded,   ///< equal shares, filled up with samples from the front (PyTorch's DistributedSampler)
        strided,  ///< every dp-th sample: shares differ by one at most
        files,    ///< whole files are dealt out
        whole,    ///< no shards: every rank reads all, in an order of its own, and stops after its share
        counts,   ///< as stated
    };
    std::int64_t samples = 0;  ///< of an epoch; 0: no epochs are simulated
    std::int64_t epochs = 1;
    Sharding sharding = Sharding::padded;
    std::int64_t files = 0;
    std::vector<std::int64_t> counts;  ///< samples by dp rank
    bool drop_last = false;            ///< the batch that is not full
    bool own_order = true;             ///< sharding whole: each rank shuffles with a seed of its own
    bool rotates = false;              ///< who has how many samples moves by one rank every epoch
    bool meets = true;                 ///< ranks meet at the end of an epoch: a barrier, the mean of the loss
    std::string where;                 ///< place of data.samples, for errors

    std::int64_t workers = 0, prefetch = 2;  ///< of a rank; batches a worker prepares ahead
    double sample_s = 0;                     ///< that a worker takes for a sample; 0: data are always there
    double worker_start_s = 0;               ///< of the workers, at the beginning of an epoch
    bool persistent = false;                 ///< workers live on, and prepare the next epoch
    bool pageable = false;                   ///< batches go to the GPU from memory that is not pinned: the rank waits

    struct Boundary {
        std::string what;
        double takes_s = 0, grows_s = 0;  ///< at the first boundary, and more at each that follows
        std::int64_t every = 1;           ///< epochs
        std::string who = "all";          ///< "all", "rank 3", "node 1", "gpu 1.0"
        std::string where;
    };
    std::vector<Boundary> boundaries;
};

/// How long the job waits before it gives up.
struct TimeOuts {
    bool hccl = false;          ///< messages in the words of Ascend's library
    bool off = false;           ///< waits for ever
    double collective_s = 600;  ///< of a collective or message, from its launch
    double connect_s = 120;     ///< set-up of communicators
    double heartbeat_s = 480;   ///< of the watchdog itself
    int ib_exponent = 20, ib_retries = 7;
    double transport_s = 30;  ///< 4.096 us x 2^exponent x retries
    std::string where;        ///< place of the collective time-out, for errors
};

/// Something wrong with the machine or the job.
struct StepFault {
    enum class Kind : std::uint8_t {
        clock,       ///< a GPU's clock is held down
        slow,        ///< compute takes `factor` times as long
        rate,        ///< a link has `factor` of its rate
        lanes,       ///< a link lost `count` of its lanes
        collision,   ///< two flows share an uplink
        congestion,  ///< others take all but 1 / factor of the network
        loss,        ///< packets are lost, go-back-N sends again
        flap,        ///< a link is down for a while
        down,        ///< a link is down for good
        storage,     ///< reading a sample takes `factor` times as long, everywhere
        loader,      ///< the same on some ranks
        wandering,   ///< the same on one rank, another one every epoch
        leak,        ///< reading takes `factor` longer with every hour, as a share
        allocator,   ///< the allocator stops a rank for `seconds`, every `every` steps in the mean
        garbage,     ///< so does the collector of garbage
        sequence,    ///< compute of a replica varies from step to step
        hang,        ///< a rank stops but stays connected
        crash,       ///< a rank dies
    };
    Kind kind = Kind::slow;
    std::string text;   ///< "gpu 29.2 clock 1200 MHz at 2 h"
    std::string where;  ///< "gpu 29.2", "nic 3.2", "node 4", "rank 7", "stage 1", "all", a link
    double factor = 1, seconds = 0;
    std::int64_t count = 0, every = 1;
    bool synchronised = false;
    double at_s = -1, lasts_s = -1;  ///< -1: from the start, for good
    std::string place;               ///< file:line:column or the option, for errors
    bool timed() const { return at_s >= 0; }
};

}  // namespace fabricast
