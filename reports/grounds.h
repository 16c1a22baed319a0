// The grounds of a document's figures, for its first page: inputs by their provenance, each kind with its error if
// anybody knows it.
#pragma once

#include <vector>

#include "reports/report_document.h"
#include "sim/replay/result.h"

namespace spillway::reports {

// A row for each kind of provenance there is, the best known first. No profile states an error of a single value.
// The last row has the error of all together: the step's range, measured over predicted steps
// (docs/internals/validation.md).
ReportTable grounds_table(const std::vector<InputProvenance>& inputs, const FigureRange& step_time);

}  // namespace spillway::reports
