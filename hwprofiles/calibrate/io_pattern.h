// One way of loading a drive, run for a while on a scratch file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/units.h"
#include "hwprofiles/calibrate/io_queue.h"
#include "hwprofiles/calibrate/scratch_file.h"

namespace spillway::hwprofiles {

struct IoPattern {
  enum class Order : std::uint8_t { sequential, random };
  Bytes block{1 << 20};
  unsigned read_depth = 0, write_depth = 0;  // requests kept in flight; one of them at least 1
  Order order = Order::sequential;
  Bytes begin{}, end{};  // part of the file; sequential access starts over at its end
  Bytes most_bytes{};    // stop once as much is asked for, over both directions
  double most_seconds = 0;
  bool is_host_memory = true;  // else nothing is put into the buffer: device memory has its contents already
};

struct IoDone {
  double at_seconds = 0;       // since the run began
  double latency_seconds = 0;  // of this request
  IoQueue::Direction direction = IoQueue::Direction::read;
};

struct IoRun {
  std::vector<IoDone> done;  // in order of completing, `block` bytes each
  double seconds = 0;
  Bytes read{}, written{};
};

// Reads and writes go through `buffer` of at least (read_depth + write_depth) blocks. Written data differs from block
// to block, so that a drive that compresses or merges equal blocks gains nothing. `stop` is asked now and then; true
// ends the run with Cancelled. Throws InputError for a failed request (with the system's word) or a drive that is gone.
IoRun run_pattern(IoQueue& queue, const ScratchFile& file, const IoPattern& pattern, std::span<std::byte> buffer,
                  std::uint64_t seed, const std::function<bool()>& stop);

// Bytes a second of one direction, in `slices` slices of equal numbers of requests, each of `least` or more
// (completions come in bursts as long as the queue). A slice that took no measurable time is left out.
std::vector<double> sliced_rates(const IoRun& run, Bytes block, IoQueue::Direction direction, std::size_t slices,
                                 std::size_t least);

}  // namespace spillway::hwprofiles
