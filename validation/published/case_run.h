// Runs the cases of a file and sums their errors up.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/replay/result.h"
#include "validation/published/case_file.h"
#include "validation/published/error_statistics.h"

namespace spillway::validation {

struct CaseOutcome {
  const Case* measured = nullptr;
  double predicted = 0;                // in the case's unit
  Verdict verdict = Verdict::unknown;  // of the replay's memory; its time is given whatever it is
  // Shares of the step's critical path, by what binds there; none for a projection.
  std::array<double, binding_count> shares{};
  FigureRange range;       // of steps' times and of peaks
  std::string range_kind;  // scenario/figure_range.h
  std::string skipped;     // why there is no prediction; empty: there is one
  // In the case's unit; of a range what lies nearest to the prediction.
  [[nodiscard]] double figure() const {
    return std::clamp(predicted, measured->measured, std::max(measured->measured, measured->measured_to));
  }
  [[nodiscard]] double relative_error() const { return predicted / figure() - 1; }
  // Precondition: range.known. The range is of times and peaks; for throughput it counts the other way round.
  [[nodiscard]] bool is_in_range() const;
};

// Called before the first set-up and after each, from any thread but one at a time; false stops the run.
using CaseProgress = std::function<bool(std::size_t done, std::size_t total)>;

// One outcome per case, in the file's order, whatever the number of threads. Cases with the same set-up share one
// replay; set-ups run in parallel, long ones first. A set-up the program can't simulate becomes a skipped case that
// says why. `files` must outlive the outcomes. Throws Cancelled when `progress` or the thread's StopScope says stop.
std::vector<CaseOutcome> run_cases(const std::vector<CaseFile>& files, const CaseProgress& progress = {});

struct CaseSummary {
  std::string source, role;
  Metric metric = Metric::iteration_time;
  Tolerance asked;    // of the file; of those used in a fit nothing
  Tolerance held_to;  // instead, where the file states so
  ErrorStatistics errors;
  std::int64_t with_range = 0, in_range = 0;  // cases with a known 80 % range; of them, those measured within it

  [[nodiscard]] Tolerance missed() const;  // what is asked and isn't reached
  [[nodiscard]] bool within() const;       // what is asked, except what it is held to instead
};

// By source, metric and role, in the order in which these first occur; cases that were skipped don't count.
// `tolerance`: asked of every summary of validation cases, which are held to it, instead of the files' own.
std::vector<CaseSummary> summarize(const std::vector<CaseFile>& files, const std::vector<CaseOutcome>& outcomes,
                                   const Tolerance* tolerance = nullptr);

}  // namespace spillway::validation
