// How long a case takes, before it is run.
#pragma once

#include "validation/published/case_file.h"

namespace spillway::validation {

// Layers times micro-batches of a step, by which generation and replay grow: to compare cases, not a time. 0 for what
// isn't a generated step (skipped, closed form, captured), and where the set-up is none. O(1), except where it reads a
// model of the library.
double work_of(const CaseFile& file, const Case& one);

}  // namespace spillway::validation
