// How long drives live under the writes of a replayed step, and whether they have room for them.
#pragma once

#include <optional>
#include <string_view>

#include "base/words.h"
#include "hwprofiles/hardware_profile.h"
#include "sim/devices/endurance.h"
#include "sim/replay/offload_plan.h"
#include "sim/replay/planned_trace.h"
#include "sim/replay/result.h"

namespace spillway::planners {

// Bound of a lifetime's range that a verdict uses: the rating as it stands unless another is asked for.
enum class LifeBound { rated, expected, high };
const Words& life_bound_words();
double years_by(const DriveLife& life, LifeBound bound);
// "by its rating as it stands", "expected", "by the high end of its range".
std::string_view told(LifeBound bound);

// State of the drives, and the demands on them.
struct DriveDemands {
  double least_life_years = 0;
  LifeBound bound = LifeBound::rated;
  double used_fraction = 0;   // of the rated life, used up before; [0, 1]
  std::optional<Bytes> free;  // on each drive; not given: its capacity, where the profile states one
};

// Years that `drives` of this endurance last at so many bytes a second, worn out evenly as in a RAID-0 set. Expected,
// by the rating as it stands (low) and as far as it may be adjusted (high). The only calculation of a lifetime: runs,
// reports, capacity, sweeps and plans use it at the step's period, without a pause.
DriveLife drive_life(const Endurance& endurance, std::int64_t drives, double bytes_per_second);

// Bytes a second that the replay writes to the set, by all who share it.
double write_rate(const DriveTraffic& traffic, const Result& result);

// Rates every drive set with traffic in the result. Sets that the hardware doesn't know are left alone.
//   DriveTraffic::life     at the mean rate of writing
//   DriveTraffic::held     most bytes that lie on it at once: a tensor from the begin of its store to the end of its
//                          load (of its store if forwarded), one that was away before the step all the time
//   Result::drives_refuse  too little room, nothing left of the rated life, a shorter life than asked for, or no
//                          rating where one is asked for
// `result` is of `planned`. O(absences log).
void rate_drives(const HardwareProfile& hardware, const DriveDemands& demands, const OffloadPlan& plan,
                 const PlannedTrace& planned, Result& result);

// Shortest lifetime of the drive sets, in years: expected, and by the rating as it stands. Infinity when nothing is
// written, or when it is unknown because a set without a rating is written to (unrated_writes()).
double shortest_life_years(const Result& result);
double shortest_rated_years(const Result& result);
const DriveTraffic* unrated_writes(const Result& result);  // the first such set; null: none
std::string told_unrated(const DriveTraffic& drive);       // "crucial-t705-2tb is not rated: how long it lasts ..."
// For a table's cell: "3.38-5.2", by the rating and expected; "5.2" where they are one; "-" where there is no end.
std::string life_cell(double rated_years, double years);
std::string life_cell(const Result& result);  // the same, or "not rated"

}  // namespace spillway::planners
