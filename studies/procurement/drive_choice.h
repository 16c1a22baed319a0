// The bytes that a fleet's GPUs write to drives, and the drive model and number that carries them at least cost.
//
// The traffic of a run is that of a replay on the machine's own links with drives that never bind (relaxed_hardware.h):
// what the step wants to write. A number per GPU of a drive model qualifies if it holds this load for good, on links
// with slots and switches for so many. The wear state counts, not the empty cache (reports/ssd_report.h), as long as
// writing takes half of the step at most, bursts and all. More drives than the least last longer; the number with the
// least cost over the period is taken (procurement/fleet_cost.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/offload/ssd_answer.h"
#include "studies/procurement/option_search.h"

namespace spillway::studies {

// A run of an option, replayed.
struct RunReplay : Row {
  double written_bytes = 0, read_bytes = 0;  // drives, per step and GPU, of the one that writes most
  std::string saves_nothing;  // what its technique moves for no gain in memory, in words; empty: it gains some
  [[nodiscard]] double step_seconds() const { return to_seconds(result.step_time); }
  [[nodiscard]] double busy() const { return 1 - result.bubble.value_or(0); }  // mean share of it a GPU computes
};

// The largest peak of all runs; 0 without any.
Bytes largest_peak(const std::vector<RunReplay>& runs);

// Replays the plan's scenario on a machine with `count` of `drive` for each GPU, a set for each. `drive` null: as the
// machine is, its drives endless. `briefly`: for its figures alone (scenario/brief_run.h); `loaded` may lack
// micro-batches and `ran` times by op, except where it offloads. Throws InputError when it can't be replayed.
struct ReplayedPlan {
  LoadedScenario loaded;
  ScenarioRun ran;
  RunReplay run;
};
ReplayedPlan replay_plan_of(const RunPlan& plan, const NvmeProfile* drive, std::int64_t count,
                            std::int64_t switch_lanes, bool briefly = false);

// One model of drive under an option.
struct DriveChoice {
  NvmeProfile drive;
  std::string cannot;                                // why it isn't one to buy; empty: it is
  std::vector<std::int64_t> numbers;                 // per GPU, those that hold the rate and have the room, ascending
  std::vector<DriveAnswer> answers;                  // by run that writes, with `chosen` drives per GPU once chosen
  std::int64_t chosen = 0;                           // per GPU; 0: none
  std::vector<RunReplay> runs;                       // as replayed with `chosen` of them; empty: not replayed
  HardwareProfile hardware;                          // the machine with them, if replayed
  [[nodiscard]] const DriveAnswer& hardest() const;  // the run with the least of its rate to spare
  [[nodiscard]] bool writes() const;                 // as replayed
  [[nodiscard]] std::string saves_nothing() const;   // why what is written is no reason to buy drives; empty: it is
};

std::int64_t switch_lanes_of(const PriceList& prices);

// `replayed`: by run, with endless drives. In the order of the programme's drives.
std::vector<DriveChoice> fit_drives(const ProcurementRequest& request, const std::vector<ReplayedPlan>& replayed);
// The answers for chosen drives per GPU, of those that have been replayed with them.
void answer_for_chosen(const ProcurementRequest& request, const std::vector<ReplayedPlan>& replayed,
                       std::vector<DriveChoice>& fits);

}  // namespace spillway::studies
