// Executor of kernels and copies: the processor here, or a GPU.
//
// Kernels of one backend run in the order given, later than what the call returns from on; copies run beside them, each
// after a mark. Every kernel is deterministic: the same operands give the same bits wherever they lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "validation/trainer/step_graph.h"

namespace spillway::validation {

// Operands of a call, in the order of its reads and writes.
struct Operands {
  std::span<const std::byte* const> reads;
  std::span<std::byte* const> writes;
  std::int64_t step = 1;  // adamw: of the training, from 1
};

// Initial elements of a tensor: a number, or normal numbers of mean 0. Element i is `deviation` times a sum of twelve
// uniform numbers less their mean (Irwin-Hall). The draws are 12 i and following of SplitMix64(seed): the same wherever
// it is made, since sums are of integers (state_bodies.h).
struct Filling {
  float value = 0;      // where the deviation is 0
  float deviation = 0;  // >= 0
  std::uint64_t seed = 0;
};

struct KernelTime {
  double start_seconds = 0;  // since timing was turned on
  Picos duration;
};

class Backend {
 public:
  // A point in the order of what was given to do; marks are numbered.
  using Mark = std::uint64_t;
  enum class CopyTo : std::uint8_t { host, device };

  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string name() const = 0;    // "cpu", "cuda"
  [[nodiscard]] virtual std::string device() const = 0;  // of the machine, for people
  [[nodiscard]] virtual Bytes memory() const = 0;        // of the device, free to use

  // A segment of device memory, aligned to 512 bytes or more; null when there is no more.
  virtual std::byte* take_segment(Bytes bytes) = 0;
  // Waits until nothing uses it.
  virtual void give_segment(std::byte* segment) = 0;
  // Host memory that copies run fastest with, aligned to a page.
  virtual std::byte* take_host(Bytes bytes) = 0;
  virtual void give_host(std::byte* memory) = 0;

  // Threads that touch device memory begin with it.
  virtual void begin_thread() {}

  virtual void run(const StepGraph& graph, const KernelCall& call, const Operands& operands) = 0;
  // Makes a tensor's contents in device memory, in the order of kernels: no byte of it crosses the link.
  virtual void fill(std::byte* device, ElementType type, std::int64_t elements, const Filling& filling) = 0;
  // Digest of device memory behind all kernels given so far; waits for them. The sum modulo 2^64 over its words of
  // eight bytes, the last filled up with zeros, of digest_word() (state_bodies.h): any order of summing gives the same.
  virtual std::uint64_t digest(const std::byte* device, Bytes bytes) = 0;
  // The mark of all kernels given so far.
  virtual Mark mark() = 0;
  // Copies between host and device memory after `after` has passed; returns the mark of the copy's end.
  virtual Mark copy(CopyTo to, std::byte* device, std::byte* host, Bytes bytes, Mark after) = 0;
  [[nodiscard]] virtual bool passed(Mark mark) = 0;
  virtual void wait(Mark mark) = 0;

  // On or off: each kernel's beginning and end. Begins the time that take_times() counts from.
  virtual void time_kernels(bool on) = 0;
  // Times of the kernels since then, in the order given, and forgets them; empty unless timing is on.
  virtual std::vector<KernelTime> take_times() = 0;
  // Remembers when all kernels given so far have ended. take_stamps(): seconds of each since the first, and forgets
  // them; waits until they have passed.
  virtual void stamp() = 0;
  virtual std::vector<double> take_stamps() = 0;
};

std::unique_ptr<Backend> make_cpu_backend();

}  // namespace spillway::validation
