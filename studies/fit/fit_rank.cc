#include "studies/fit/fit_rank.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "planners/offload/drive_life.h"
#include "studies/candidates/objective.h"
#include "studies/fit/fit_point.h"

namespace spillway::studies {
namespace {

double missing(const Row& row) {
  constexpr double elsewhere = 1e18;
  const HostMemoryResult& host = row.result.host_memory;
  if (!row.result.drives_refuse.empty()) return 2 * elsewhere;
  if (host.verdict() == Verdict::does_not_fit)
    return elsewhere + static_cast<double>((host.peak - host.capacity).count());
  return static_cast<double>(row.result.memory.excess().count());
}

double written_to_drives(const Result& result) {
  double bytes = 0;
  for (const DriveTraffic& traffic : result.drives) bytes += static_cast<double>(traffic.written.count());
  return bytes;
}

// Times and costs that differ by less are alike: fewer edits count for more.
double about(FitGoal goal, double figure) {
  const bool is_measure = goal == FitGoal::speed || goal == FitGoal::cost;
  return is_measure && figure > 0 ? std::round(std::log(figure) / std::log1p(fit_trifle / 2)) : figure;
}

}  // namespace

std::string_view title_of(FitGroup group) {
  constexpr std::array<std::string_view, 4> titles = {"Same training, in frameworks of today",
                                                      "Same training, under a plan of spillway.torch",
                                                      "Changes the numerics", "Research: no program runs it today"};
  return titles[static_cast<std::size_t>(group)];
}

FitGroup group_of(Carrier carrier, bool changes_maths) {
  if (carrier == Carrier::nobody) return FitGroup::research;
  if (changes_maths) return FitGroup::numerics;
  return carrier == Carrier::planner ? FitGroup::planner : FitGroup::same;
}

FitClass class_of(const Row& row) {
  if (!row.ran()) return FitClass::impossible;
  if (!row.result.may_fit() || !row.result.drives_refuse.empty()) return FitClass::too_large;
  const Verdict is = row.result.as_replayed();
  return is == Verdict::fits ? FitClass::works : is == Verdict::tight ? FitClass::tight : FitClass::not_known;
}

std::size_t changes_of(const Row& row) {
  return static_cast<std::size_t>(std::count_if(row.candidate.edits.begin(), row.candidate.edits.end(),
                                                [](const std::string& setting) { return !keeps_sequences(setting); }));
}

int tier_of(const Result& result) { return written_to_drives(result) > 0 ? 2 : result.host_memory.known ? 1 : 0; }

double figure_of(FitGoal goal, const Row& row) {
  const Figures figures = figures_of(row);
  switch (goal) {
    case FitGoal::speed:
      return figures.value(Objective::step_time);
    case FitGoal::cost:
      return row.cost_per_million_tokens().value_or(figures.step_seconds * figures.gpus);
    case FitGoal::life:
      if (unrated_writes(row.result) != nullptr) return 0;  // unknown: behind every life
      return -figures.life_years;
    case FitGoal::memory:
      return figures.value(Objective::peak_memory);
    case FitGoal::gpus:
      return figures.value(Objective::gpus);
    case FitGoal::change:
      return static_cast<double>(changes_of(row));
  }
  return 0;
}

FitRank rank_of(FitGoal goal, const Row& row, FitGroup group) {
  const std::size_t edits = changes_of(row);
  const double step = to_seconds(row.result.step_time);
  const FitClass of = class_of(row);
  const int is = static_cast<int>(of), fits = static_cast<int>(of == FitClass::tight ? FitClass::works : of);
  if (of == FitClass::impossible) return {is, 0, is, 0, 0, edits, 0, 0, 0, row.candidate.name};
  const double written = written_to_drives(row.result);
  const int tier = tier_of(row.result);
  if (of == FitClass::too_large) return {is, 0, is, missing(row), tier, edits, 0, step, written, row.candidate.name};
  const double figure = figure_of(goal, row);
  return {fits,    static_cast<int>(group), is, about(goal, figure), tier, edits, figure, step,
          written, row.candidate.name};
}

bool leaves_little(const Result& result) {
  constexpr std::int64_t little = std::int64_t{1} << 29, parts = 50;
  const MemoryResult& memory = result.memory;
  if (!memory.known || memory.limit <= Bytes(0)) return false;
  return memory.limit - memory.peak_reserved < Bytes(std::min(little, memory.limit.count() / parts));
}

std::vector<std::size_t> shown_order(FitGoal goal, std::span<const RankedRow> rows) {
  constexpr double alike = 0.02;
  std::vector<FitRank> ranks;
  for (const RankedRow& one : rows) ranks.push_back(rank_of(goal, *one.row, one.group));
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return ranks[a] < ranks[b]; });
  if (goal != FitGoal::speed && goal != FitGoal::cost) return order;
  const auto simplicity = [&](std::size_t i) {
    const Result& result = rows[i].row->result;
    return std::tuple(leaves_little(result), tier_of(result), std::popcount(rows[i].mechanisms));
  };
  for (auto first = order.begin(); first != order.end() && does_fit(*rows[*first].row);) {
    const RankedRow& best = rows[*first];
    const double most = (1 + alike) * figure_of(goal, *best.row);
    const auto last = std::find_if(first, order.end(), [&](std::size_t i) {
      return rows[i].group != best.group || class_of(*rows[i].row) != FitClass::works ||
             figure_of(goal, *rows[i].row) > most;
    });
    std::stable_sort(first, last, [&](std::size_t a, std::size_t b) { return simplicity(a) < simplicity(b); });
    first = std::find_if(last, order.end(), [&](std::size_t i) { return rows[i].group != best.group; });
  }
  return order;
}

}  // namespace spillway::studies
