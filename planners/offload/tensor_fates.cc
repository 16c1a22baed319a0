#include "planners/offload/tensor_fates.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "planners/offload/tier_rates.h"
#include "planners/recompute/layer_plans.h"

namespace spillway::planners {
namespace {

// Of a fate that moves.
Tier tier_of(Fate fate) { return fate == Fate::host ? Tier::host : Tier::drive; }

constexpr double lead = 1.15;  // loads begin this much earlier than an idle link would need

// By rank and micro-batch, in their order; those of none stay.
using Batches = std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::size_t>>;
Batches batches_of(const std::vector<SavedTensor>& saved) {
  Batches batches;
  for (std::size_t i = 0; i < saved.size(); ++i)
    if (saved[i].micro_batch != no_index16) batches[{saved[i].rank, saved[i].micro_batch}].push_back(i);
  return batches;
}

// The last op on the tensor's own stream that begins at that time or earlier, between its last use and its next.
OpId work_before(const FateSources& of, const SavedTensor& saved, Picos time) {
  const LaneId lane = of.trace.ops.lane[index_of(saved.first_backward)];
  for (std::size_t i = index_of(saved.first_backward); i > index_of(saved.last_forward); --i)
    if (of.trace.ops.lane[i] == lane && of.kept_start[i] != unknown_time && of.kept_start[i] <= time)
      return OpId(static_cast<std::uint32_t>(i));
  for (std::size_t i = index_of(saved.last_forward) + 1; i < index_of(saved.first_backward); ++i)
    if (of.trace.ops.lane[i] == lane) return OpId(static_cast<std::uint32_t>(i));
  return OpId::none;
}

// Backwards from each use, one load after another per rank and tier, in the replay that kept everything.
std::vector<OpId> load_times(const Fates& fates, const FateSources& of, const std::vector<std::size_t>& moved) {
  std::vector<OpId> asked(moved.size(), OpId::none);
  std::vector<std::size_t> order(moved.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto use = [&](std::size_t m) { return of.kept_start[index_of(of.saved[moved[m]].first_backward)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return use(a) > use(b); });
  std::map<std::pair<std::uint16_t, Fate>, Picos> free_until;
  for (const std::size_t m : order) {
    const SavedTensor& saved = of.saved[moved[m]];
    const Fate fate = fates[moved[m]];
    const auto [at, is_new] = free_until.try_emplace({saved.rank, fate}, use(m));
    const Picos takes = from_seconds(static_cast<double>(saved.bytes.count()) /
                                     tier_rates(of.hardware, tier_of(fate), of.gpus_alike).load * lead);
    const Picos begin = std::min(at->second, use(m)) - takes;
    at->second = begin;
    asked[m] = work_before(of, saved, begin);
  }
  return asked;
}

void add_transfers(const Fates& fates, const FateSources& of, OffloadPlan& plan) {
  std::vector<std::size_t> moved;
  for (std::size_t i = 0; i < fates.size(); ++i)
    if (fates[i] == Fate::host || fates[i] == Fate::drive) moved.push_back(i);
  const std::vector<OpId> asked = load_times(fates, of, moved);
  for (std::size_t m = 0; m < moved.size(); ++m) {
    const SavedTensor& saved = of.saved[moved[m]];
    plan.absences.push_back({saved.tensor, tier_of(fates[moved[m]]), saved.written_by, saved.last_forward, asked[m],
                             saved.first_backward, false});
  }
}

void add_part(const std::vector<std::size_t>& tensors, const AwayUntil& away, RecomputeIndex& index,
              OffloadPlan& plan) {
  if (const auto group = index.group(tensors, away)) return add_to_plan(*group, index, plan);
  for (const std::size_t i : tensors)  // those that can be had alone
    if (const auto group = index.group(std::array{i}, away)) add_to_plan(*group, index, plan);
}

// Tensors of one layer are made again together, before the first of them is needed.
void add_repeats(const Fates& fates, const FateSources& of, OffloadPlan& plan) {
  AwayUntil away(of.saved.size(), OpId::none);
  std::map<std::tuple<std::uint16_t, std::uint16_t, std::uint16_t>, std::vector<std::size_t>> parts;
  for (std::size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] == Fate::keep) continue;
    away[i] = of.saved[i].first_backward;
    if (fates[i] == Fate::again) parts[{of.saved[i].rank, of.saved[i].micro_batch, of.saved[i].layer}].push_back(i);
  }
  for (const auto& [key, tensors] : parts) {
    OpId before = of.saved[tensors.front()].first_backward;
    for (const std::size_t i : tensors) before = std::min(before, of.saved[i].first_backward);
    for (const std::size_t i : tensors) away[i] = before;
  }
  for (const auto& [key, tensors] : parts) add_part(tensors, away, of.index, plan);
  std::sort(plan.recomputations.begin(), plan.recomputations.end(),
            [](const Recomputation& a, const Recomputation& b) { return a.before < b.before; });
}

}  // namespace

Fates fates_in(const std::vector<SavedTensor>& saved, const Trace& trace, const OffloadPlan& plan) {
  std::map<std::uint32_t, std::size_t> index;
  for (std::size_t i = 0; i < saved.size(); ++i) index.emplace(saved[i].storage, i);
  Fates fates(saved.size(), Fate::keep);
  for (const Absence& absence : plan.absences)
    if (const auto found = index.find(trace.tensors.storage[index_of(absence.tensor)]); found != index.end())
      fates[found->second] = absence.tier == Tier::host    ? Fate::host
                             : absence.tier == Tier::drive ? Fate::drive
                                                           : Fate::again;
  return fates;
}

std::optional<Fates> repeated_fates(const std::vector<SavedTensor>& shown, const Fates& fates_shown,
                                    const std::vector<SavedTensor>& all) {
  const Batches from = batches_of(shown), to = batches_of(all);
  if (from.empty() || to.empty()) return std::nullopt;
  const auto count = [](const Batches& batches) {
    std::size_t most = 0;
    for (const auto& [key, tensors] : batches) most = std::max<std::size_t>(most, key.second + std::size_t{1});
    return most;
  };
  const std::size_t shown_count = count(from), half = shown_count / 2, batches = count(to);
  Fates fates(all.size(), Fate::keep);
  for (const auto& [key, tensors] : to) {
    const std::size_t m = key.second, behind = batches - m;  // 1: the last
    const std::size_t like = m < half ? m : behind < shown_count - half ? shown_count - behind : half;
    const auto found = from.find({key.first, static_cast<std::uint16_t>(like)});
    if (found == from.end() || found->second.size() != tensors.size()) return std::nullopt;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const SavedTensor &one = shown[found->second[i]], &other = all[tensors[i]];
      if (one.bytes != other.bytes || one.layer != other.layer) return std::nullopt;
      fates[tensors[i]] = fates_shown[found->second[i]];
    }
  }
  return fates;
}

void add_fates(const Fates& fates, const FateSources& of, OffloadPlan& plan) {
  add_transfers(fates, of, plan);
  add_repeats(fates, of, plan);
}

}  // namespace spillway::planners
