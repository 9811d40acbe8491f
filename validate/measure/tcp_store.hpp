// Where the processes of a job meet before NCCL can talk: rank 0 serves a few bytes at host:port to every other rank.
#pragma once

#include <string>
#include <vector>

namespace fabricast {

/// Rank 0: hands `bytes` to world - 1 others. Others: the bytes that rank 0 handed out. Waits up to `seconds` for ranks that start
/// later. Throws MeasureError, naming the store.
std::vector<char> share_bytes(const std::string& store, int rank, int world, std::vector<char> bytes,
                              int seconds = 120);

}  // namespace fabricast
