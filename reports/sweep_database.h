// A sweep's answer as an SQLite database, to be read with SQL: pandas.read_sql("select * from points", connection).
//
//   points   a row a replayed point, in grid order: point, label, axis_NAME for each axis, settings (JSON), verdict,
//            meets_requirements, on_front, step_time_ns, ..., as the keys of JSON say; NULL: not known. failure: why a
//            point could not be replayed
//   sweep    name, value: title, objectives, counts of points, the screen's error
#pragma once

#include <string>

#include "studies/sweep/sweep_run.h"

namespace spillway::reports {

// The whole database file. The same answer gives the same bytes.
std::string sweep_database(const SweepFile& file, const SweepOutcome& outcome);

}  // namespace spillway::reports
