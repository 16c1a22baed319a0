// The fastest layout of each run on each fleet that may be bought: screened in closed form, the best replayed.
//
// A fleet's machines, GPUs and technique are an option. For each, and for each run, a sweep (studies/sweep) over tensor
// and pipeline parallelism and micro-batches finds the shortest step that fits. Replicas follow from the GPUs, and the
// batch stays what the scenario says. Options that write to drives are searched with as many of the fastest candidate
// as a machine may have, so that the drives choose themselves later (drive_choice.h).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "studies/procurement/procurement_request.h"

namespace spillway::studies {

struct RunPlan {
  BaseScenario base;
  Candidate candidate;                      // "t 8, p 4, b 1"
  std::int64_t screened = 0, replayed = 0;  // layouts tried on the way
};

struct FleetOption {
  std::string machine;  // its profile's name
  std::int64_t gpus = 0;
  std::string technique;
  std::vector<RunPlan> plans;  // by run of the programme; empty: the option can't train them
  std::string failure;         // why
};

// done, all; false stops (throws Cancelled).
using OptionProgress = std::function<bool(const std::string& what, std::size_t done, std::size_t all)>;

// In the order of the programme's machines, GPUs and techniques, or of a sweep's points. Throws InputError where the
// programme itself is at fault.
std::vector<FleetOption> find_options(const ProcurementRequest& request, const OptionProgress& progress = {});

}  // namespace spillway::studies
