// A result's headline figures, as both faces show them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/replay/result.h"
#include "sim/replay/verdict_words.h"

namespace spillway::studies {

// "322.1 ms to 402.4 ms (published steps of 15 sources)"; "not known: ..."
std::string step_range_words(const Result& result);
// A figure in any unit, for a table: "93.1-112"; "?" where it isn't known.
std::string range_cell(const FigureRange& range, double value);
// "28.71 GiB to 29.30 GiB reserved (...)"; "not known: ..."
std::string peak_range_words(const Result& result);

// The share of the replayed time, 0 .. 1, in which the critical path goes through a resource.
double binding_share(const Result& result, Binding binding);

// Busy share of the GPUs' slots: the busier direction of the busiest, 0 .. 1. None where nothing crosses PCIe.
std::optional<double> pcie_busy(const Result& result);
// Time of a step behind another: from that one's end to its own. Result::step_time is the median of these; of a step
// alone, which has none, it is the span.
std::optional<Picos> period_of(const Result& result, std::size_t step);
// A step, on the drives of the machine that take most.
Bytes drives_written(const Result& result);
Bytes drives_read(const Result& result);
// The first to be worn out of the drives written to. Null: nothing is written, or a set that nobody rates.
const DriveTraffic* shortest_lived(const Result& result);

// One figure of two results.
struct ComparedFigure {
  std::string name;
  std::optional<double> a, b;  // none: not known
  std::string unit;            // of both
  // "+4.20 %" of a, or "+1.50 points" of a percentage.
  [[nodiscard]] std::string change() const;
  // With three decimals, or "not known".
  [[nodiscard]] static std::string text(const std::optional<double>& value);
};
std::vector<ComparedFigure> compared_figures(const Result& a, const Result& b);

}  // namespace spillway::studies
