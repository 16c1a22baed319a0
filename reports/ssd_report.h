// An answer about drives as a document.
#pragma once

#include "reports/report_document.h"
#include "studies/offload/ssd_answer.h"

namespace spillway::reports {

ReportDocument ssd_report(const LoadedScenario& loaded, const SsdAnswer& answer, const SsdQuestion& question);

}  // namespace spillway::reports
