// The replayed step's memory: its allocation stream through a memory policy, on the replay's clock.
//
// The stream is processed in host order, as the program would call its allocator. It is run once without a limit
// (what the step needs) and, when that exceeds the capacity, once with it (whether the policy's retries save it).
// Event times follow the host call an event is anchored to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/devices/memory/allocation_stream.h"
#include "sim/devices/memory/memory_plan.h"
#include "sim/devices/memory/memory_policies.h"
#include "sim/replay/driver_times.h"
#include "sim/replay/result.h"
#include "traces/step_fold.h"
#include "traces/trace.h"

namespace spillway::sim {

// How much a replay finds out; each level has all before it.
enum class Detail : std::uint8_t {
  // When all ends. The allocator of a device that surely runs out of memory is not run at all, and its peaks are what
  // is
  // surely held, a lower bound.
  clock,
  times,    // and peaks
  figures,  // and the curve, the owners of the peak, why it failed
};

struct MemoryReplayOptions {
  std::string allocator{torch_policy};                              // one of memory_policies()
  std::string settings;                                             // PYTORCH_CUDA_ALLOC_CONF; gmlake: its own
  std::shared_ptr<const MemoryPlan> plan;                           // for planned and arena, of a step on one device
  std::map<std::int16_t, std::shared_ptr<const MemoryPlan>> plans;  // the same of a step on several, by device
  Bytes capacity{};                                                 // for the step's allocator; 0: unlimited
  std::optional<std::int16_t> device{};                             // of several; not given: the one that reserves most
  Detail detail = Detail::figures;
  // The trace is a folded step: replays are of the whole one, or refused. Null: it has all of its step.
  std::shared_ptr<const StepFold> fold;
};

// Peaks of one device.
struct DevicePeaks {
  std::int16_t device = 0;
  Bytes allocated{}, reserved{};
  Verdict verdict = Verdict::unknown;  // after the policy's retries
};

// Time of the allocator's driver calls in a step that is one of many. They are those of a second run of the stream,
// when the cache is warm. Under pressure the torch policy gives segments back and takes them again in every step. A
// device that runs out of memory has no second run.
struct AllocatorTime {
  std::vector<HostDelay> delays;  // by op, ascending; for lower()
  Picos step{};                   // their sum
  Picos first_step{};             // of the first run, until memory runs out, anchored to ops or not
};

// As the replay runs a device's allocations. Capacity 0: without a limit.
AllocationStreamOptions stream_options(const MemoryReplayOptions& options, std::int16_t device, Bytes capacity);

// Whether the policy goes by its limit only where it meets it: torch's garbage collection begins at a share of the
// limit, expandable segments reserve by the device's size. False where it isn't known.
bool limit_matters_only_when_met(const MemoryReplayOptions& options);

// The allocation streams of all devices, each run as often as its questions need and no more. The first run is without
// a limit. If that exceeds the capacity, the next is with it, until it fails. The run that fits is repeated. A limit
// that the torch and ideal policies never meet changes nothing, so that one run stands for both.
class MemoryReplay {
 public:
  // `trace` must outlive it. A capture with host memory events alone is replayed as host memory: ideal allocator, no
  // limit. Throws InputError for bad options. O(events log live blocks).
  MemoryReplay(const Trace& trace, const MemoryReplayOptions& options);

  // Reason why a folded step is refused; then nothing else is known.
  [[nodiscard]] const std::optional<FoldRefusal>& refusal() const { return refusal_; }
  [[nodiscard]] AllocatorTime allocator_time(const DriverTimes& times) const;
  // Peaks of every device in the trace, ascending. None for host memory.
  [[nodiscard]] const std::vector<DevicePeaks>& peaks() const { return peaks_; }
  // Result of options.device, or of the device that reserves most. event_time: by memory event, as event_times() gives
  // them; events are processed in their own order whatever it says. A trace without memory events gives
  // MemoryResult::known == false. To explain a failure it may run the stream with other allocators. May be refused.
  [[nodiscard]] MemoryResult result(std::span<const Picos> event_time);

 private:
  struct DeviceRun {
    std::vector<EventCost> first, second;  // costs
  };

  void run_device(std::int16_t device, const EventIndex& events);
  // The last of peaks_. failed: its run within the limit, where it has one that didn't fit.
  void show_if_wanted(const EventIndex& events, AllocationStreamResult run, bool gives_back,
                      std::optional<AllocationStreamResult> failed = std::nullopt);
  // The run, its refusal kept.
  [[nodiscard]] AllocationStreamResult noted(AllocationStreamResult run);
  [[nodiscard]] AllocationStreamResult run_until_it_fails();
  [[nodiscard]] std::string why_it_failed(std::span<const Picos> event_time);
  void fill_details(std::span<const Picos> event_time, MemoryResult& result);

  const Trace& trace_;
  MemoryReplayOptions options_;
  std::optional<FoldRefusal> refusal_;
  std::vector<DeviceRun> runs_;     // as peaks_
  std::vector<DevicePeaks> peaks_;  // ascending
  // The device that result() is about.
  bool known_ = false, on_host_ = false;
  std::string doubt_;
  std::size_t shown_ = 0;  // in peaks_; not for host memory
  std::int16_t shown_device_ = -1;
  EventIndex shown_events_;
  // With rows and totals; without a limit unless it fits only by what is given back at that limit.
  bool gives_back_ = false;
  AllocationStreamResult shown_run_;
  std::optional<AllocationStreamResult> failed_run_;  // with rows and totals
};

}  // namespace spillway::sim
