#include "models/parallel/caching_allocator.hpp"

#include <algorithm>

namespace fabricast {
namespace {

constexpr Bytes kMiB = Bytes{1} << 20;
constexpr Bytes kGrain = 512, kSmallRequest = kMiB, kSmallSegment = 2 * kMiB, kLargeSegment = 20 * kMiB;
constexpr Bytes kOwnSegment = 10 * kMiB, kSegmentGrain = 2 * kMiB;
// Launches that fit in the queue between host and GPU; the next one waits (CUDA: 1024).
constexpr std::size_t kLaunchQueue = 1024;

Bytes round_up(Bytes bytes, Bytes grain) { return (bytes + grain - 1) / grain * grain; }

}  // namespace

CachingAllocator::Block CachingAllocator::make(Piece piece) {
    if (unused_.empty()) {
        pieces_.push_back(piece);
        return pieces_.size() - 1;
    }
    const Block at = unused_.back();
    unused_.pop_back();
    pieces_[at] = piece;
    return at;
}

void CachingAllocator::give_segments_back() {
    for (Pool& pool : pools_) {
        for (auto at = pool.begin(); at != pool.end();) {
            const Piece& piece = pieces_[at->second];
            if (piece.before != kNoBlock || piece.after != kNoBlock) {
                ++at;
                continue;
            }
            reserved_ -= piece.size;
            unused_.push_back(at->second);
            at = pool.erase(at);
        }
    }
}

CachingAllocator::Block CachingAllocator::new_segment(Bytes bytes, bool small) {
    const Bytes size = small ? kSmallSegment : bytes < kOwnSegment ? kLargeSegment : round_up(bytes, kSegmentGrain);
    if (reserved_ + size > limit_) {
        ++retries_;
        synchronise();
        Pool& pool = pools_[small ? 1 : 0];
        if (const auto fits = pool.lower_bound({bytes, 0}); fits != pool.end()) {
            const Block found = fits->second;
            pool.erase(fits);
            return found;
        }
        give_segments_back();
        failed_ = failed_ || reserved_ + size > limit_;
    }
    reserved_ += size;
    peak_reserved_ = std::max(peak_reserved_, reserved_);
    return make({size, small, kNoBlock, kNoBlock, false});
}

CachingAllocator::Block CachingAllocator::take(Bytes bytes) {
    bytes = std::max(round_up(bytes, kGrain), kGrain);
    reclaim(false);
    const bool small = bytes <= kSmallRequest;
    Pool& pool = pools_[small ? 1 : 0];
    Block block = kNoBlock;
    if (const auto fits = pool.lower_bound({bytes, 0}); fits != pool.end()) {
        block = fits->second;
        pool.erase(fits);
    } else {
        block = new_segment(bytes, small);
    }
    const Bytes left = pieces_[block].size - bytes;
    if (small ? left >= kGrain : left > kSmallRequest) {
        const Block rest = make({left, small, block, pieces_[block].after, true});
        if (pieces_[rest].after != kNoBlock)
            pieces_[pieces_[rest].after].before = rest;
        pieces_[block].after = rest;
        pieces_[block].size = bytes;
        pool.insert({left, rest});
    }
    pieces_[block].free = false;
    used_ += pieces_[block].size;
    peak_used_ = std::max(peak_used_, used_);
    return block;
}

void CachingAllocator::give(Block block) {
    Pool& pool = pool_of(pieces_[block]);
    used_ -= pieces_[block].size;
    pieces_[block].free = true;
    // `second` lies behind `first` in their segment
    const auto merge = [&](Block first, Block second) {
        pieces_[first].size += pieces_[second].size;
        pieces_[first].after = pieces_[second].after;
        if (pieces_[first].after != kNoBlock)
            pieces_[pieces_[first].after].before = first;
        unused_.push_back(second);
    };
    if (const Block after = pieces_[block].after; after != kNoBlock && pieces_[after].free) {
        pool.erase({pieces_[after].size, after});
        merge(block, after);
    }
    if (const Block before = pieces_[block].before; before != kNoBlock && pieces_[before].free) {
        pool.erase({pieces_[before].size, before});
        merge(before, block);
        block = before;
    }
    pool.insert({pieces_[block].size, block});
}

void CachingAllocator::give_after_gpu(Block block) {
    if (gpu_s_ <= host_s_)
        give(block);
    else
        after_gpu_.emplace_back(gpu_s_, block);
}

void CachingAllocator::reclaim(bool all) {
    while (!after_gpu_.empty() && (all || after_gpu_.front().first <= host_s_)) {
        const Block block = after_gpu_.front().second;
        after_gpu_.pop_front();
        give(block);
    }
}

void CachingAllocator::run(double seconds, int launches) {
    for (int i = 0; i < launches; ++i) {
        host_s_ += host_per_kernel_s_;
        if (launched_.size() >= kLaunchQueue) {
            host_s_ = std::max(host_s_, launched_.front());
            launched_.pop_front();
        }
        gpu_s_ = std::max(gpu_s_, host_s_) + seconds / launches;
        launched_.push_back(gpu_s_);
    }
}

void CachingAllocator::synchronise() {
    host_s_ = std::max(host_s_, gpu_s_);
    launched_.clear();
    reclaim(true);
}

}  // namespace fabricast
