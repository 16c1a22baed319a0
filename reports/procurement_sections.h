// Parts of a procurement report that stand by themselves.
#pragma once

#include <optional>
#include <string>

#include "reports/report_document.h"
#include "studies/procurement/procurement.h"

namespace spillway::reports {

// The PCIe links under the cheapest option that writes to drives; none: none does, or they aren't known.
std::optional<ReportSection> links_section(const ProcurementAnswer& answer);

// A step's memory over time and the parts of its time. `run`: the run of the step.
ReportSection step_picture_section(const Result& step, const std::string& run);

// The chosen option (else the cheapest) beside answer.today, which must be there.
// The options within the budget of a request, and by how much the others exceed it.
ReportSection budget_section(const ProcurementRequest& request, const ProcurementAnswer& answer);
// The verdict where options train it in time and none of them within the budget.
std::string over_budget(const ProcurementRequest& request, const ProcurementAnswer& answer);
ReportSection today_section(const ProcurementRequest& request, const ProcurementAnswer& answer);

}  // namespace spillway::reports
