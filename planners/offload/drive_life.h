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

// Which end of a life's range a verdict goes by: the rating as it stands unless another is asked for.
enum class LifeBound { rated, expected, high };
const Words& life_bound_words();
double years_by(const DriveLife& life, LifeBound bound);
// "by its rating as it stands", "expected", "by the high end of its range".
std::string_view told(LifeBound bound);

// What the drives are like, and what is asked of them.
struct DriveDemands {
  double least_life_years = 0;
  LifeBound bound = LifeBound::rated;
  double used_fraction = 0;   // of the rated life, worn away before; [0, 1]
  std::optional<Bytes> free;  // on each drive; not given: its capacity, where the profile states one
};

// Years until `drives` of this endurance, worn evenly as a RAID-0 set wears them, have taken so many bytes a second:
// expected, by the rating as it stands (low) and as far as it may be adjusted (high). The one reckoning of a life:
// runs, reports, capacity, sweeps and plans take it at the step's period, without a pause.
DriveLife drive_life(const Endurance& endurance, std::int64_t drives, double bytes_per_second);

// What the replay writes to the set in each second, by all who share it.
double write_rate(const DriveTraffic& traffic, const Result& result);

// Of every drive set the result has traffic of: DriveTraffic::life, at the mean rate of writing; DriveTraffic::held,
// the most bytes that lie on it at once: a tensor from the begin of its store to the end of its load, one that was away
// before the step all the time. And Result::drives_refuse: too little room, nothing left of the rated life, or a
// shorter life than asked for. Sets the hardware doesn't know are left alone. `result` is of `planned`. O(absences
// log).
void rate_drives(const HardwareProfile& hardware, const DriveDemands& demands, const OffloadPlan& plan,
                 const PlannedTrace& planned, Result& result);

// The shortest of the drive sets' lives, in years: expected, and by the rating as it stands; infinity when nothing is
// written, or when it is unknown, as a set is written to that nobody rates (unrated_writes()).
double shortest_life_years(const Result& result);
double shortest_rated_years(const Result& result);
const DriveTraffic* unrated_writes(const Result& result);  // the first such set; null: none
std::string told_unrated(const DriveTraffic& drive);       // "crucial-t705-2tb is not rated: how long it lasts ..."
// For a table's cell: "3.38-5.2", by the rating and expected; "5.2" where they are one; "-" where there is no end.
std::string life_cell(double rated_years, double years);
std::string life_cell(const Result& result);  // the same, or "not rated"

}  // namespace spillway::planners
