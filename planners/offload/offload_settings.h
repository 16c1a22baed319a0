// What a scenario says about offloading.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "planners/offload/drive_life.h"
#include "planners/offload/ssdtrain.h"
#include "sim/replay/offload_plan.h"

namespace spillway::planners {

// pipeline: what the pipeline schedule moves (po-h, po-f; pipeoffload.h).
enum class OffloadTechnique : std::uint8_t { none, ssdtrain, mix, lifetimes, stream, pipeline };
std::string_view to_string(OffloadTechnique technique);

struct OffloadSettings {
  OffloadTechnique technique = OffloadTechnique::none;
  Tier tier = Tier::drive;
  DriveRoute route = DriveRoute::gpudirect;
  std::string drive_set;                 // of the hardware; empty: set number (GPU mod sets)
  std::string drives;                    // drive profile that replaces the hardware's drives; empty: as they are
  std::int64_t drive_count = 1;          // of them in one RAID-0 set per machine
  std::int64_t workers = 12;             // half of them store, half load
  std::optional<Bytes> in_flight;        // OffloadPlan::in_flight; not given: a tenth of the memory the step has
  double adaptive_bytes_per_second = 0;  // of a rank, for the adaptive rule; 0: measured
  SsdtrainSettings ssdtrain;
  DriveDemands demands;  // of the drives: how long they must live, what is left of them, their free room
  Bytes budget{};        // of the mix (mix.h), which takes both tiers; 0: the device's memory
};

}  // namespace spillway::planners
