// PyTorch's CUDA caching allocator, replayed: how much memory a sequence of allocations makes it reserve.
//
//   sizes      rounded up to 512 B. Up to 1 MiB: pieces of 2 MiB segments; above: segments of 20 MiB for requests under
//              10 MiB, else of the request rounded up to 2 MiB
//   placement  best fit: the smallest free block that holds the request; split when more than 1 MiB (small pieces:
//              512 B) would be left over. Freed blocks merge with free neighbours of their segment
//   limit      a new segment that would pass it first waits for the GPU, then gives wholly free segments back (a retry);
//              if it still does not fit the allocation has failed
//   streams    a block that a collective read may be used again only when the collective has run: the host, which
//              issues kernels ahead of the GPU, cannot have it earlier. Two clocks follow this: the host advances by its
//              issue time, the GPU runs kernels one after another; the host is at most kLaunchQueue launches ahead.
// Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2 (constants kSmallSize, kSmallBuffer, kLargeBuffer,
// kMinLargeAlloc, kRoundLarge; record_stream). Not modelled: expandable segments, max_split_size, garbage collection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "topologies/graph/units.hpp"

namespace fabricast {

class CachingAllocator {
public:
    using Block = std::size_t;
    /// limit: what the segments may take together. host_per_kernel_s: issue time of one launch.
    CachingAllocator(Bytes limit, double host_per_kernel_s) : limit_(limit), host_per_kernel_s_(host_per_kernel_s) {}

    Block take(Bytes bytes);
    void give(Block block);
    /// Given back by the host; free once the GPU has done what was launched so far.
    void give_after_gpu(Block block);

    /// Launches kernels that take `seconds` together on the GPU.
    void run(double seconds, int launches);
    /// The host waits for the GPU.
    void synchronise();

    Bytes reserved() const { return reserved_; }
    Bytes used() const { return used_; }
    Bytes peak_reserved() const { return peak_reserved_; }
    Bytes peak_used() const { return peak_used_; }
    /// Peaks start anew from what is held now.
    void reset_peaks() {
        peak_reserved_ = reserved_;
        peak_used_ = used_;
    }
    int retries() const { return retries_; }
    bool failed() const { return failed_; }

private:
    struct Piece {
        Bytes size = 0;
        bool small = false;
        Block before = kNoBlock, after = kNoBlock;
        bool free = false;
    };
    using Pool = std::set<std::pair<Bytes, Block>>;
    static constexpr Block kNoBlock = ~Block{0};

    Block make(Piece piece);
    Pool& pool_of(const Piece& piece) { return pools_[piece.small ? 1 : 0]; }
    Block new_segment(Bytes bytes, bool small);
    void give_segments_back();
    void reclaim(bool all);

    Bytes limit_, reserved_ = 0, used_ = 0, peak_reserved_ = 0, peak_used_ = 0;
    int retries_ = 0;
    bool failed_ = false;
    std::vector<Piece> pieces_;
    std::vector<Block> unused_;  ///< places in pieces_
    Pool pools_[2];              ///< free pieces of large and small segments, by size, then age of place
    double host_per_kernel_s_, host_s_ = 0, gpu_s_ = 0;
    std::deque<double> launched_;                     ///< when the GPU finishes the launches in its queue
    std::deque<std::pair<double, Block>> after_gpu_;  ///< free at that time
};

}  // namespace fabricast
