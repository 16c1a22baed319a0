#include "hwprofiles/calibrate/io_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <span>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "base/splitmix64.h"

namespace spillway::hwprofiles {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class PatternRun {
 public:
  PatternRun(IoQueue& queue, const ScratchFile& file, const IoPattern& pattern, std::span<std::byte> buffer,
             std::uint64_t seed)
      : queue_(queue), file_(file), pattern_(pattern), buffer_(buffer), random_(seed) {
    const auto block = static_cast<std::size_t>(pattern.block.count());
    const std::size_t depth = pattern.read_depth + pattern.write_depth;
    SPILLWAY_ASSERT(depth >= 1 && block > 0 && buffer.size() >= depth * block && pattern.end <= file.bytes() &&
                    pattern.begin + pattern.block <= pattern.end);
    blocks_ = (pattern.end - pattern.begin) / pattern.block;
    read_next_ = write_next_ = 0;
    // Apart in the file, so that reads don't find what was just written in the drive's buffer.
    if (pattern.read_depth > 0 && pattern.write_depth > 0) read_next_ = blocks_ / 2;
    slots_.resize(depth);
    if (!pattern.is_host_memory) return;
    for (std::size_t word = 0; word + 8 <= depth * block; word += 8) {
      const std::uint64_t value = random_.next();
      std::memcpy(buffer.data() + word, &value, sizeof value);
    }
  }

  IoRun run(const std::function<bool()>& stop) {
    start_ = Clock::now();
    for (std::size_t slot = 0; slot < slots_.size() && asked_ < pattern_.most_bytes; ++slot) ask(slot);
    while (queue_.in_flight() > 0) {
      const IoQueue::Completion completion = queue_.wait();
      finish(completion);
      if ((run_.done.size() & 15U) == 0 && stop()) throw Cancelled{};
      if (asked_ < pattern_.most_bytes && seconds_since(start_) < pattern_.most_seconds) ask(completion.tag);
    }
    run_.seconds = seconds_since(start_);
    return std::move(run_);
  }

 private:
  struct Slot {
    double asked_at = 0;
  };

  [[nodiscard]] IoQueue::Direction direction_of(std::size_t slot) const {
    return slot < pattern_.read_depth ? IoQueue::Direction::read : IoQueue::Direction::write;
  }

  std::int64_t next_block(IoQueue::Direction direction) {
    if (pattern_.order == IoPattern::Order::random)
      return static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(blocks_));
    std::int64_t& next = direction == IoQueue::Direction::read ? read_next_ : write_next_;
    return next++ % blocks_;
  }

  void ask(std::size_t slot) {
    const IoQueue::Direction direction = direction_of(slot);
    const std::int64_t block = next_block(direction);
    const auto bytes = static_cast<std::size_t>(pattern_.block.count());
    const std::span<std::byte> memory(buffer_.data() + slot * bytes, bytes);
    if (direction == IoQueue::Direction::write && pattern_.is_host_memory) {
      for (std::size_t page = 0; page < bytes; page += static_cast<std::size_t>(direct_alignment.count())) {
        const std::uint64_t stamp = random_.next();
        std::memcpy(memory.data() + page, &stamp, sizeof stamp);
      }
    }
    slots_[slot].asked_at = seconds_since(start_);
    queue_.submit(direction, file_.descriptor(), memory, pattern_.begin + pattern_.block * block, slot);
    asked_ += pattern_.block;
  }

  void finish(const IoQueue::Completion& completion) {
    const IoQueue::Direction direction = direction_of(completion.tag);
    if (completion.result != pattern_.block.count()) {
      const std::string word = completion.result < 0 ? std::strerror(static_cast<int>(-completion.result))
                                                     : fmt::format("only {} bytes moved", completion.result);
      throw InputError(
          file_.path(), "",
          fmt::format("{} of {} bytes failed: {}", direction == IoQueue::Direction::read ? "a read" : "a write",
                      pattern_.block.count(), word),
          "check the drive and the system's log; the file is removed");
    }
    const double now = seconds_since(start_);
    run_.done.push_back({now, now - slots_[completion.tag].asked_at, direction});
    (direction == IoQueue::Direction::read ? run_.read : run_.written) += pattern_.block;
  }

  IoQueue& queue_;
  const ScratchFile& file_;
  const IoPattern& pattern_;
  std::span<std::byte> buffer_;
  SplitMix64 random_;
  std::int64_t blocks_ = 0, read_next_ = 0, write_next_ = 0;
  std::vector<Slot> slots_;
  Bytes asked_{};
  Clock::time_point start_;
  IoRun run_;
};

}  // namespace

IoRun run_pattern(IoQueue& queue, const ScratchFile& file, const IoPattern& pattern, std::span<std::byte> buffer,
                  std::uint64_t seed, const std::function<bool()>& stop) {
  PatternRun run(queue, file, pattern, buffer, seed);
  try {
    return run.run(stop);
  } catch (...) {
    while (queue.in_flight() > 0) queue.wait();  // the kernel still writes into the buffer
    throw;
  }
}

std::vector<double> sliced_rates(const IoRun& run, Bytes block, IoQueue::Direction direction, std::size_t slices,
                                 std::size_t least) {
  std::vector<double> ends;
  for (const IoDone& done : run.done)
    if (done.direction == direction) ends.push_back(done.at_seconds);
  const std::size_t count = std::clamp<std::size_t>(ends.size() / least, 1, slices);
  std::vector<double> rates;
  double from = 0;
  for (std::size_t slice = 0, first = 0; slice < count && !ends.empty(); ++slice) {
    const std::size_t last = ends.size() * (slice + 1) / count;  // one past
    const double to = ends[last - 1];
    if (to > from)
      rates.push_back(static_cast<double>(last - first) * static_cast<double>(block.count()) / (to - from));
    from = to;
    first = last;
  }
  return rates;
}

}  // namespace spillway::hwprofiles
