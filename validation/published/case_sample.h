// A small part of many cases that still has some of every kind.
#pragma once

#include <cstddef>
#include <vector>

#include "validation/published/case_file.h"

namespace spillway::validation {

// Keeps at most `per_group` set-ups of every source, metric and role. A hash of their settings picks them from the half
// that takes least work (work_of()): always the same ones, whatever else the files have. Cases with the same settings
// stay together. Skipped cases stay. O(cases log cases). Precondition: per_group > 0.
void keep_sample(std::vector<CaseFile>& files, std::size_t per_group);

}  // namespace spillway::validation
