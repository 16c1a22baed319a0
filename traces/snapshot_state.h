// The memory that existed before a snapshot's history begins. Inferred: the file does not say.
//
// Walks the history back from the final state. What is living at the end but was never allocated in the
// history was there before, with its exact block; what is freed without an allocation was there too, but
// only its requested bytes are known, so its block is taken as those rounded up to 512 (a cached block
// handed out whole can be up to 1 MiB larger; no record shows that slack). The answer is not unique:
// record from the start of the process to have none of it.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace spillway {

struct InitialMemory {
  std::vector<MemorySegment> segments;  // sorted by (device, address); block ranges unused
  struct Block {
    MemoryBlock block;
    std::int16_t device = 0;
    LaneId stream = LaneId::none;
    bool size_is_exact = false;  // false: rounded from the requested bytes
  };
  std::vector<Block> blocks;  // sorted by (device, address)
};

// O(n log n) in events and blocks.
InitialMemory rebuild_initial_memory(const Trace& trace);

}  // namespace spillway
