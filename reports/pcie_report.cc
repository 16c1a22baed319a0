#include "reports/pcie_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "base/input_error.h"
#include "base/number_text.h"
#include "reports/grounds.h"
#include "reports/judged_tests.h"

namespace spillway::reports {
namespace {

double bytes_of(Bytes bytes) { return static_cast<double>(bytes.count()); }

// Lanes of each PCIe generation that carry the rate.
ReportTable lane_table(const HostProfile& host, double rate) {
  ReportTable table{"A GPU's own link: lanes that carry the required rate",
                    {"generation", "GB/s per lane", "lanes needed", "slot"},
                    {}};
  const double efficiency = host.pcie_payload_efficiency.value;
  for (std::int64_t generation = 3; generation <= 6; ++generation) {
    const double lane = to_bytes_per_second(pcie_raw_rate(generation, 1)) * efficiency;
    const auto lanes = static_cast<std::int64_t>(std::ceil(rate / lane));
    std::string slot = "more than x16";
    for (const std::int64_t width : {16, 8, 4, 2, 1})
      if (width >= lanes) slot = fmt::format("x{}", width);
    table.rows.push_back({number_cell(static_cast<double>(generation)), number_cell(giga(lane)),
                          number_cell(static_cast<double>(lanes)), text_cell(slot)});
  }
  return table;
}

// By the tests that fail; links that carry their averages are said beside a step that waits for them.
std::string why_not(const PcieAnswer& answer) {
  std::string words = "No: " + why_failing(answer.tests());
  if (answer.waits_for_links() && !answer.links.empty() && answer.links.front().headroom() >= 1)
    words += fmt::format(
        ". On average every link has room, the tightest, {}, {:.3g} times what it needs: what is moved comes in bursts",
        answer.links.front().name, answer.links.front().headroom());
  return words + ".";
}

ReportTable tests_table(const PcieAnswer& answer) {
  ReportTable table{"What is asked of the step and its links", {"test", "asked", "given", "holds"}, {}};
  add_tests(answer.tests(), {}, table);
  return table;
}

// Of a step that moves what it moves to host memory.
std::string host_verdict(const PcieAnswer& answer) {
  if (!answer.is_yes()) return why_not(answer);
  std::string words =
      fmt::format("Yes: {:.4g} GB a step go to host memory, and {:.4g} GB come back, beside the step's work",
                  giga(bytes_of(answer.traffic.to_host)), giga(bytes_of(answer.traffic.from_host)));
  if (!answer.links.empty())
    words += fmt::format("; the busiest link, {}, has {:.3g} times what it carries", answer.links.front().name,
                         answer.links.front().headroom());
  return words + ".";
}

ReportSection host_links(const PcieAnswer& answer) {
  ReportSection section{"Required and available",
                        {fmt::format("What crosses each link, over a step of {:.4g} s: what is moved, and the step's "
                                     "other copies.",
                                     to_seconds(answer.traffic.load.step))},
                        {},
                        {},
                        {}};
  constexpr std::size_t most_rows = 24;  // a pipeline has the links of each of its stages
  const std::size_t rows = std::min(most_rows, answer.links.size());
  ReportTable table{rows == answer.links.size()
                        ? "Links, least headroom first"
                        : fmt::format("Links, the {} of {} that have least headroom", rows, answer.links.size()),
                    {"link", "capacity GB/s", "carried GB a step", "required GB/s", "headroom x"},
                    {}};
  for (const LinkAnswer& link : std::span(answer.links).first(rows))
    table.rows.push_back({text_cell(link.name), number_cell(giga(to_bytes_per_second(link.capacity))),
                          number_cell(giga(link.copied)), number_cell(giga(link.required)),
                          number_cell(link.headroom())});
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace

ReportDocument pcie_report(const LoadedScenario& loaded, const PcieAnswer& answer, const SsdQuestion& question) {
  const DriveLoad& load = answer.traffic.load;
  ReportDocument document;
  document.title = "Links for " + (loaded.scenario.title.empty() ? loaded.scenario.trace : loaded.scenario.title);
  document.subtitle = fmt::format("{}; {} GPU{} a machine at once; {}",
                                  loaded.hardware.title.empty() ? loaded.hardware.name : loaded.hardware.title,
                                  answer.gpus_per_machine, answer.gpus_per_machine == 1 ? "" : "s",
                                  answer.is_on_host()                       ? "to and from host memory"
                                  : question.route == DriveRoute::gpudirect ? "drives read and write GPU memory"
                                                                            : "through pinned host memory");
  document.answer = answer.is_yes() ? Verdict::fits : Verdict::does_not_fit;
  if (load.written() == Bytes(0) && answer.kept_by_plan > Bytes(0)) {
    document.verdict = fmt::format(
        "No: {} writes nothing here: it keeps, or recomputes, the {:.4g} GB of each step that it might move. "
        "offload.technique=ssdtrain with offload.adaptive=false moves them all.",
        answer.traffic.technique, giga(bytes_of(answer.kept_by_plan)));
  } else if (answer.is_on_host()) {
    document.verdict = host_verdict(answer);
  } else if (load.written() == Bytes(0)) {
    document.verdict = "Yes: this step keeps no activation large enough to be offloaded.";
  } else if (!answer.cannot_tell.empty()) {
    document.verdict = "No: " + answer.cannot_tell + ".";
  } else {
    const LinkAnswer& tightest = answer.links.front();
    document.verdict =
        answer.is_yes()
            ? fmt::format(
                  "Yes: {:.4g} GB/s needed for each GPU; the tightest link, {}, has {:.3g} times what it needs.",
                  giga(answer.required_rate), tightest.name, tightest.headroom())
            : why_not(answer);
    if (answer.waits_for_drives() && !answer.waits_for_links())
      document.verdict += fmt::format(
          " Its drives hold the step up, {} where {} would do: the report on drives (report ssd) judges them.",
          duration_text(answer.traffic.replayed), duration_text(answer.on_endless_drives));
  }
  ReportSection traffic{"What a step moves", {answer.traffic.basis}, {}, {}, {}};
  if (!answer.is_on_host())
    traffic.paragraphs.push_back(fmt::format(
        "Each GPU writes {:.4g} GB and reads {:.4g} GB a step of {:.4g} s{}. Writing may take one half of it, reading "
        "the "
        "other: {:.4g} GB/s.",
        giga(bytes_of(load.written())), giga(bytes_of(load.read())), to_seconds(load.step),
        load.step == answer.traffic.replayed
            ? ""
            : fmt::format(", which its transfers lengthen to {:.4g} s here", to_seconds(answer.traffic.replayed)),
        giga(answer.required_rate)));
  if (load.written() > Bytes(0) || answer.is_on_host())
    if (!answer.tests().empty()) traffic.tables.push_back(tests_table(answer));
  if (answer.step) traffic.tables.push_back(grounds_table(loaded.provenance, answer.step->step_time_range));
  document.sections.push_back(std::move(traffic));
  if (answer.is_on_host()) document.sections.push_back(host_links(answer));
  if (load.written() == Bytes(0)) return document;
  ReportSection links{"Required and available", {}, {}, {}, {}};
  if (answer.cannot_tell.empty()) {
    links.paragraphs.push_back(
        fmt::format("With {} at the other end and all GPUs at once, each gets {:.4g} GB/s writing "
                    "and {:.4g} GB/s reading while caches are empty.",
                    answer.drives, giga(answer.write_rate), giga(answer.read_rate)));
    ReportTable table{"Links, least headroom first",
                      {"link", "capacity GB/s", "written GB a step", "read GB a step", "other copies GB a step",
                       "required GB/s", "headroom x"},
                      {}};
    for (const LinkAnswer& link : answer.links)
      table.rows.push_back({text_cell(link.name), number_cell(giga(to_bytes_per_second(link.capacity))),
                            number_cell(giga(link.written)), number_cell(giga(link.read)),
                            number_cell(giga(link.copied)), number_cell(giga(link.required)),
                            number_cell(link.headroom())});
    links.tables.push_back(std::move(table));
  }
  links.tables.push_back(lane_table(loaded.hardware.host, answer.required_rate));
  document.sections.push_back(std::move(links));
  ReportSection assumptions{"Assumptions", {}, {}, {}, {}};
  const auto& efficiency = loaded.hardware.host.pcie_payload_efficiency;
  assumptions.items.push_back(fmt::format("Payload efficiency of PCIe {:.3g} ({}: {}).", efficiency.value,
                                          provenance_name(efficiency.origin.provenance), efficiency.origin.source));
  assumptions.items.emplace_back(
      "GPUs write at the same time and read at the same time, in opposite halves of the step. "
      "Drives' links count with empty caches; what they keep up is the report on drives.");
  document.sections.push_back(std::move(assumptions));
  return document;
}

}  // namespace spillway::reports
