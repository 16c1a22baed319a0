#include "reports/diagnosis_section.h"

#include <utility>

namespace spillway::reports {
namespace {

ReportCell milliseconds(Picos time) { return number_cell(to_seconds(time) * 1e3); }
ReportCell event_count_cell(std::uint64_t count) { return number_cell(static_cast<double>(count)); }

void add_rows(ReportSection& section, const char* caption, const std::vector<DiagnosisRow>& rows, bool on_host) {
  if (rows.empty()) return;
  ReportTable table{caption, {"name", "ms", "times"}, {}};
  if (on_host) table.columns.insert(table.columns.begin() + 2, "GPU idle, ms");
  for (const DiagnosisRow& row : rows) {
    table.rows.push_back({text_cell(row.name), milliseconds(row.time), event_count_cell(row.count)});
    if (on_host) table.rows.back().insert(table.rows.back().begin() + 2, milliseconds(row.gpu_idle));
  }
  section.tables.push_back(std::move(table));
}

}  // namespace

ReportSection diagnosis_section(const StepDiagnosis& diagnosis) {
  ReportSection section;
  section.heading = "Where the recorded time went";
  section.paragraphs.emplace_back(
      "Rows of one table may lie inside each other. What each would give is a replay of the whole step without it.");
  ReportTable reliefs{"What each would give", {"without", "step, ms", "gain, %"}, {}};
  for (const Relief& row : diagnosis.reliefs)
    reliefs.rows.push_back({text_cell(row.what), milliseconds(row.step_time), number_cell(row.gain * 100)});
  if (!reliefs.rows.empty()) section.tables.push_back(std::move(reliefs));
  add_rows(section, "The host, by what it did while the GPU was idle", diagnosis.host, true);
  add_rows(section, "Python's own time", diagnosis.frames, true);
  add_rows(section, "Kernels", diagnosis.kernels, false);
  add_rows(section, "Operators, by the GPU time they launched", diagnosis.operators, false);
  add_rows(section, "Modules, by the GPU time they launched", diagnosis.modules, false);
  ReportTable collectives{"Collectives; waits are estimated", {"name", "ms", "of it waiting, ms", "times"}, {}};
  for (const CollectiveRow& row : diagnosis.collectives)
    collectives.rows.push_back(
        {text_cell(row.name), milliseconds(row.time), milliseconds(row.wait), event_count_cell(row.count)});
  if (!collectives.rows.empty()) section.tables.push_back(std::move(collectives));
  return section;
}

}  // namespace spillway::reports
