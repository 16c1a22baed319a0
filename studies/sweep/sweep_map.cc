#include "studies/sweep/sweep_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "base/parallel.h"
#include "studies/sweep/sweep_looks.h"

namespace spillway::studies {
namespace {

std::size_t axis_of(const SweepFile& file, const std::string& name) {
  std::vector<std::string> names;
  for (const SweepAxis& axis : file.axes) names.push_back(axis.name);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    throw InputError("--plot", name, "the sweep has no axis of this name", suggest(name, names));
  const auto index = static_cast<std::size_t>(found - names.begin());
  if (file.axes[index].options.size() > most_map_options)
    throw InputError("--plot", name, fmt::format("the axis has more than {} values", most_map_options),
                     "take an axis of fewer values");
  return index;
}

// Ties go to the lower number, so the order of blocks is no matter.
void take(SweepMap::Cell& cell, const SweepMap::Cell& other) {
  const auto rank = [](const SweepMap::Cell& one) { return std::pair(one.value, one.number); };
  if (other.source == SweepMap::Source::none) return;
  if (cell.source == SweepMap::Source::none || rank(other) < rank(cell)) cell = other;
}

}  // namespace

SweepMap sweep_map(const SweepFile& file, const SweepOutcome& outcome, const std::string& across, const std::string& up,
                   Objective objective) {
  const std::size_t x = axis_of(file, across), y = axis_of(file, up);
  if (x == y) throw InputError("--plot", across, "a map needs two axes", "name another one");
  SweepMap map;
  map.across_name = across;
  map.up_name = up;
  for (const SweepOption& option : file.axes[x].options) map.across.push_back(option.label);
  for (const SweepOption& option : file.axes[y].options) map.up.push_back(option.label);
  map.cells.resize(map.across.size() * map.up.size());
  const auto index = [&](const SweepPoint& point) { return point.options[y] * map.across.size() + point.options[x]; };

  SweepSpace named(file);
  std::set<std::int64_t> replayed;
  for (const SweepRow& row : outcome.rows) {
    replayed.insert(row.number);
    if (!row.does) continue;
    take(map.cells[index(named.at(row.number))],
         {SweepMap::Source::replayed, row.replayed.value(objective), row.number});
  }
  SweepScreen screen(file);
  std::mutex mutex;
  const std::int64_t blocks = (file.points() + sweep_block_points - 1) / sweep_block_points;
  in_parallel(static_cast<std::size_t>(blocks), [&](std::size_t i) {
    const auto block = static_cast<std::int64_t>(i);
    SweepSpace space(file);
    SweepLooks looks(file, space, screen);
    std::vector<SweepMap::Cell> cells(map.cells.size());
    const std::int64_t until = std::min(space.size(), (block + 1) * sweep_block_points);
    for (const SweepPoint* point = space.next(block * sweep_block_points, until); point != nullptr;
         point = space.next(point->number + 1, until)) {
      if (replayed.contains(point->number)) continue;
      SweepEstimate& estimate = looks.second(point->number);
      if (!estimate.invalid.empty() || estimate.is_bound || !estimate.may_do(file)) continue;
      if (objective == Objective::peak_memory) screen.add_cached(estimate, space.settings(*point));
      const double value = estimate.metrics.value(objective);
      if (value <= 0) continue;
      take(cells[index(*point)], {SweepMap::Source::screened, value, point->number});
    }
    const std::lock_guard lock(mutex);
    for (std::size_t c = 0; c < cells.size(); ++c) take(map.cells[c], cells[c]);
  });
  return map;
}

}  // namespace spillway::studies
