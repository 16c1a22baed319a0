// The tests of drives and links, as a table's rows.
#pragma once

#include <span>
#include <vector>

#include "reports/report_document.h"
#include "studies/offload/ssd_answer.h"

namespace spillway::reports {

// A row for each test: `before`, its name, what is asked and given, whether it holds.
void add_tests(std::span<const JudgedTest> tests, const std::vector<ReportCell>& before, ReportTable& table);

}  // namespace spillway::reports
