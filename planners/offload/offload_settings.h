// A scenario's settings of offloading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planners/offload/drive_life.h"
#include "planners/offload/ssdtrain.h"
#include "sim/replay/offload_plan.h"

namespace spillway::planners {

inline constexpr std::string_view no_offload = "none";
// The pipeline schedule moves activations (pipeoffload.h, bpipe.h): the schedule says it, no scenario does.
inline constexpr std::string_view moved_by_schedule = "pipeline";

// Host time of each tensor that a hook of spillway.torch packs and of each it brings back: Python, an event, a copy's
// launch. Fitted to GPT-2 774M and Llama 1B at batch 4 under `host` on an H100 SXM, 26 November 2026; the other steps
// of validation/results with hooks are held to it.
inline constexpr Picos hook_time = microseconds(180);

// Streaming: which tensors leave, and when they come back.
struct StreamSettings {
  Bytes least{8 << 20};                   // smaller tensors stay
  Picos shortest_stay = milliseconds(1);  // what is idle for less stays
  bool a_layer_ahead = true;              // false: asked for when the host comes to the use
};

struct OffloadSettings {
  std::string technique{no_offload};  // a word of planners/technique/technique_table.h's offload_words()
  Tier tier = Tier::drive;
  DriveRoute route = DriveRoute::gpudirect;
  std::string drive_set;                 // of the hardware; empty: set number (GPU mod sets)
  std::string drives;                    // drive profile that replaces the hardware's drives; empty: as they are
  std::int64_t drives_per_machine = 1;   // of them in one RAID-0 set per machine
  std::int64_t workers = 12;             // half of them store, half load
  std::optional<Bytes> in_flight;        // OffloadPlan::in_flight; not given: the technique's choice
  double adaptive_bytes_per_second = 0;  // of a rank, for the adaptive rule; 0: measured
  SsdtrainSettings ssdtrain;
  DriveDemands demands;  // of the drives: how long they must live, what is left of them, their free room
  Bytes budget{};        // of the hybrid search (hybrid_search.h), which takes both tiers; 0: the device's memory
  StreamSettings stream;
  // Whether PyTorch's hooks carry it out, as spillway.torch does. Not given: of a step that it recorded.
  std::optional<bool> hooks;
  // A load asked for before its store has ended finds the tensor where it was. false: it waits, and reads.
  bool forwards = true;

  [[nodiscard]] bool moves() const { return technique != no_offload; }
};

}  // namespace spillway::planners
