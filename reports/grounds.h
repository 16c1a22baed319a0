// What a document's figures rest on, for its first page: inputs by where they are from, each kind with how far it may
// be off, where anybody knows.
#pragma once

#include <vector>

#include "reports/report_document.h"
#include "sim/replay/result.h"

namespace spillway::reports {

// A row for each kind of provenance there is, the best known first. No profile states an error of a single value; what
// all of them together leave of a step is its range, measured over predicted steps (docs/internals/validation.md), of
// which the last row tells.
ReportTable grounds_table(const std::vector<InputProvenance>& inputs, const FigureRange& step_time);

}  // namespace spillway::reports
