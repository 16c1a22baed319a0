#include "studies/sweep/sweep_tornado.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::studies {
namespace {

// All but `now`, or `most` of them with both ends.
std::vector<std::size_t> others(std::size_t count, std::size_t now, std::size_t most) {
  std::vector<std::size_t> all, some;
  for (std::size_t i = 0; i < count; ++i)
    if (i != now) all.push_back(i);
  if (all.size() <= most) return all;
  for (std::size_t i = 0; i < most; ++i) some.push_back(all[i * (all.size() - 1) / (most - 1)]);
  return some;
}

const SweepRow& best_row(const SweepFile& file, const SweepOutcome& outcome, Objective objective) {
  const SweepRow* best = nullptr;
  for (const SweepRow& row : outcome.rows)
    if (row.does && (best == nullptr || row.replayed.value(objective) < best->replayed.value(objective))) best = &row;
  if (best == nullptr)
    throw InputError(file.path, "--plot", "no point meets the requirements", "there is nothing to vary; require less");
  return *best;
}

}  // namespace

SweepTornado sweep_tornado(const SweepFile& file, const SweepOutcome& outcome, Objective objective,
                           SweepWorkers& workers, SweepStore& store, std::size_t most_options) {
  const SweepRow& best = best_row(file, outcome, objective);
  SweepSpace space(file);
  const SweepPoint point = space.at(best.number);
  SweepTornado tornado{best.candidate.name, best.replayed.value(objective), best.number, {}};
  struct Try {
    std::size_t axis, option;
  };
  std::vector<SweepTask> tasks;
  std::vector<Try> tries;
  for (std::size_t axis = 0; axis < file.axes.size(); ++axis) {
    const auto& options = file.axes[axis].options;
    const std::string& own = options[point.options[axis]].label;
    SweepSwing swing{file.axes[axis].name, own, {own, tornado.value}, {own, tornado.value}};
    for (const std::size_t option : others(options.size(), point.options[axis], most_options)) {
      const std::int64_t number = space.neighbour(best.number, axis, option);
      if (!space.allows(number)) {
        ++swing.left_out;
        continue;
      }
      tasks.push_back({true, number});
      tries.push_back({axis, option});
    }
    tornado.swings.push_back(std::move(swing));
  }
  std::vector<Row> replays(tasks.size());
  do_tasks(file, tasks, workers, store, [&](std::size_t i, const std::string& record) {
    replays[i] = parse_sweep_replay(record);
    return true;
  });
  for (std::size_t i = 0; i < replays.size(); ++i) {
    SweepSwing& swing = tornado.swings[tries[i].axis];
    if (!meets_requirements(file, replays[i], Verdict::tight)) {
      ++swing.failed;
      continue;
    }
    ++swing.replayed;
    const double value = figures_of(replays[i]).value(objective);
    const std::string& label = file.axes[tries[i].axis].options[tries[i].option].label;
    if (value < swing.least.value) swing.least = {label, value};
    if (value > swing.most.value) swing.most = {label, value};
  }
  std::stable_sort(tornado.swings.begin(), tornado.swings.end(), [](const SweepSwing& a, const SweepSwing& b) {
    return a.most.value - a.least.value > b.most.value - b.least.value;
  });
  return tornado;
}

}  // namespace spillway::studies
