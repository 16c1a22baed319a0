// How long each tensor's memory is there: what a new order of the ops has to keep, and may move.
#pragma once

#include <cstdint>
#include <vector>

#include "traces/trace.h"

namespace spillway::traces {

struct StorageLife {
  Bytes bytes{};                                            // 0: nothing is known of its memory
  TensorId tensor = TensorId::none;                         // the first that lies in it
  std::int16_t device = -1;                                 // -1: host memory
  bool used = false;                                        // some op reads or writes it
  bool initial = false;                                     // there before the first op
  bool released = false;                                    // given back behind its last use; else held to the end
  std::uint32_t allocation = no_event, release = no_event;  // in Trace::memory_events, where these say so
  static constexpr std::uint32_t no_event = 0xffffffffU;
};

struct StorageLives {
  std::vector<StorageLife> storages;  // by Tensors::storage
  // Found in the memory events. Else deduced from the uses. A storage read before it is written was there before and
  // stays. Weights, buffers and optimizer state made within the trace stay too (an optimizer makes state from nothing
  // in its first step). Everything else is given back after its last use. All are on the device of the first work that
  // uses them.
  bool from_events = false;
};

// Needs Capability::uses. Throws InputError when a tensor's memory is allocated twice. O(n log n).
StorageLives storage_lives(const Trace& trace);

}  // namespace spillway::traces
