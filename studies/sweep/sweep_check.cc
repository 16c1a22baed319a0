#include "studies/sweep/sweep_check.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "base/input_error.h"
#include "studies/sweep/sweep_front.h"

namespace spillway::studies {
namespace {

struct Sample {
  SweepPoint point;
  SweepEstimate estimate, first_look;
  Row replay;
  Figures replayed;
  bool does = false;
};

// Not by std::uniform_int_distribution, whose draws differ between libraries.
std::int64_t drawn(std::mt19937_64& random, std::int64_t size) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
}

std::vector<Sample> draw(const SweepFile& file, std::size_t count, std::uint64_t seed) {
  SweepSpace space(file);
  SweepScreen screen(file);
  std::mt19937_64 random(seed);
  std::set<std::int64_t> seen;
  std::vector<Sample> samples;
  std::size_t valid = 0;
  for (std::size_t i = 0; i < 1000 * count && valid < count; ++i) {
    const std::int64_t number = drawn(random, space.size());
    if (!seen.insert(number).second || !space.allows(number)) continue;
    Sample sample;
    sample.point = space.at(number);
    sample.estimate = screen.estimate(space.settings(sample.point));
    sample.first_look = screen.first_look(space.settings(sample.point));
    if (sample.estimate.invalid.empty())
      ++valid;
    else if (samples.size() > valid + count)
      continue;  // enough of these
    samples.push_back(std::move(sample));
  }
  if (valid == 0)
    throw InputError(file.path, "/where", "no valid point was drawn",
                     "conditions may leave nothing; see --explain-pruning");
  return samples;
}

template <class Holds>
SweepCheck::Group group_of(std::string name, const std::vector<Sample>& samples, Holds holds) {
  std::vector<double> times, peaks, above;
  std::int64_t below = 0;
  for (const Sample& sample : samples) {
    if (!holds(sample) || !sample.replay.ran()) continue;
    const double bound = sample.estimate.metrics.step_seconds, replayed = sample.replayed.step_seconds;
    if (sample.estimate.is_bound) {
      if (bound <= 0 || replayed <= 0) continue;
      above.push_back(std::max(0.0, replayed / bound - 1));
      below += replayed < bound ? 1 : 0;
      continue;
    }
    const auto compare = [](double screened, double truth, std::vector<double>& errors) {
      if (screened > 0 && truth > 0) errors.push_back(std::abs(screened / truth - 1));
    };
    compare(sample.estimate.metrics.step_seconds, sample.replayed.step_seconds, times);
    compare(sample.estimate.metrics.peak_bytes, sample.replayed.peak_bytes, peaks);
  }
  return {std::move(name), sweep_error(std::move(times)), sweep_error(std::move(peaks)), sweep_error(std::move(above)),
          below};
}

}  // namespace

SweepCheck check_screen(const SweepFile& file, std::size_t count, std::uint64_t seed, SweepWorkers& workers,
                        SweepStore& store,
                        const std::function<bool(const std::string&, std::int64_t, std::int64_t)>& progress) {
  std::vector<Sample> samples = draw(file, count, seed);
  std::vector<SweepTask> tasks;
  for (const Sample& sample : samples) tasks.push_back({true, sample.point.number});
  std::int64_t done = 0;
  do_tasks(file, tasks, workers, store, [&](std::size_t i, const std::string& record) {
    samples[i].replay = parse_sweep_replay(record);
    samples[i].replayed = figures_of(samples[i].replay);
    samples[i].does = meets_requirements(file, samples[i].replay);
    return !progress || progress("points replayed", ++done, static_cast<std::int64_t>(samples.size()));
  });

  SweepFront sure(file.objectives.size()), front(file.objectives.size());
  for (const Sample& sample : samples) {
    if (sample.estimate.invalid.empty() && sample.estimate.does(file)) sure.add(sample.estimate.worst(file));
    if (sample.does) front.add(objective_values(file, sample.replayed));
  }
  SweepSpace space(file);
  SweepCheck check;
  for (const Sample& sample : samples) {
    ++(sample.estimate.invalid.empty() ? check.sampled : check.invalid);
    std::string why;
    if (!sample.estimate.invalid.empty())
      why = "invalid: " + sample.estimate.invalid;
    else if (!sample.estimate.may_do(file) || !sample.first_look.may_do(file))
      why = "can't meet the requirements";
    else if (sure.beats(sample.estimate.best(file)) || sure.beats(sample.first_look.best(file)))
      why = "beaten by estimates";
    else if (front.beats(sample.estimate.best(file)))
      why = "beaten by a replay";
    check.pruned += why.empty() ? 0 : 1;
    if (!sample.does || front.beats(objective_values(file, sample.replayed))) continue;
    ++check.on_front;
    if (!why.empty()) check.wrong.push_back({space.label(sample.point), why});
  }
  check.groups.push_back(group_of("all", samples, [](const Sample&) { return true; }));
  for (std::size_t axis = 0; axis < file.axes.size(); ++axis)
    for (std::size_t option = 0; option < file.axes[axis].options.size() && option < 12; ++option)
      check.groups.push_back(group_of(file.axes[axis].name + " " + file.axes[axis].options[option].label, samples,
                                      [&](const Sample& sample) { return sample.point.options[axis] == option; }));
  return check;
}

}  // namespace spillway::studies
