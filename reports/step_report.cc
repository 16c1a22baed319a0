#include "reports/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/grounds.h"
#include "sim/replay/fidelity.h"
#include "sim/replay/peak_owners.h"
#include "studies/answer/answer.h"
#include "studies/offload/result_figures.h"

namespace spillway::reports {
namespace {

constexpr double gib = 1'073'741'824.0;

ReportCell text_cell(std::string text) { return {std::move(text), std::nullopt}; }
double gibibytes(Bytes bytes) { return static_cast<double>(bytes.count()) / gib; }

ReportCell known_cell(const std::optional<double>& value) {
  return value ? number_cell(*value) : text_cell(studies::ComparedFigure::text(value));
}

ReportSection figures_section(const Result& result, const Result* baseline) {
  ReportSection section;
  section.heading = baseline == nullptr ? "Figures" : "Figures against the baseline";
  if (baseline != nullptr)
    section.paragraphs.push_back("The baseline is: " + baseline->title + ": " + verdict_sentence(*baseline) + ".");
  ReportTable table;
  if (baseline == nullptr) {
    table.columns = {"figure", "value", "unit"};
    for (const ComparedFigure& figure : compared_figures(result, result))
      table.rows.push_back({text_cell(figure.name), known_cell(figure.b), text_cell(figure.unit)});
  } else {
    table.columns = {"figure", "baseline", "this step", "unit", "change"};
    for (const ComparedFigure& figure : compared_figures(*baseline, result))
      table.rows.push_back({text_cell(figure.name), known_cell(figure.a), known_cell(figure.b), text_cell(figure.unit),
                            text_cell(figure.change())});
  }
  section.tables.push_back(std::move(table));
  section.tables.push_back(grounds_table(result.provenance, result.step_time_range));
  section.items.push_back("80 % of steps like it are measured within: " + step_range_words(result) + ".");
  section.items.push_back("Their peaks: " + peak_range_words(result) + ".");
  return section;
}

// Of captures: how far to trust the figures, and what they hold that no change would shorten.
void add_fidelity(const Result& result, ReportSection& section) {
  const std::vector<std::string> first = fidelity_warnings(result);
  section.paragraphs.insert(section.paragraphs.begin(), first.begin(), first.end());
  ReportTable table{"Kept as recorded, because nothing in the capture explains it",
                    {"what", "times", "ms", "of the critical path, ms"},
                    {}};
  for (const KeptIdle& row : result.kept_idle)
    if (row.on_path > Picos(0))
      table.rows.push_back({text_cell(row.name), number_cell(static_cast<double>(row.count)),
                            number_cell(to_seconds(row.total) * 1e3), number_cell(to_seconds(row.on_path) * 1e3)});
  if (!table.rows.empty()) section.tables.push_back(std::move(table));
}

ReportTable reserve_table(const Reserve& reserve) {
  ReportTable table{"Kept free of the memory, for what the allocator doesn't see", {"for", "GiB", "is", "source"}, {}};
  for (const ReservePart& part : reserve.parts)
    table.rows.push_back({text_cell(part.name + (part.in_capacity ? " (not in the capacity)" : "")),
                          number_cell(gibibytes(part.bytes)), text_cell(part.provenance), text_cell(part.source)});
  return table;
}

// The largest, and the sum of the others: layers are many, and alike.
ReportTable owners_table(const std::string& caption, const std::vector<PeakOwner>& owners) {
  constexpr std::size_t most = 14;
  ReportTable table{caption, {"held by", "GiB"}, {}};
  for (const PeakOwner& owner : largest_owners(owners, most))
    table.rows.push_back({text_cell(owner.name), number_cell(gibibytes(owner.bytes))});
  return table;
}

ReportSection memory_section(const Result& result) {
  const MemoryResult& memory = result.memory;
  ReportSection section;
  section.heading = "Memory";
  if (!memory.explanation.empty()) section.paragraphs.push_back(memory.explanation);
  section.charts.push_back(memory_chart(memory));
  if (!result.reserve.parts.empty()) section.tables.push_back(reserve_table(result.reserve));
  for (const auto& [caption, owners] : {std::pair("At the peak, by what it is for", &memory.owners),
                                        std::pair("At the peak, by phase", &memory.owners_by_phase),
                                        std::pair("At the peak, by layer", &memory.owners_by_layer)}) {
    if (owners->empty()) continue;
    section.tables.push_back(owners_table(caption, *owners));
  }
  return section;
}

ReportSection machine_section(const Result& result) {
  ReportSection section;
  section.heading = "Links and drives";
  ReportTable links{"Links", {"link", "GiB a step", "busy %"}, {}};
  const auto steps = static_cast<double>(std::max<std::size_t>(result.steps.size(), 1));
  for (const LinkResult& link : result.links)
    links.rows.push_back(
        {text_cell(link.name), number_cell(gibibytes(link.bytes) / steps), number_cell(link.busy_fraction * 100)});
  section.tables.push_back(std::move(links));
  if (result.drives.empty()) return section;
  ReportTable drives{
      "Drives", {"drives", "model", "number", "GPUs", "GiB written", "GiB read", "life, years", "rests on"}, {}};
  for (const DriveTraffic& drive : result.drives)
    drives.rows.push_back({text_cell(drive.name), text_cell(drive.model),
                           number_cell(static_cast<double>(drive.drives)), number_cell(static_cast<double>(drive.gpus)),
                           number_cell(gibibytes(drive.written)), number_cell(gibibytes(drive.read)),
                           drive.life ? number_cell(drive.life->years) : text_cell("not rated"),
                           text_cell(drive.life ? drive.life->basis : "")});
  section.tables.push_back(std::move(drives));
  return section;
}

// Of drives that refuse, the verdict says "no: " itself.
std::string without_no(const std::string& words) {
  constexpr std::string_view no = "no: ";
  return words.starts_with(no) ? words.substr(no.size()) : words;
}

ReportSection grounds_section(const Result& result) {
  ReportSection section;
  section.heading = "What the figures rest on";
  for (const std::string& warning : result.warnings) section.items.push_back(studies::warning_words(warning));
  ReportTable table{"Inputs", {"input", "value", "is", "source"}, {}};
  for (const InputProvenance& input : result.provenance)
    table.rows.push_back(
        {text_cell(input.name), text_cell(input.value), text_cell(input.provenance), text_cell(input.source)});
  section.tables.push_back(std::move(table));
  section.paragraphs.push_back(fmt::format("Fingerprint of the replay: {:016x}.", result.fingerprint));
  return section;
}

}  // namespace

ReportChart memory_chart(const MemoryResult& memory) {
  ReportChart chart{"Memory over the step", "ms", "GiB", {{"allocated", {}, {}}, {"reserved", {}, {}}}};
  // A few hundred points, each the most of its part, draw the same curve.
  const std::size_t stride = memory.timeline.size() / 400 + 1;
  for (std::size_t i = 0; i < memory.timeline.size(); i += stride) {
    MemoryPoint most = memory.timeline[i];
    for (std::size_t k = i; k < std::min(i + stride, memory.timeline.size()); ++k) {
      most.allocated = std::max(most.allocated, memory.timeline[k].allocated);
      most.reserved = std::max(most.reserved, memory.timeline[k].reserved);
    }
    const double at = to_seconds(most.time) * 1e3;
    for (const std::size_t series : {0U, 1U}) {
      chart.series[series].x.push_back(at);
      chart.series[series].y.push_back(gibibytes(series == 0 ? most.allocated : most.reserved));
    }
  }
  if (memory.capacity > Bytes(0) && !chart.series[0].x.empty())
    chart.series.push_back({"capacity",
                            {chart.series[0].x.front(), chart.series[0].x.back()},
                            {gibibytes(memory.capacity), gibibytes(memory.capacity)},
                            true});
  return chart;
}

ReportDocument step_report(const Result& result, const Result* baseline) {
  ReportDocument document;
  document.title = result.title;
  document.subtitle = "A training step, replayed by spillway";
  document.answer = result.answer();
  const std::string words = verdict_sentence(result);
  const std::string answer = document.answer == Verdict::fits           ? "Yes: " + words
                             : document.answer == Verdict::does_not_fit ? "No: " + without_no(words)
                                                                        : verdict_heading(result);
  document.verdict = fmt::format("{}. A step takes {:.1f} ms; {} binds it ({:.0f} % of its critical path).", answer,
                                 to_seconds(result.step_time) * 1e3, describe(result.binding),
                                 binding_share(result, result.binding) * 100);
  document.sections.push_back(figures_section(result, baseline));
  add_fidelity(result, document.sections.back());
  if (result.memory.known) document.sections.push_back(memory_section(result));
  document.sections.push_back(machine_section(result));
  document.sections.push_back(grounds_section(result));
  return document;
}

}  // namespace spillway::reports
