// Requests to one file or several, handed over and completed in any order: by io_uring (IoRing), by cuFile (GdsQueue).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/units.h"

namespace spillway::hwprofiles {

class IoQueue {
 public:
  struct Completion {
    std::uint64_t tag = 0;
    std::int64_t result = 0;  // bytes moved, or -errno
  };
  enum class Direction : std::uint8_t { read, write };

  virtual ~IoQueue() = default;
  // Precondition: fewer in flight than the queue was made for; memory stays until completed.
  virtual void submit(Direction direction, int file, std::span<std::byte> memory, Bytes offset, std::uint64_t tag) = 0;
  // The next completion, in the order of completing. Precondition of wait: something in flight.
  virtual Completion wait() = 0;
  virtual std::optional<Completion> poll() = 0;
  [[nodiscard]] virtual unsigned in_flight() const = 0;
};

}  // namespace spillway::hwprofiles
