// A sweep over the layouts of one scenario on so many GPUs: tensor and pipeline parallelism, micro-batches.
//
//   d = gpus / (t p c)   replicas follow; c (context parallelism), schedule and ZeRO stage stay the scenario's
// The batch of a step is the scenario's, whatever the layout. Objective: the shortest step that fits, or the least
// memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "studies/candidates/request_parts.h"
#include "studies/sweep/sweep_run.h"

namespace spillway::studies {

struct LayoutSpace : LayoutSizes {  // none empty
  std::int64_t gpus = 1;
  std::vector<std::string> settings;                // of every layout: "key=value"
  std::int64_t replays = 24;                        // at most
  Constraints constraints;                          // step time and life
  Objective objective = Objective::step_time;       // or peak_memory
  std::vector<std::array<std::string, 3>> without;  // layouts left out: t, p, b
};

// `scenario`: JSON of a scenario of a model. Throws InputError as parse_sweep does.
SweepFile layout_sweep(const std::string& scenario, const std::string& path, const std::string& folder,
                       const LayoutSpace& space);

// The fastest layout of an outcome that does what is asked, or null; "t 8, p 4, b 1".
const SweepRow* fastest_layout(const SweepOutcome& outcome);
std::string layout_label(const SweepRow& row);
// Why there is none, in words. The first outcome is of the whole space, others of some of its layouts; `with_smallest`:
// of those that should hold least too.
std::string why_no_layout(std::span<const SweepOutcome> outcomes, bool with_smallest = false);

}  // namespace spillway::studies
