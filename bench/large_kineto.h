// A synthetic Kineto trace of any size, for measuring the reader: one training step of a transformer, repeated.
//
// The mix is that of real captures: per layer and direction a few operators, each with nested ones, a launch, a
// flow event at both ends and a kernel; memory events; an annotation per step. About 250 bytes an event.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::bench {

struct LargeKineto {
  std::uint64_t bytes = 0;
  std::uint64_t events = 0;
};

// Writes whole steps to `path` until the file has at least `bytes`. Throws std::runtime_error when it can't be
// written. The same arguments always give the same file.
LargeKineto write_large_kineto(const std::string& path, std::uint64_t bytes);

}  // namespace spillway::bench
