#include "validate/measure/tcp_store.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "validate/measure/session.hpp"

namespace fabricast {
namespace {

using Clock = std::chrono::steady_clock;

struct Descriptor {
    int fd = -1;
    explicit Descriptor(int value) : fd(value) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (fd >= 0)
            close(fd);
    }
};

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

[[noreturn]] void fail(const std::string& store, const std::string& why) {
    throw MeasureError(fmt::format("store {}: {}", store, why));
}

Addresses resolve(const std::string& store, bool serve) {
    const std::size_t colon = store.rfind(':');
    if (colon == std::string::npos || colon + 1 == store.size())
        fail(store, "give it as host:port; --store or MASTER_ADDR and MASTER_PORT say where rank 0 can be reached");
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = serve ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const int code =
        getaddrinfo(serve ? nullptr : store.substr(0, colon).c_str(), store.substr(colon + 1).c_str(), &hints, &found);
    if (code != 0)
        fail(store, gai_strerror(code));
    return {found, freeaddrinfo};
}

bool move_all(int fd, char* data, std::size_t n, bool give) {
    for (std::size_t done = 0; done < n;) {
        const ssize_t moved = give ? send(fd, data + done, n - done, MSG_NOSIGNAL) : recv(fd, data + done, n - done, 0);
        if (moved <= 0 && errno != EINTR)
            return false;
        done += moved > 0 ? static_cast<std::size_t>(moved) : 0;
    }
    return true;
}

void serve(const std::string& store, int others, std::vector<char>& bytes, Clock::time_point until) {
    const Addresses addresses = resolve(store, true);
    Descriptor door(-1);
    for (const addrinfo* a = addresses.get(); a != nullptr && door.fd < 0; a = a->ai_next) {
        const int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
        const int on = 1;
        if (fd >= 0)
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (fd >= 0 && bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, 128) == 0)
            door.fd = fd;
        else if (fd >= 0)
            close(fd);
    }
    if (door.fd < 0)
        fail(store, fmt::format("rank 0 cannot open the port: {}", std::strerror(errno)));
    for (int served = 0; served < others;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
        pollfd wait{door.fd, POLLIN, 0};
        if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) <= 0)
            fail(store, fmt::format("{} of {} other ranks came in time", served, others));
        const Descriptor peer(accept(door.fd, nullptr, nullptr));
        std::uint64_t size = bytes.size();
        if (peer.fd >= 0 && move_all(peer.fd, reinterpret_cast<char*>(&size), sizeof size, true) &&
            move_all(peer.fd, bytes.data(), bytes.size(), true))
            ++served;
    }
}

std::vector<char> fetch(const std::string& store, Clock::time_point until) {
    constexpr std::uint64_t kMost = 1 << 20;
    while (Clock::now() < until) {
        const Addresses addresses = resolve(store, false);
        for (const addrinfo* a = addresses.get(); a != nullptr; a = a->ai_next) {
            const Descriptor peer(socket(a->ai_family, a->ai_socktype, a->ai_protocol));
            std::uint64_t size = 0;
            if (peer.fd < 0 || connect(peer.fd, a->ai_addr, a->ai_addrlen) != 0 ||
                !move_all(peer.fd, reinterpret_cast<char*>(&size), sizeof size, false) || size > kMost)
                continue;
            std::vector<char> out(size);
            if (move_all(peer.fd, out.data(), out.size(), false))
                return out;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    fail(store, "rank 0 does not answer there");
}

}  // namespace

std::vector<char> share_bytes(const std::string& store, int rank, int world, std::vector<char> bytes, int seconds) {
    const auto until = Clock::now() + std::chrono::seconds(seconds);
    if (rank != 0)
        return fetch(store, until);
    serve(store, world - 1, bytes, until);
    return bytes;
}

}  // namespace fabricast
