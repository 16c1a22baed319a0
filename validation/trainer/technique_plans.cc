#include "validation/trainer/technique_plans.h"

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/ssdtrain.h"
#include "planners/order/trace_order.h"
#include "planners/recompute/closure.h"
#include "planners/recompute/layer_plans.h"
#include "planners/stalloc/memory_profile.h"
#include "planners/stalloc/stalloc_plan.h"
#include "traces/saved_tensors.h"

namespace spillway::validation {
namespace {

constexpr std::array<std::string_view, 9> names = {"keep",         "recompute",     "recompute-every-2",
                                                   "offload-host", "offload-drive", "recompute-offload",
                                                   "stream",       "order-arena",   "stalloc"};

struct Times {
  std::vector<Picos> start, end;
};

Times recorded_times(const Trace& trace) {
  Times times{trace.ops.start, trace.ops.start};
  for (std::size_t i = 0; i < times.end.size(); ++i) times.end[i] += trace.ops.duration[i];
  return times;
}

OffloadPlan plan_recompute(const Trace& trace, std::int64_t every) {
  const std::vector<SavedTensor> saved = saved_tensors(trace);
  RecomputeIndex index(trace, saved);
  AwayUntil away = every > 1 ? recompute_every(index, every) : full_recompute(index);
  OffloadPlan plan;
  plan.technique = "recompute";
  for (const RecomputeGroup& group : index.groups(away)) add_to_plan(group, index, plan);
  return plan;
}

OffloadPlan plan_ssdtrain(const Trace& trace, Tier tier, const std::vector<TensorId>& left_out) {
  SsdtrainSettings settings;
  settings.least_elements = 1;
  settings.adaptive = false;
  std::vector<SavedTensor> candidates = offload_candidates(trace, settings);
  std::erase_if(candidates, [&](const SavedTensor& tensor) {
    return std::find(left_out.begin(), left_out.end(), tensor.tensor) != left_out.end();
  });
  const Times times = recorded_times(trace);
  const std::vector<OffloadScope> scopes = offload_scopes(trace, candidates, times.start, times.end);
  OffloadPlan plan;
  plan.technique = "ssdtrain";
  plan.absences = ssdtrain_absences(trace, candidates, scopes, settings, tier);
  return plan;
}

// The layers' inputs, which full recomputation keeps, go to the drive until they are needed again.
OffloadPlan plan_recompute_offload(const Trace& trace) {
  OffloadPlan plan = plan_recompute(trace, 1);
  std::vector<TensorId> remade;
  for (const Absence& absence : plan.absences) remade.push_back(absence.tensor);
  const OffloadPlan offload = plan_ssdtrain(trace, Tier::drive, remade);
  for (Absence absence : offload.absences) {
    // What a repeated op reads must be back when the group runs.
    for (const Recomputation& group : plan.recomputations)
      for (const OpId op : group.ops)
        for (const Use& use : trace.uses)
          if (use.op == op && use.tensor == absence.tensor && absence.back_before != OpId::none &&
              index_of(group.before) < index_of(absence.back_before)) {
            absence.back_before = group.before;
            if (absence.fetch_at != OpId::none && index_of(absence.fetch_at) > index_of(group.before))
              absence.fetch_at = group.before;
          }
    plan.absences.push_back(absence);
  }
  plan.technique = "recompute-offload";
  return plan;
}

OffloadPlan plan_stream(const Trace& trace) {
  const Times times = recorded_times(trace);
  OffloadPlan plan;
  plan.technique = "stream";
  std::map<std::uint32_t, OpId> drive_has;  // by storage: as of which write
  for (const IdleInterval& interval : idle_intervals(trace, times.start, times.end, Bytes(1))) {
    if (interval.role != TensorRole::weight && interval.role != TensorRole::optimizer_state) continue;
    Absence absence;
    absence.tensor = interval.tensor;
    absence.tier = Tier::drive;
    absence.leave_after = interval.leave_after;
    absence.back_before = interval.back_before;
    const auto held = drive_has.find(interval.storage);
    if (interval.leave_after != OpId::none && (held == drive_has.end() || held->second != interval.last_write))
      absence.store_after = interval.last_write == OpId::none ? interval.leave_after : interval.last_write;
    drive_has[interval.storage] = interval.last_write;
    plan.absences.push_back(absence);
  }
  return plan;
}

void plan_places(const Trace& trace, bool with_order, TechniquePlan& made) {
  if (with_order) {
    TraceOrderOptions options;
    options.layout = true;
    made.plan = plan_order(trace, options).plan;
    made.allocator.policy = "arena";
  } else {
    made.plan.memory = plan_stalloc(profile_of(trace, 0)).plan;
    made.allocator.policy = "planned";
  }
  SPILLWAY_ASSERT(made.plan.memory.has_value());
  made.allocator.plan = std::make_shared<const MemoryPlan>(*made.plan.memory);
}

}  // namespace

std::span<const std::string_view> techniques() { return names; }

TechniquePlan technique_plan(const Trace& trace, std::string_view technique) {
  TechniquePlan made;
  made.technique = technique;
  if (technique == "keep") return made;
  if (technique == "recompute")
    made.plan.fates = plan_recompute(trace, 1);
  else if (technique == "recompute-every-2")
    made.plan.fates = plan_recompute(trace, 2);
  else if (technique == "offload-host")
    made.plan.fates = plan_ssdtrain(trace, Tier::host, {});
  else if (technique == "offload-drive")
    made.plan.fates = plan_ssdtrain(trace, Tier::drive, {});
  else if (technique == "recompute-offload")
    made.plan.fates = plan_recompute_offload(trace);
  else if (technique == "stream")
    made.plan.fates = plan_stream(trace);
  else if (technique == "order-arena")
    plan_places(trace, true, made);
  else if (technique == "stalloc")
    plan_places(trace, false, made);
  else
    throw InputError("--technique", "", "no technique is called '" + std::string(technique) + "'",
                     suggest(technique, names));
  return made;
}

}  // namespace spillway::validation
