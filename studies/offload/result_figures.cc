#include "studies/offload/result_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/number_text.h"
#include "planners/offload/drive_life.h"

namespace spillway::studies {
namespace {

Bytes most_a_step(const Result& result, Bytes DriveTraffic::*bytes) {
  Bytes most{};
  for (const DriveTraffic& drive : result.drives) most = std::max(most, drive.*bytes);
  return most / static_cast<std::int64_t>(std::max<std::size_t>(1, result.steps.size()));
}

}  // namespace

std::string step_range_words(const Result& result) {
  const FigureRange& range = result.step_time_range;
  if (!range.known) return "not known: " + range.basis;
  const double seconds = to_seconds(result.step_time);
  return fmt::format("{} to {} ({})", precise_duration_text(from_seconds(seconds * range.low)),
                     precise_duration_text(from_seconds(seconds * range.high)), range.basis);
}

std::string range_cell(const FigureRange& range, double value) {
  const auto told = [](double figure) {
    return std::abs(figure) < 1e4 ? fmt::format("{:.4g}", figure) : fmt::format("{:.0f}", figure);
  };
  return range.known ? told(value * range.low) + "-" + told(value * range.high) : "?";
}

std::string peak_range_words(const Result& result) {
  const FigureRange& range = result.peak_range;
  if (!range.known) return "not known: " + range.basis;
  const double bytes = static_cast<double>(result.memory.peak_reserved.count());
  const auto gib = [bytes](double factor) { return gib_text(Bytes(std::llround(bytes * factor))); };
  return fmt::format("{} to {} reserved ({})", gib(range.low), gib(range.high), range.basis);
}

double binding_share(const Result& result, Binding binding) {
  const double whole = to_seconds(result.replayed);
  return whole > 0 ? to_seconds(result.breakdown[static_cast<std::size_t>(binding)]) / whole : 0;
}

std::optional<double> pcie_busy(const Result& result) {
  std::optional<double> busiest;
  for (const LinkResult& link : result.links)
    if (link.name.ends_with(" up") || link.name.ends_with(" down"))
      busiest = std::max(busiest.value_or(0), link.busy_fraction);
  return busiest;
}

std::optional<Picos> period_of(const Result& result, std::size_t step) {
  if (step == 0 || step >= result.steps.size()) return std::nullopt;
  return result.steps[step].end - result.steps[step - 1].end;
}

Bytes drives_written(const Result& result) { return most_a_step(result, &DriveTraffic::written); }
Bytes drives_read(const Result& result) { return most_a_step(result, &DriveTraffic::read); }

const DriveTraffic* shortest_lived(const Result& result) {
  if (unrated_writes(result) != nullptr) return nullptr;
  const DriveTraffic* shortest = nullptr;
  for (const DriveTraffic& drive : result.drives)
    if (drive.life && std::isfinite(drive.life->years) &&
        (shortest == nullptr || drive.life->years < shortest->life->years))
      shortest = &drive;
  return shortest;
}

std::string ComparedFigure::change() const {
  if (!a || !b) return "-";
  const bool relative = unit != "%" && *a != 0;
  return relative ? fmt::format("{:+.2f} %", (*b / *a - 1) * 100) : fmt::format("{:+.2f} points", *b - *a);
}

std::string ComparedFigure::text(const std::optional<double>& value) {
  return value ? fmt::format("{:.3f}", *value) : "not known";
}

std::vector<ComparedFigure> compared_figures(const Result& a, const Result& b) {
  const auto ms = [](Picos t) { return to_seconds(t) * 1e3; };
  const auto peak = [](const MemoryResult& memory, Bytes MemoryResult::*which) {
    return memory.known ? std::optional(in_gib(memory.*which)) : std::nullopt;
  };
  std::vector<ComparedFigure> rows = {{"step time", ms(a.step_time), ms(b.step_time), "ms"}};
  if (a.memory.known || b.memory.known) {
    for (const auto& [name, which] : {std::pair("peak allocated", &MemoryResult::peak_allocated),
                                      std::pair("peak reserved", &MemoryResult::peak_reserved)})
      rows.push_back({name, peak(a.memory, which), peak(b.memory, which), "GiB"});
  }
  const auto percent = [](std::optional<double> share) { return share ? std::optional(*share * 100) : share; };
  if (a.bubble || b.bubble) rows.push_back({"bubble", percent(a.bubble), percent(b.bubble), "%"});
  if (a.tokens_per_second > 0 && b.tokens_per_second > 0)
    rows.push_back({"tokens per second", a.tokens_per_second, b.tokens_per_second, "1/s"});
  if (a.mfu > 0 && b.mfu > 0) rows.push_back({"MFU", a.mfu * 100, b.mfu * 100, "%"});
  if (a.evaluation && b.evaluation) {
    rows.push_back({"evaluation", ms(a.evaluation->time), ms(b.evaluation->time), "ms"});
    rows.push_back({"tokens per second with evaluations", a.evaluation->tokens_per_second,
                    b.evaluation->tokens_per_second, "1/s"});
  }
  for (int i = 0; i < binding_count; ++i) {
    const auto binding = static_cast<Binding>(i);
    rows.push_back({"critical path: " + std::string(to_string(binding)), binding_share(a, binding) * 100,
                    binding_share(b, binding) * 100, "%"});
  }
  return rows;
}

}  // namespace spillway::studies
