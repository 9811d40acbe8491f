#include "sim/plan/stored_step.hpp"

#include <bit>

namespace fabricast::plan {
namespace {

class Writer {
public:
    void put(std::uint64_t word) {
        for (int byte = 0; byte < 8; ++byte)
            bytes_ += static_cast<char>(word >> (8 * byte) & 0xff);
    }
    void put(std::int64_t value) { put(static_cast<std::uint64_t>(value)); }
    void put(int value) { put(std::int64_t{value}); }
    void put(bool value) { put(std::uint64_t{value}); }
    void put(double value) { put(std::bit_cast<std::uint64_t>(value)); }
    void put(__int128 value) {
        put(static_cast<std::uint64_t>(value));
        put(static_cast<std::uint64_t>(value >> 64));
    }
    void put(const std::array<__int128, kAccountCount>& accounts) {
        for (const __int128 account : accounts)
            put(account);
    }
    template <typename T>
    void put(const std::vector<T>& list) {
        put(static_cast<std::uint64_t>(list.size()));
        for (const T& item : list)
            put(item);
    }
    std::string take() { return std::move(bytes_); }

private:
    std::string bytes_;
};

class Reader {
public:
    explicit Reader(std::string_view bytes) : bytes_(bytes) {}

    void get(std::uint64_t& word) {
        word = 0;
        if (bytes_.size() < 8) {
            good_ = false;
            return;
        }
        for (std::size_t byte = 0; byte < 8; ++byte)
            word |= std::uint64_t{static_cast<unsigned char>(bytes_[byte])} << (8 * byte);
        bytes_.remove_prefix(8);
    }
    std::uint64_t word() {
        std::uint64_t out = 0;
        get(out);
        return out;
    }
    void get(std::int64_t& value) { value = static_cast<std::int64_t>(word()); }
    void get(int& value) { value = static_cast<int>(word()); }
    void get(bool& value) { value = word() != 0; }
    void get(double& value) { value = std::bit_cast<double>(word()); }
    void get(__int128& value) {
        const std::uint64_t low = word(), high = word();
        value = static_cast<__int128>(static_cast<unsigned __int128>(high) << 64 | low);
    }
    void get(std::array<__int128, kAccountCount>& accounts) {
        for (__int128& account : accounts)
            get(account);
    }
    template <typename T>
    void get(std::vector<T>& list) {
        const std::uint64_t size = word();
        good_ = good_ && size <= bytes_.size() / 8;
        list.resize(good_ ? size : 0);
        for (T& item : list)
            get(item);
    }
    bool whole() const { return good_ && bytes_.empty(); }

private:
    std::string_view bytes_;
    bool good_ = true;
};

// One list of members for both ways. A member that is added to StepResult does not compile here until it is in the list; the
// format of stores (kFormat in store.cpp) changes with it.
template <typename Step, typename Each>
void each_member(Step& step, Each each) {
    auto& [ps, ranks, accounts, by_stage, ranks_by_stage, tokens, model, hardware, attention, attention_hardware,
           attention_whole, peak, steps_simulated, periodic] = step;
    static_cast<void>(ps);
    each(ranks);
    each(accounts);
    each(by_stage);
    each(ranks_by_stage);
    each(tokens);
    each(model);
    each(hardware);
    each(attention);
    each(attention_hardware);
    each(attention_whole);
    each(peak);
    each(steps_simulated);
    each(periodic);
}

}  // namespace

std::string step_bytes(const StepResult& step) {
    Writer writer;
    each_member(step, [&](const auto& member) { writer.put(member); });
    return writer.take();
}

bool read_step(std::string_view bytes, StepResult& out) {
    Reader reader(bytes);
    each_member(out, [&](auto& member) { reader.get(member); });
    return reader.whole();
}

}  // namespace fabricast::plan
