// The diagnosis of a recorded step's time, as a section of its report.
#pragma once

#include "reports/report_document.h"
#include "studies/diagnosis/step_diagnosis.h"

namespace spillway::reports {

ReportSection diagnosis_section(const StepDiagnosis& diagnosis);

}  // namespace spillway::reports
