// An answer about what to buy as a document.
#pragma once

#include "reports/report_document.h"
#include "studies/procurement/procurement.h"

namespace spillway::reports {

ReportDocument procurement_report(const ProcurementRequest& request, const ProcurementAnswer& answer);

}  // namespace spillway::reports
