// Who holds a GPU's memory, by the program's own lines: from the call stacks of a memory snapshot, at the moment when
// it ran out, else when most was allocated. And what made it run out: the failed allocation is asked again of the
// allocator as it stood, and of others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"
#include "traces/trace.h"

namespace spillway::studies {

struct MemoryHolder {
  std::string name;  // "model.py:41 forward"; "no stack recorded"
  Bytes bytes{};     // alive, as asked for
  std::uint64_t blocks = 0;
};
struct MemoryStack {
  std::vector<std::string> places;  // outermost first
  Bytes bytes{};
  std::uint64_t blocks = 0;
};

// The failed allocation, on the same device with another allocator or settings.
struct OtherAllocator {
  std::string name, policy, settings;
  bool serves = false;  // nothing fails within the same memory
  Bytes reserved{};     // at most; beyond the limit where it fails
};

struct RanOut {
  Bytes asked{}, device_free{-1};  // device_free: as recorded; -1 unknown
  std::string place;               // who asked
  Bytes allocated{}, reserved{};   // by the emulated allocator, just before
  Bytes cached{}, largest_free{};  // free in its segments; the largest piece of the request's pool and stream
  Bytes limit{};                   // what it could reserve
  std::string why;                 // one sentence: why what was cached could not serve
  std::vector<OtherAllocator> others;
};

struct MemoryDiagnosis {
  bool has_stacks = false;
  std::uint32_t event = 0;  // index in Trace::memory_events: the failure, else the one that reached the most
  Bytes alive{};
  std::vector<MemoryHolder> places;   // the innermost line of the program's own, most first
  std::vector<MemoryHolder> modules;  // the program's innermost forward()
  std::vector<MemoryHolder> phases;   // forward, backward, optimizer, by the functions on the stack
  std::vector<MemoryStack> stacks;    // most first
  std::optional<RanOut> ran_out;      // none: no allocation failed
};

// "train.py:31 step" of torch, of an installed package, of C++ or of generated code: not the program's own.
bool is_library(std::string_view place);

// The innermost line of the program's own of a recorded stack (Trace::stack_frames); of a stack without, the backward
// node or the operator; "no stack recorded".
std::string own_place(const Trace& trace, std::uint32_t stack);
// Its places, innermost first. They live as long as the trace.
std::vector<std::string_view> stack_places(const Trace& trace, std::uint32_t stack);

// Diagnosis of one device of a snapshot, read with ReadOptions::keep_stacks. Lines of torch, of installed packages and
// of C++ don't count as the program's own; a stack without others has the backward node or the operator. O(events log
// events), and a replay for each allocator.
MemoryDiagnosis diagnose_memory(const Trace& trace, std::int16_t device);

// "caller;callee bytes" a line, as flame graphs take them.
std::string folded_memory_stacks(const MemoryDiagnosis& diagnosis);

}  // namespace spillway::studies
