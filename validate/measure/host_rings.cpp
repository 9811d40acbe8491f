// Ring all-reduce of floats: n-1 steps of reduce-scatter, n-1 of all-gather; a step sends a chunk to the next rank and takes one
// from the one before. Between threads a chunk is read from the neighbour's buffer once it is ready; between processes it goes
// through TCP sockets on 127.0.0.1, sent and received at once, so that full sockets cannot hold each other up.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "validate/measure/host_backend.hpp"

namespace fabricast {
namespace {

using Clock = std::chrono::steady_clock;
using Buffer = std::vector<float>;

double us_since(Clock::time_point start) {
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Small whole numbers: sums are exact.
float start_value(int rank, std::size_t i) {
    return static_cast<float>((static_cast<std::size_t>(rank) + 1) * (i % 64));
}
void fill(Buffer& buffer, int rank) {
    for (std::size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = start_value(rank, i);
}
bool right(const Buffer& buffer, int ranks) {
    const std::size_t sum = static_cast<std::size_t>(ranks) * (static_cast<std::size_t>(ranks) + 1) / 2;
    for (std::size_t i = 0; i < buffer.size(); ++i) {
        if (buffer[i] != static_cast<float>(sum * (i % 64)))
            return false;
    }
    return true;
}
[[noreturn]] void wrong(const char* link, int ranks, std::size_t floats) {
    throw MeasureError(
        fmt::format("{} all_reduce of {} ranks, {} bytes: a wrong sum", link, ranks, floats * sizeof(float)));
}

/// Spins a little, then lets others run: ranks may share processors.
template <typename Ready>
void wait_for(const Ready& ready) {
    for (int i = 0; !ready(); ++i) {
        if (i > 64)
            std::this_thread::yield();
    }
}

struct Barrier {
    explicit Barrier(int members) : members_(members) {}
    void wait() {
        const int turn = turn_.load();
        if (++arrived_ == members_) {
            arrived_ = 0;
            ++turn_;
        } else {
            wait_for([&] { return turn_.load() != turn; });
        }
    }

private:
    int members_;
    std::atomic<int> arrived_ = 0, turn_ = 0;
};

struct alignas(64) Progress {
    std::atomic<long> done = 0;  ///< steps whose chunk is in the buffer
};

/// One rank of the ring over buffers that all can read.
void ring_step_threads(int rank, int ranks, std::vector<Buffer>& buffers, std::vector<Progress>& progress,
                       long before) {
    const int from = (rank + ranks - 1) % ranks;
    const std::size_t chunk = buffers[0].size() / static_cast<std::size_t>(ranks);
    Buffer& own = buffers[static_cast<std::size_t>(rank)];
    const Buffer& theirs = buffers[static_cast<std::size_t>(from)];
    for (int step = 0; step < 2 * (ranks - 1); ++step) {
        // the chunk that `from` finished one step earlier
        const int which = ((rank - step - 1) % ranks + 2 * ranks) % ranks;
        const std::size_t begin = static_cast<std::size_t>(which) * chunk;
        wait_for([&] {
            return progress[static_cast<std::size_t>(from)].done.load(std::memory_order_acquire) >= before + step;
        });
        if (step < ranks - 1) {
            for (std::size_t i = begin; i < begin + chunk; ++i)
                own[i] += theirs[i];
        } else {
            std::copy_n(theirs.begin() + static_cast<std::ptrdiff_t>(begin), chunk,
                        own.begin() + static_cast<std::ptrdiff_t>(begin));
        }
        progress[static_cast<std::size_t>(rank)].done.store(before + step + 1, std::memory_order_release);
    }
}

class Socket {
public:
    Socket() = default;
    explicit Socket(int fd) : fd_(fd) {}
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;
    ~Socket() {
        if (fd_ >= 0)
            close(fd_);
    }
    int get() const { return fd_; }

private:
    int fd_ = -1;
};

[[noreturn]] void no_sockets(const char* what) {
    throw MeasureError(fmt::format("loopback: cannot {}: {}", what, std::strerror(errno)));
}

/// A port of 127.0.0.1 to be connected to.
Socket listener(sockaddr_in& address) {
    Socket out(socket(AF_INET, SOCK_STREAM, 0));
    address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const raw = reinterpret_cast<sockaddr*>(&address);
    if (out.get() < 0 || bind(out.get(), raw, sizeof address) != 0 || listen(out.get(), 4) != 0 ||
        getsockname(out.get(), raw, &size) != 0)
        no_sockets("open a port");
    return out;
}

void prepare(int fd) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

/// Sends and receives n bytes at once. False when the peer is gone.
bool exchange(int to, const char* out, int from, char* in, std::size_t n) {
    std::size_t sent = 0, received = 0;
    while (sent < n || received < n) {
        pollfd fds[2] = {{sent < n ? to : -1, POLLOUT, 0}, {received < n ? from : -1, POLLIN, 0}};
        if (poll(fds, 2, 10'000) <= 0 && errno != EINTR)
            return false;
        if (fds[0].revents != 0) {
            const ssize_t moved = send(to, out + sent, n - sent, MSG_NOSIGNAL);
            if (moved < 0 && errno != EAGAIN && errno != EINTR)
                return false;
            sent += moved > 0 ? static_cast<std::size_t>(moved) : 0;
        }
        if (fds[1].revents != 0) {
            const ssize_t moved = recv(from, in + received, n - received, 0);
            if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR))
                return false;
            received += moved > 0 ? static_cast<std::size_t>(moved) : 0;
        }
    }
    return true;
}

class ProcessRing {
public:
    ProcessRing(int rank, int ranks, Socket next, Socket before)
        : rank_(rank), ranks_(ranks), next_(std::move(next)), before_(std::move(before)) {
        prepare(next_.get());
        prepare(before_.get());
    }
    bool all_reduce(Buffer& buffer) {
        const std::size_t chunk = buffer.size() / static_cast<std::size_t>(ranks_);
        scratch_.resize(chunk);
        const auto at = [&](int which) {
            return buffer.data() + static_cast<std::size_t>((which + 2 * ranks_) % ranks_) * chunk;
        };
        for (int step = 0; step < 2 * (ranks_ - 1); ++step) {
            const bool reduce = step < ranks_ - 1;
            float* const in = reduce ? scratch_.data() : at(rank_ - step - 1);
            if (!exchange(next_.get(), reinterpret_cast<const char*>(at(rank_ - step)), before_.get(),
                          reinterpret_cast<char*>(in), chunk * sizeof(float)))
                return false;
            if (reduce) {
                float* const own = at(rank_ - step - 1);
                for (std::size_t i = 0; i < chunk; ++i)
                    own[i] += scratch_[i];
            }
        }
        return true;
    }
    /// A word goes round: what rank 0 says; others hear it.
    bool pass_word(std::int32_t& word) {
        std::int32_t heard = word;
        char* const in = reinterpret_cast<char*>(&heard);
        const auto take = [&](int from) {
            std::size_t got = 0;
            while (got < sizeof heard) {
                pollfd fd{from, POLLIN, 0};
                if (poll(&fd, 1, 10'000) <= 0 && errno != EINTR)
                    return false;
                const ssize_t moved = recv(from, in + got, sizeof heard - got, 0);
                if (moved == 0 || (moved < 0 && errno != EAGAIN && errno != EINTR))
                    return false;
                got += moved > 0 ? static_cast<std::size_t>(moved) : 0;
            }
            return true;
        };
        const auto give = [&] {
            return send(next_.get(), in, sizeof heard, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof heard);
        };
        if (rank_ == 0)
            return give() && take(before_.get());
        if (!take(before_.get()) || !give())
            return false;
        word = heard;
        return true;
    }

private:
    int rank_, ranks_;
    Socket next_, before_;
    Buffer scratch_;
};

constexpr std::int32_t kGo = 1, kNext = 2;

/// Follows rank 0: go, go, next size, go ... Exit status: 0 right, 1 wrong sum, 2 the ring broke.
int follow(ProcessRing& ring, int rank, int ranks, const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t bytes : sizes) {
        Buffer buffer(static_cast<std::size_t>(bytes) / sizeof(float));
        for (;;) {
            std::int32_t word = 0;
            if (!ring.pass_word(word))
                return 0;  // rank 0 has left: interrupted
            if (word == kNext)
                break;
            fill(buffer, rank);
            if (!ring.pass_word(word) || !ring.all_reduce(buffer))
                return 2;
            if (!right(buffer, ranks))
                return 1;
        }
    }
    return 0;
}

Socket connect_to(const sockaddr_in& address) {
    Socket out(socket(AF_INET, SOCK_STREAM, 0));
    if (out.get() < 0 || connect(out.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
        no_sockets("connect");
    return out;
}

}  // namespace

Samples ring_of_threads(const MeasureSession& session, int ranks, std::int64_t bytes) {
    const std::size_t floats = static_cast<std::size_t>(bytes) / sizeof(float);
    std::vector<Buffer> buffers(static_cast<std::size_t>(ranks), Buffer(floats));
    std::vector<Progress> progress(static_cast<std::size_t>(ranks));
    Barrier barrier(ranks);
    std::atomic<bool> leave = false;
    long before = 0;
    const auto turn = [&](int rank) {
        fill(buffers[static_cast<std::size_t>(rank)], rank);
        barrier.wait();
        const auto start = Clock::now();
        ring_step_threads(rank, ranks, buffers, progress, before);
        const double us = us_since(start);
        barrier.wait();
        return us;
    };
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank) {
        others.emplace_back([&, rank] {
            for (;;) {
                barrier.wait();
                if (leave)
                    return;
                turn(rank);
            }
        });
    }
    bool good = true;
    const Samples out = session.sample([&] {
        barrier.wait();
        const double us = turn(0);
        for (const Buffer& buffer : buffers)
            good = good && right(buffer, ranks);
        before += 2L * (ranks - 1);
        return us;
    });
    leave = true;
    barrier.wait();
    others.clear();
    if (!good)
        wrong("threads", ranks, floats);
    return out;
}

std::vector<Samples> ring_of_processes(const MeasureSession& session, int ranks,
                                       const std::vector<std::int64_t>& sizes) {
    std::vector<Socket> listeners;
    std::vector<sockaddr_in> addresses(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank)
        listeners.push_back(listener(addresses[static_cast<std::size_t>(rank)]));
    const auto join = [&](int rank) {
        Socket next = connect_to(addresses[static_cast<std::size_t>((rank + 1) % ranks)]);
        Socket before(accept(listeners[static_cast<std::size_t>(rank)].get(), nullptr, nullptr));
        if (before.get() < 0)
            no_sockets("accept");
        return ProcessRing(rank, ranks, std::move(next), std::move(before));
    };
    std::vector<pid_t> children;
    for (int rank = 1; rank < ranks; ++rank) {
        const pid_t child = fork();
        if (child < 0)
            no_sockets("start a process");
        if (child == 0) {
            std::signal(SIGINT, SIG_IGN);  // rank 0 decides
            int status = 2;
            try {
                ProcessRing ring = join(rank);
                status = follow(ring, rank, ranks, sizes);
            } catch (const MeasureError&) {
                status = 2;
            }
            _exit(status);
        }
        children.push_back(child);
    }
    std::vector<Samples> out;
    bool good = true, broken = false;
    {
        ProcessRing ring = join(0);
        for (const std::int64_t bytes : sizes) {
            if (MeasureSession::interrupted() || broken)
                break;
            Buffer buffer(static_cast<std::size_t>(bytes) / sizeof(float));
            const Samples time = session.sample([&] {
                std::int32_t word = kGo;
                if (broken || !ring.pass_word(word)) {
                    broken = true;
                    return 0.0;
                }
                fill(buffer, 0);
                broken = !ring.pass_word(word);
                const auto start = Clock::now();
                broken = broken || !ring.all_reduce(buffer);
                const double us = us_since(start);
                good = good && (broken || right(buffer, ranks));
                return us;
            });
            std::int32_t word = kNext;
            broken = broken || !ring.pass_word(word);
            if (!broken)
                out.push_back(time);
        }
    }
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        good = good && !(WIFEXITED(status) && WEXITSTATUS(status) == 1);
        broken = broken || (WIFEXITED(status) && WEXITSTATUS(status) == 2);
    }
    if (!good)
        wrong("loopback", ranks, static_cast<std::size_t>(sizes.back()) / sizeof(float));
    if (broken && !MeasureSession::interrupted())
        throw MeasureError(fmt::format("loopback: the ring of {} processes broke", ranks));
    return out;
}

}  // namespace fabricast
