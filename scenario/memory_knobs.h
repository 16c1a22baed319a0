// Settings and allocators that would have reserved less for the same requests: each is tried, by replaying the stream.
#pragma once

#include <string>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"

namespace spillway::scenario {

struct MemoryKnob {
  std::string name;              // "max_split_size_mb:128", "planned allocation (STAlloc)"
  std::string policy, settings;  // as MemoryPoolOptions
  Bytes peak_reserved{};
  Bytes gain{};                    // what it saves of the peak the options reserve; negative: costs more
  std::uint64_t driver_calls = 0;  // during the stream
  bool is_bound = false;           // no allocator: what is left without any fragmentation
};

// Largest gain first, the bound last; `options` as the memory is allocated now (no rows or totals needed). A capture
// with a recorded state is replayed from it by the torch policies; others start from its live blocks alone, which gains
// what was cached. In parallel; about as many replays as settings, and one plan of the requests.
std::vector<MemoryKnob> try_memory_knobs(const Trace& trace, const AllocationStreamOptions& options);

}  // namespace spillway::scenario
