// What a fleet's GPUs write to drives, and which number of which drive carries it at least cost.
//
// The traffic of a run is that of a replay on the machine's own links with drives that never bind (relaxed_hardware.h):
// what the step wants to write. Of each model of drive, the least number per GPU holds the rate for good: the wear
// state counts, not the empty cache (report/ssd_report.h). More drives than that live longer; the number with the least
// cost over the period is taken (procurement/cost_model.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planners/procurement/option_search.h"
#include "planners/report/ssd_report.h"

namespace spillway {

// A run of an option, replayed.
struct RunReplay {
  double step_seconds = 0, tokens_per_step = 0, mfu = 0, busy = 0;  // busy: mean share of the step a GPU computes
  double peak_bytes = 0, capacity_bytes = 0;
  double written_bytes = 0, read_bytes = 0;  // drives, per step and GPU, of the one that writes most, if none binds
  std::string binding;
  std::uint64_t fingerprint = 0;
  std::vector<InputProvenance> provenance;
  std::vector<LinkResult> links;
};

// Of the plan's scenario on a machine with `count` of `drive` for each GPU, a set for each; drive null: as the machine
// is, its drives endless. Throws InputError when it can't be replayed.
struct ReplayedPlan {
  LoadedScenario loaded;
  ScenarioRun ran;
  RunReplay run;
};
ReplayedPlan replay_plan_of(const RunPlan& plan, const NvmeProfile* drive, std::int64_t count);

// One model of drive under an option.
struct DriveChoice {
  NvmeProfile drive;
  std::string cannot;                                // why it can't do it at any number up to the most; empty: it can
  std::int64_t least = 0;                            // per GPU, for rate and room
  std::vector<DriveAnswer> answers;                  // by run that writes, with `chosen` drives per GPU once chosen
  std::int64_t chosen = 0;                           // per GPU; 0: none
  [[nodiscard]] const DriveAnswer& hardest() const;  // the run with the least of its rate to spare
};

// `replayed`: by run, with endless drives. In the order of the programme's drives.
std::vector<DriveChoice> fit_drives(const Programme& programme, const std::vector<ReplayedPlan>& replayed);
// The answers for chosen drives per GPU.
void answer_for_chosen(const Programme& programme, const std::vector<ReplayedPlan>& replayed,
                       std::vector<DriveChoice>& fits);

}  // namespace spillway
