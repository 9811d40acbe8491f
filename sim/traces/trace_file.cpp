#include "sim/traces/trace_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "topologies/importers/import_error.hpp"

namespace fabricast::traces {
namespace {

using importers::ImportError;

class File {
public:
    explicit File(const char* path) : handle_(::open(path, O_RDONLY | O_CLOEXEC)) {}
    ~File() {
        if (handle_ >= 0)
            ::close(handle_);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int handle() const { return handle_; }

private:
    int handle_;
};

std::string unpacked(const std::string& packed, const std::string& path) {
    z_stream stream = {};
    constexpr int kGzip = 16 + MAX_WBITS;
    if (inflateInit2(&stream, kGzip) != Z_OK)
        throw ImportError(path, 0, "gzip: no memory to unpack");
    std::string out;
    std::string piece(1 << 16, '\0');
    std::size_t given = 0;
    int state = Z_OK;
    while (state != Z_STREAM_END) {
        if (stream.avail_in == 0) {
            const std::size_t more = std::min<std::size_t>(packed.size() - given, std::size_t{1} << 30);
            stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + given));
            stream.avail_in = static_cast<uInt>(more);
            given += more;
        }
        stream.next_out = reinterpret_cast<Bytef*>(piece.data());
        stream.avail_out = static_cast<uInt>(piece.size());
        state = inflate(&stream, Z_NO_FLUSH);
        out.append(piece.data(), piece.size() - stream.avail_out);
        const bool stuck = state == Z_BUF_ERROR ||
                           (state == Z_OK && stream.avail_in == 0 && given == packed.size() && stream.avail_out != 0);
        if ((state != Z_OK && state != Z_STREAM_END) || stuck || out.size() > kMostTraceBytes) {
            inflateEnd(&stream);
            throw ImportError(
                path, 0,
                out.size() > kMostTraceBytes ? "unpacks to more than 8 GiB" : "gzip data are damaged or end early");
        }
    }
    inflateEnd(&stream);
    return out;
}

}  // namespace

bool read_trace_file(const std::string& path, std::string& into) {
    const File file(path.c_str());
    if (file.handle() < 0) {
        if (errno == ENOENT || errno == ENOTDIR)
            return false;
        throw ImportError(path, 0, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    struct stat status = {};
    if (::fstat(file.handle(), &status) != 0 || !S_ISREG(status.st_mode))
        throw ImportError(path, 0, "is no plain file");
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > kMostTraceBytes)
        throw ImportError(path, 0, "is larger than 8 GiB");
    into.resize(size);
    std::size_t done = 0;
    while (done < size) {
        const ssize_t got = ::read(file.handle(), into.data() + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            throw ImportError(path, 0, "cannot be read to its end");
        done += static_cast<std::size_t>(got);
    }
    if (size == 0)
        throw ImportError(path, 0, "is empty");
    if (size >= 2 && into[0] == '\x1f' && into[1] == '\x8b')
        into = unpacked(into, path);
    return true;
}

bool Records::next(std::string_view& record) {
    if (at_ == bytes_.size())
        return false;
    std::uint64_t length = 0;
    std::size_t at = at_;
    for (int shift = 0;; shift += 7) {
        if (at == bytes_.size() || shift > 28) {
            throw ImportError(file_, 0,
                              fmt::format("record {} at byte {}: {}", count_, at_,
                                          shift > 28 ? "its length is no number; is this a Chakra execution trace?"
                                                     : "the file ends inside its length"));
        }
        const auto byte = static_cast<unsigned char>(bytes_[at++]);
        length |= static_cast<std::uint64_t>(byte & 127u) << shift;
        if (byte < 128)
            break;
    }
    if (length > bytes_.size() - at) {
        throw ImportError(file_, 0,
                          fmt::format("record {} at byte {}: {} bytes long, but the file ends {} bytes further", count_,
                                      at_, length, bytes_.size() - at));
    }
    record = bytes_.substr(at, static_cast<std::size_t>(length));
    at_ = at + static_cast<std::size_t>(length);
    ++count_;
    return true;
}

}  // namespace fabricast::traces
