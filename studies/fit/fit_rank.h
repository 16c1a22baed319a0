// The order of ways of one question, by group (who can run it, and whether it trains alike), class (whether it fits)
// and the goal's figure. The search, the ways shown to people, and ways as a framework launches them have the same
// ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "studies/candidates/row.h"
#include "studies/fit/fit_carrier.h"
#include "studies/fit/fit_question.h"

namespace spillway::studies {

// In the order of sections.
enum class FitGroup : std::uint8_t {
  same,      // same training, by a framework at hand
  planner,   // same training, under a plan that spillway.torch carries out
  numerics,  // another optimizer, precision or order of updates
  research,  // nobody runs it today
};
std::string_view title_of(FitGroup group);
FitGroup group_of(Carrier carrier, bool changes_maths);

// As replayed: what a launch left open is open for every way.
enum class FitClass : std::uint8_t { works, tight, not_known, too_large, impossible };
FitClass class_of(const Row& row);
inline bool does_work(const Row& row) { return class_of(row) == FitClass::works; }
inline bool does_fit(const Row& row) { return class_of(row) <= FitClass::tight; }

// Its edits, but those that keep the sequences of a step (FitSubject::batch_edits).
std::size_t changes_of(const Row& row);
// 0: device memory alone; 1: host memory, too; 2: drives are written.
int tier_of(const Result& result);
// The goal's figure, less is better: seconds, USD, -years, bytes, GPUs, edits.
double figure_of(FitGoal goal, const Row& row);

// As a share of the goal's figure: not worth another round.
inline constexpr double fit_trifle = 0.005;

// Less is better, in this order: whether it fits; its group; how surely it fits; the goal's figure to half a trifle.
// Then whether drives are written or the host has a part in it; edits; the figure itself, step, bytes to drives. A way
// that is too large has how much is missing, host memory and drives behind device memory.
using FitRank = std::tuple<int, int, int, double, int, std::size_t, double, double, double, std::string>;
FitRank rank_of(FitGoal goal, const Row& row, FitGroup group);

// Whether less than half a GiB is left beside the reserve, or less than 2 % of a smaller memory.
bool leaves_little(const Result& result);

struct RankedRow {
  const Row* row = nullptr;
  FitGroup group = FitGroup::same;
  std::uint32_t mechanisms = 0;  // mechanisms_of()
};
// Indices of rows in the order in which people are shown them: by their ranks, with one exception. Rows of a group that
// keep the reserve and are within 2 % of its best in time or cost are alike. Their order is: all that leaves_little()
// is false for, then without the host, then without drives, then fewer mechanisms.
std::vector<std::size_t> shown_order(FitGoal goal, std::span<const RankedRow> rows);

}  // namespace spillway::studies
