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

// A file that isn't there, or holds nothing but such an answer, becomes one that appears whole; there the same answer
// gives the same bytes. In a database with other tables these two are replaced, in one transaction. Throws InputError
// where the file is no database, or has tables of these names that no sweep wrote, and leaves it as it is.
void write_sweep_database(const std::string& path, const SweepFile& file, const SweepOutcome& outcome);
// The same complaints, before the sweep; changes nothing.
void check_sweep_database(const std::string& path);

}  // namespace spillway::reports
