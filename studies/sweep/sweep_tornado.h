// How far each axis alone moves a sweep's best point: every other value of one axis at a time, replayed in full.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "studies/sweep/sweep_run.h"

namespace spillway::studies {

struct SweepSwing {
  struct End {
    std::string option;
    double value = 0;
  };
  std::string axis, option;  // the best point's
  End least, most;           // the best point among them
  std::size_t replayed = 0;  // other values that meet the requirements
  std::size_t failed = 0;    // that don't, or can't be replayed
  std::size_t left_out = 0;  // by the file's rules
};

struct SweepTornado {
  std::string label;  // of the best point
  double value = 0;   // of it
  std::int64_t number = 0;
  std::vector<SweepSwing> swings;  // the widest first; by axis where equally wide
};

// The best point: of least objective among those that meet the requirements, the lowest number where equal. At most
// `most_options` values of an axis, spread evenly, are tried. Throws InputError where no point meets them.
SweepTornado sweep_tornado(const SweepFile& file, const SweepOutcome& outcome, Objective objective,
                           SweepWorkers& workers, SweepStore& store, std::size_t most_options = 16);

}  // namespace spillway::studies
