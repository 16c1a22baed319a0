// An answer about links as a document.
#pragma once

#include "reports/report_document.h"
#include "studies/offload/pcie_answer.h"

namespace spillway::reports {

ReportDocument pcie_report(const LoadedScenario& loaded, const PcieAnswer& answer, const SsdQuestion& question);

}  // namespace spillway::reports
