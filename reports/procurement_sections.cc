#include "reports/procurement_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "planners/technique/technique_table.h"
#include "reports/procurement_figures.h"
#include "reports/step_report.h"
#include "studies/offload/result_figures.h"

namespace spillway::reports {
namespace {

constexpr std::size_t chart_bins = 60;  // of a step in charts

// Links of the same figures stand together: how many more there are of each.
std::vector<std::pair<const LinkAnswer*, int>> different(const std::vector<LinkAnswer>& links) {
  const auto same = [](double a, double b) { return std::abs(a - b) <= 1e-4 * std::max(std::abs(a), std::abs(b)); };
  std::vector<std::pair<const LinkAnswer*, int>> kinds;
  for (const LinkAnswer& link : links) {
    const auto known = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) {
      const LinkAnswer& other = *kind.first;
      return other.capacity == link.capacity && same(other.written, link.written) && same(other.read, link.read) &&
             same(other.copied, link.copied);
    });
    if (known == kinds.end())
      kinds.emplace_back(&link, 0);
    else
      ++known->second;
  }
  return kinds;
}

// The tightest link over the step: what comes due on it against what it carries.
ReportChart link_course(const PcieAnswer& pcie, const LinkAnswer& link) {
  const DriveLoad& load = pcie.traffic.load;
  const double step = to_seconds(load.step);
  const auto written = static_cast<double>(load.written().count()), read = static_cast<double>(load.read().count());
  const std::vector<double> writes = traffic_course(load, true, chart_bins),
                            reads = traffic_course(load, false, chart_bins);
  ReportChart chart{
      "Over a step: what is written and read when nothing waits, on " + link.name, "seconds into the step", "GB/s", {}};
  ReportSeries moved{"to and from drives", {}, {}, false};
  for (std::size_t bin = 0; bin < chart_bins; ++bin)
    for (const std::size_t end : {0U, 1U}) {
      moved.x.push_back(static_cast<double>(bin + end) * step / static_cast<double>(chart_bins));
      moved.y.push_back(giga((written > 0 ? writes[bin] * link.written / written : 0) +
                             (read > 0 ? reads[bin] * link.read / read : 0)));
    }
  const double carries = giga(to_bytes_per_second(link.capacity));
  chart.series.push_back(std::move(moved));
  chart.series.push_back({"the link carries", {0, step}, {carries, carries}, true});
  return chart;
}

// What may come from below a node over what its own link takes.
ReportTable oversubscription(const HardwareProfile& hardware) {
  const std::vector<PcieNode>& nodes = hardware.host.pcie;
  const auto rate = [&](const PcieNode& node) {
    if (node.bandwidth) return to_bytes_per_second(node.bandwidth->value);
    if (!node.generation || !node.lanes) return 0.0;
    return to_bytes_per_second(pcie_raw_rate(node.generation->value, node.lanes->value)) *
           hardware.host.pcie_payload_efficiency.value;
  };
  std::set<std::size_t> used(hardware.gpu_slots.begin(), hardware.gpu_slots.end());
  for (const DriveGroup& group : hardware.drives) used.insert(group.slots.begin(), group.slots.end());
  ReportTable table{"Switches: what their GPUs and drives could send at once over what goes up",
                    {"switch", "below GB/s", "up GB/s", "oversubscription x", "lanes below", "lanes up"},
                    {}};
  for (std::size_t s = 0; s < nodes.size(); ++s) {
    if (nodes[s].kind != PcieNodeKind::pcie_switch) continue;
    double below = 0;
    std::int64_t lanes = 0;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      const bool counts = nodes[n].up == s && (used.contains(n) || nodes[n].kind == PcieNodeKind::pcie_switch);
      if (!counts) continue;
      below += rate(nodes[n]);
      lanes += nodes[n].lanes ? nodes[n].lanes->value : 0;
    }
    const double up = rate(nodes[s]);
    if (up <= 0) continue;
    table.rows.push_back({text_cell(nodes[s].name), cell(giga(below)), cell(giga(up)), cell(below / up), count(lanes),
                          count(nodes[s].lanes ? nodes[s].lanes->value : 0)});
  }
  if (table.rows.empty())
    table.rows.push_back({text_cell("no switch: all slots are the CPUs' own"), text_cell("-"), text_cell("-"),
                          text_cell("-"), text_cell("-"), text_cell("-")});
  return table;
}

double whole_seconds(const std::vector<RunReplay>& runs, const ProcurementRequest& request) {
  double seconds = 0;
  for (std::size_t r = 0; r < runs.size(); ++r)
    seconds +=
        std::ceil(request.runs[r].tokens / static_cast<double>(runs[r].tokens_per_step)) * runs[r].step_seconds();
  return seconds;
}

}  // namespace

std::optional<ReportSection> links_section(const ProcurementAnswer& answer) {
  if (!answer.pcie || !answer.pcie->cannot_tell.empty() || answer.pcie->links.empty()) return std::nullopt;
  const PcieAnswer& pcie = *answer.pcie;
  const PricedOption& option = answer.options[*answer.with_drives];
  ReportSection part;
  part.heading = "PCIe under " + option.name() + ", " + option.drive_name();
  const LinkAnswer& tightest = pcie.links.front();
  part.paragraphs.push_back(fmt::format(
      "All {} GPUs of a machine write all they want to in one half of the step and read it in the other. Drives "
      "beyond the machine's slots hang from the switches that are counted as bought, {} per machine. The tightest "
      "link, "
      "{}, carries {} GB/s and needs {}: {} times what it needs.",
      pcie.gpus_per_machine, figure(answer.book.value(answer.priced, option.place, "switches_per_machine")),
      tightest.name, figure(giga(to_bytes_per_second(tightest.capacity))), figure(giga(tightest.required)),
      figure(tightest.headroom())));
  ReportTable table{"Links, least headroom first",
                    {"link", "carries GB/s", "written GB a step", "read GB a step", "other copies GB a step",
                     "needed GB/s", "headroom x"},
                    {}};
  constexpr std::size_t most = 14;
  for (const auto& [link, alike] : different(pcie.links)) {
    if (table.rows.size() == most) break;
    table.rows.push_back({text_cell(link->name + (alike > 0 ? fmt::format(" and {} alike", alike) : "")),
                          cell(giga(to_bytes_per_second(link->capacity))), cell(giga(link->written)),
                          cell(giga(link->read)), cell(giga(link->copied)), cell(giga(link->required)),
                          cell(link->headroom())});
  }
  part.charts.push_back(link_course(pcie, tightest));
  part.tables.push_back(std::move(table));
  part.tables.push_back(oversubscription(option.hardware));
  return part;
}

ReportSection step_picture_section(const Result& step, const std::string& run) {
  ReportSection part;
  part.heading = "The step of " + run;
  part.paragraphs.push_back(fmt::format("{} ms; 80 % of steps like it: {}. Peaks: {}.",
                                        figure(to_seconds(step.step_time) * 1e3), step_range_words(step),
                                        peak_range_words(step)));
  part.charts.push_back(memory_chart(step.memory));
  ReportTable time{"Where its time goes, on the critical path", {"bound by", "ms", "%"}, {}};
  for (int i = 0; i < binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    const double share = binding_share(step, binding);
    if (share > 0)
      time.rows.push_back({text_cell(std::string(describe(binding))), cell(share * to_seconds(step.step_time) * 1e3),
                           cell(100 * share)});
  }
  part.tables.push_back(std::move(time));
  return part;
}

ReportSection budget_section(const ProcurementRequest& request, const ProcurementAnswer& answer) {
  ReportSection part{"Budget", {}, {}, {}, {}};
  ReportTable table{"", {"fleet and technique", "to buy USD", "to rent USD", "left USD", "days", "in time"}, {}};
  const auto price = [](const std::optional<double>& usd) { return usd ? cell(*usd) : text_cell("-"); };
  std::size_t within = 0, priced = 0;
  for (const PricedOption& option : answer.options) {
    if (!option.failure.empty()) continue;
    within += option.in_budget ? 1 : 0;
    if (priced++ >= static_cast<std::size_t>(request.shortlist)) continue;
    table.rows.push_back({text_cell(option.name()), price(option.buy_usd), price(option.rent_usd),
                          cell(request.budget_usd - option.least_usd()), cell(option.days),
                          text_cell(option.in_time ? "yes" : "no")});
  }
  part.paragraphs.push_back(
      fmt::format("{} of {} options that train it fit in {}. Bought are machines, network and drives, without running "
                  "costs; rented "
                  "are the machines for the programme's days alone. Left is what the cheaper of the two leaves.",
                  within, priced, dollars(request.budget_usd)));
  if (!table.rows.empty()) part.tables.push_back(std::move(table));
  return part;
}

std::string over_budget(const ProcurementRequest& request, const ProcurementAnswer& answer) {
  const PricedOption* least = nullptr;
  const PricedOption* within = nullptr;
  for (const PricedOption& option : answer.options) {
    if (!option.failure.empty()) continue;
    if (option.in_time && (least == nullptr || option.least_usd() < least->least_usd())) least = &option;
    if (option.in_budget && (within == nullptr || option.days < within->days)) within = &option;
  }
  const bool to_rent = least->rent_usd && *least->rent_usd == least->least_usd();
  std::string words = fmt::format("No: {} is the least expensive in time, {} to {}: {} more than the budget of {}.",
                                  least->name(), dollars(least->least_usd()), to_rent ? "rent" : "buy",
                                  dollars(least->least_usd() - request.budget_usd), dollars(request.budget_usd));
  if (within != nullptr)
    words += fmt::format(" Within it {} takes {} days of the {} there are.", within->name(), figure(within->days),
                         figure(request.days_there_are()));
  return words;
}

ReportSection today_section(const ProcurementRequest& request, const ProcurementAnswer& answer) {
  const TodaysFleet& today = *answer.today;
  const std::string name = fmt::format("{} GPUs of {}, {}", today.gpus, today.machine, words_of_ways(today.technique));
  ReportSection part;
  part.heading = "Compared with what is there today";
  if (!today.failure.empty()) {
    part.paragraphs.push_back(name + ": it can't train the programme: " + today.failure + ".");
    return part;
  }
  const bool in_time = today.days <= request.days_there_are();
  part.paragraphs.push_back(fmt::format("{} would train it in {} days{}: {}.", name, figure(today.days),
                                        request.deadline_days > 0 ? " of " + figure(request.deadline_days) : "",
                                        in_time ? "nothing has to be bought to be in time" : "too late"));
  if (answer.options.empty() || !answer.options.front().failure.empty()) return part;
  const PricedOption& option = answer.options[answer.chosen.value_or(0)];
  const double proposed_seconds = whole_seconds(option.runs, request);
  const double proposed_kilowatts =
      answer.book.value(answer.priced, option.place, "machines") * option.machine_watts / 1000;
  ReportTable table{"", {"figure", "today", "proposed", "proposed over today", "unit"}, {}};
  const auto row = [&](const char* what, double now, double then, const char* unit) {
    table.rows.push_back(
        {text_cell(what), cell(now), cell(then), now > 0 ? cell(then / now) : text_cell("-"), text_cell(unit)});
  };
  row("GPUs", static_cast<double>(today.gpus), static_cast<double>(option.fleet.gpus), "");
  row("programme, pauses included", today.days, option.days, "days");
  row("tokens a second, while it trains", request.tokens() / whole_seconds(today.runs, request),
      request.tokens() / proposed_seconds, "");
  row("power of the machines while they train", today.kilowatts, proposed_kilowatts, "kW");
  row("energy per 10⁹ tokens, without the facility", today.kwh_per_billion,
      proposed_kilowatts * proposed_seconds / 3600 / (request.tokens() / 1e9), "kWh");
  row("peak reserved of a GPU", in_gib(largest_peak(today.runs)), in_gib(largest_peak(option.runs)), "GiB");
  part.tables.push_back(std::move(table));
  for (std::size_t r = 0; r < today.runs.size(); ++r)
    part.items.push_back(fmt::format("{}: today layout {}, step of {} s (80 % of steps like it: {}), bound by {}.",
                                     request.runs[r].name, today.layouts[r], figure(today.runs[r].step_seconds()),
                                     range_cell(today.runs[r].result.step_time_range, today.runs[r].step_seconds()),
                                     describe(today.runs[r].result.binding)));
  return part;
}

}  // namespace spillway::reports
