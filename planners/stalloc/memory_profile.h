// STAlloc's profile: requests of one training step, and of the one before it, to the allocator.
//
//   tick      one allocation or free; requests live in [lower, upper) of them
//   phase     the forward or backward of one micro-batch (or the optimizer's part) in one iteration
//   layer     one pass through a module whose requests' sizes are not known beforehand (experts)
//
//   head | iteration 0 | iteration 1 | iteration 2 | tail       a captured run
//          |           single step               |              a capture or generated trace of fewer: planned whole
//
// Source: STAlloc (EuroSys 2026, arXiv 2507.16274), sections 4 and 5, and its profiler (infinigence/STAlloc 3a9f97f).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "traces/trace.h"

namespace spillway::planners {

enum class RequestClass : std::uint8_t {
  small,       // at most 512 bytes: a separate slot pool
  persistent,  // weights, gradients, optimizer state: held to the end
  initial,     // allocated and freed before the first iteration
  scoped,      // allocated in one phase, freed in another
  transient,   // allocated and freed in one phase
  dynamic,     // size not known beforehand
  unreleased,  // from before the iterations, freed within one: no place could be used again; left to the cache
  repeated,    // of an iteration behind the planned ones
};
inline constexpr int request_class_count = 8;
std::string_view to_string(RequestClass request_class);

struct ProfiledRequest {
  std::int64_t lower = 0, upper = 0;  // never freed: upper is MemoryProfile::end
  Bytes bytes{};                      // as asked for, > 0
  std::int32_t phase_allocated = 0, phase_freed = 0;
  std::int32_t layer_allocated = -1, layer_freed = -1;  // of dynamic requests; index into layers
  bool freed = false;
  [[nodiscard]] bool dynamic() const { return layer_allocated >= 0; }
};

struct ProfiledLayer {
  std::string name;                 // "moe-3 F": what repeats from micro-batch to micro-batch
  std::int64_t begin = 0, end = 0;  // ticks, half-open
};

struct MemoryProfile {
  std::vector<ProfiledRequest> requests;  // in order of allocation, those of 0 bytes left out
  std::vector<ProfiledRequest> before;    // blocks from before them, as blocks_before() has them; alive from tick 0 on
  std::vector<std::string> phases;
  std::vector<ProfiledLayer> layers;     // by begin; one entry for each pass
  std::vector<std::int64_t> iterations;  // first ticks of the iterations and of the tail; empty: a single step
  std::int64_t end = 0;                  // behind the last tick

  // The planned part: [0, period_begin()) once, [period_begin(), period_end()) again and again; of fewer iterations
  // all, once.
  [[nodiscard]] bool repeats() const { return iterations.size() >= 3; }
  [[nodiscard]] std::int64_t period_begin() const { return repeats() ? iterations[1] : 0; }
  [[nodiscard]] std::int64_t period_end() const { return repeats() ? iterations[2] : end; }
  [[nodiscard]] RequestClass class_of(const ProfiledRequest& request) const;
};

// From a snapshot, Kineto memory events or a generated step: whatever has memory events of the device. Phases come from
// the ops that events are anchored to; a capture without them has a single phase. Three or more steps become
// iterations. Dynamic are a generated step's activations and temporaries of experts (tensors named
// "mlp.experts."), in passes from the first of them in a layer to the last; captures mark none. Throws InputError
// without memory events.
MemoryProfile profile_of(const Trace& trace, std::int16_t device);

// STAlloc's own log, mem_log_dev*.txt:
//   1 POINTER BYTES STREAM              allocated            Iteration Index : 0        (... : end)
//   0 POINTER BYTES STREAM              freed                0 : F                      micro-batch 0 begins forward
//   moe-3->SwitchMLP Layer : F-start    (F-end, B-start, B-end)
// Requests within a layer named mlp-... or moe-... are dynamic, unless a layer of another name inside it is open.
// Throws InputError with the line of whatever is wrong. O(n log live).
MemoryProfile read_memory_log(std::string_view text, const std::string& file);
// Whether the file begins as one: with an allocation, a free or one of its markers; no trace does. Throws InputError
// where it can't be read.
bool is_memory_log(const std::string& path);
inline constexpr std::uint64_t largest_memory_log = 4'000'000'000;  // bytes

}  // namespace spillway::planners
