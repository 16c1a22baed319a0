#include "studies/fit/fit_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "planners/technique/technique_table.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t largest_micro_batch = 16;

}  // namespace

std::vector<Prospect> FitSpace::over(std::vector<FitPoint> layouts) {
  std::vector<Prospect> all, large = estimated(std::move(layouts));
  keep_fitting(large, all);
  for (Prospect& one : large) one.point = moves_.lean(one.point);
  large = estimated_again(std::move(large));
  keep_fitting(large, all);
  add_less(large, all);
  std::vector<Prospect> on_cpu = estimated(on_the_cpu(large, false));
  keep_fitting(on_cpu, all);
  add_less(on_cpu, all);
  std::vector<Prospect> fetched = estimated(on_the_cpu(large, true));
  keep_fitting(fetched, all);
  add_less(fetched, all);
  too_large_ = std::move(large);
  too_large_.insert(too_large_.end(), on_cpu.begin(), on_cpu.end());
  std::erase_if(too_large_, [](const Prospect& one) { return one.estimate.holds_too_much; });
  FitProspects::sort(too_large_);
  add_batches(all);
  FitProspects::sort(all);
  return all;
}

std::vector<Prospect> FitSpace::estimated(std::vector<FitPoint> points) {
  std::vector<Prospect> candidates = prospects_.estimated(std::move(points));
  if (bounds_ != nullptr)
    for (const Prospect& one : candidates)
      bounds_->note(points_.settings(one.point), one.estimate, one.point.setup.gpus());
  return candidates;
}

std::vector<Prospect> FitSpace::estimated_again(std::vector<Prospect> candidates) {
  std::vector<FitPoint> points;
  for (Prospect& one : candidates) points.push_back(std::move(one.point));
  return estimated(std::move(points));
}

// Moves those that seem to fit over to `all`.
void FitSpace::keep_fitting(std::vector<Prospect>& from, std::vector<Prospect>& all) const {
  const auto fits = [this](const Prospect& one) { return prospects_.fits_perhaps(one, 0); };
  std::copy_if(from.begin(), from.end(), std::back_inserter(all), fits);
  std::erase_if(from, fits);
}

std::vector<FitPoint> FitSpace::on_the_cpu(const std::vector<Prospect>& from, bool with_weights) const {
  const std::string cpu(to_string(StateDevice::cpu));
  std::vector<std::string> edits = {setting(optimizer_device_key, cpu)};
  if (with_weights) edits.push_back(setting("model.weight_device", cpu));
  std::vector<FitPoint> points;
  for (const Prospect& one : from) {
    const TrainingSetup& setup = one.point.setup;
    if (setup.optimizer_device != StateDevice::gpu) continue;
    if (with_weights && setup.zero_stage != 3 && setup.shared_stage() + setup.pipeline_parallel != 1) continue;
    points.push_back(points_.with(one.point, edits));
  }
  return points;
}

// Of those that are too large with everything kept: all layers computed again, and as many as it takes, by what
// lies between the two.
void FitSpace::add_less(const std::vector<Prospect>& kept, std::vector<Prospect>& all) {
  std::map<std::vector<std::string>, const Prospect*> of;
  std::vector<FitPoint> points;
  for (const Prospect& one : kept) {
    if (one.estimate.holds_too_much || one.point.setup.recompute != Recompute::none) continue;
    points.push_back(points_.with(one.point, {setting(recompute_key, to_string(Recompute::full))}));
    of[points_.settings(points.back())] = &one;
  }
  std::vector<Prospect> partial;
  for (Prospect& full : estimated(std::move(points))) {
    const Prospect& none = *of.at(points_.settings(full.point));
    if (std::optional<Prospect> some = between(none, full)) partial.push_back(std::move(*some));
    all.push_back(std::move(full));
  }
  std::move(partial.begin(), partial.end(), std::back_inserter(all));
}

std::optional<Prospect> FitSpace::between(const Prospect& none, const Prospect& full) const {
  const TrainingSetup& setup = none.point.setup;
  const auto peak = [](const Prospect& one) { return static_cast<double>(one.estimate.peak.count()); };
  const std::int64_t of_chunk = subject_.model->all_layers() / setup.pipeline_parallel / setup.pipeline_chunks;
  const auto layers = static_cast<double>(of_chunk);
  const double room = static_cast<double>(prospects_.screen().capacity().count());
  if (none.estimate.is_bound || full.estimate.is_bound || peak(full) >= room || peak(none) <= room) return {};
  const double share = (peak(none) - room) / (peak(none) - peak(full)), count = std::ceil(share * layers);
  if (count >= layers) return {};
  Prospect some = full;
  some.point = points_.with(full.point, {fmt::format("model.recompute_layers={:.0f}", count)});
  some.estimate.peak = prospects_.screen().capacity();
  some.estimate.seconds = none.estimate.seconds + count / layers * (full.estimate.seconds - none.estimate.seconds);
  some.figure = prospects_.figure_of(some.point, some.estimate);
  return some;
}

// Twice as many sequences at a time, while that seems to fit.
void FitSpace::add_batches(std::vector<Prospect>& all) {
  std::vector<Prospect> last = all;
  for (std::int64_t b = 2; b <= largest_micro_batch && !last.empty(); b *= 2) {
    std::vector<FitPoint> points;
    for (const Prospect& one : last) {
      const TrainingSetup& setup = one.point.setup;
      const bool is_partial = setup.recompute == Recompute::full && setup.recompute_layers > 0;
      const std::int64_t each = setup.step_sequences() / setup.data_parallel, micro_batches = each / b;
      if (!prospects_.fits_perhaps(one, 0) || one.estimate.is_bound || is_partial || each % b != 0) continue;
      if (setup.pipeline_chunks > 1 && micro_batches % setup.pipeline_parallel != 0) continue;
      points.push_back(points_.with(one.point, {fmt::format("model.micro_batch={}", b)}));
    }
    last = estimated(std::move(points));
    std::erase_if(last, [this](const Prospect& one) { return !prospects_.fits_perhaps(one, 0.05); });
    all.insert(all.end(), last.begin(), last.end());
  }
}

}  // namespace spillway::studies
