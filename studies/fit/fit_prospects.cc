#include "studies/fit/fit_prospects.h"

#include <algorithm>
#include <utility>

namespace spillway::studies {
namespace {

constexpr double time_margin = 0.1;          // of estimates, against replays
constexpr double learnt_time_margin = 0.03;  // of those whose kind was replayed

}  // namespace

std::vector<Prospect> FitProspects::estimated(std::vector<FitPoint> points) {
  const std::vector<FitEstimate> estimates = screen_.estimate(points);
  std::vector<Prospect> prospects;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!estimates[i].invalid.empty()) continue;
    const double figure = figure_of(points[i], estimates[i]);
    prospects.push_back({std::move(points[i]), estimates[i], figure});
  }
  sort(prospects);
  return prospects;
}

void FitProspects::sort(std::vector<Prospect>& prospects) {
  std::stable_sort(prospects.begin(), prospects.end(), [](const Prospect& a, const Prospect& b) {
    return std::pair(a.figure, a.estimate.seconds) < std::pair(b.figure, b.estimate.seconds);
  });
}

double FitProspects::figure_of(const FitPoint& point, const FitEstimate& estimate) const {
  const auto gpus = static_cast<double>(point.setup.gpus());
  switch (question_.goal) {
    case FitGoal::cost:
      return estimate.seconds * gpus;
    case FitGoal::memory:
      return static_cast<double>(estimate.peak.count());
    case FitGoal::change:
      return static_cast<double>(points_.settings(point).size());
    case FitGoal::gpus:
    case FitGoal::life:
    case FitGoal::speed:
      return estimate.seconds;
  }
  return 0;
}

bool FitProspects::fits_perhaps(const Prospect& one, double margin) const {
  return !one.estimate.holds_too_much && static_cast<double>(one.estimate.peak.count()) * (1 - margin) <=
                                             static_cast<double>(screen_.capacity().count());
}

const FitProspects::Learnt* FitProspects::learnt(const Prospect& one) const {
  const auto known = learnt_.find(kind_of(one));
  return known == learnt_.end() ? nullptr : &known->second;
}
bool FitProspects::fits_as_learnt(const Prospect& one) const {
  const double rest = one.estimate.is_bound ? 0.2 : 0.05;
  const Learnt* known = learnt(one);
  return known == nullptr || static_cast<double>(one.estimate.peak.count()) * known->peak / known->count * (1 - rest) <=
                                 static_cast<double>(screen_.capacity().count());
}
void FitProspects::learn(const Prospect& one, const Result& result) {
  if (one.estimate.peak <= Bytes(0) || one.estimate.seconds <= 0) return;
  Learnt& known = learnt_[kind_of(one)];
  known.peak +=
      static_cast<double>(result.memory.peak_allocated.count()) / static_cast<double>(one.estimate.peak.count());
  known.time += to_seconds(result.step_time) / one.estimate.seconds;
  known.count += 1;
}

FitProspects::Kind FitProspects::kind_of(const Prospect& one) {
  const TrainingSetup& s = one.point.setup;
  const bool pipelined = s.pipeline_parallel > 1;
  const int recomputes = s.recompute == Recompute::none ? 0 : s.recompute_layers > 0 ? 1 : 2;
  std::string technique;
  for (const auto& [key, text] : one.point.others) technique += key + text;
  return {one.estimate.is_bound ? 0 : s.shared_stage(),
          pipelined,
          s.context_parallel > 1,
          recomputes,
          s.optimizer_device,
          s.weight_device,
          technique};
}

double FitProspects::least_time_ratio(const Prospect& one) const {
  const Learnt* known = learnt(one);
  return known == nullptr ? 1 - time_margin : known->time / known->count * (1 - learnt_time_margin);
}

}  // namespace spillway::studies
