#include "reports/judged_tests.h"

#include <utility>

namespace spillway::reports {

void add_tests(std::span<const JudgedTest> tests, const std::vector<ReportCell>& before, ReportTable& table) {
  for (const JudgedTest& test : tests) {
    std::vector<ReportCell> row = before;
    for (const std::string& text : {test.name, test.asked, test.given, std::string(test.holds ? "yes" : "no")})
      row.push_back(text_cell(text));
    table.rows.push_back(std::move(row));
  }
}

}  // namespace spillway::reports
