#include "studies/fit/fit_carrier.h"

#include <algorithm>
#include <array>

#include "models/pipeline/named_schedules.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_settings.h"
#include "planners/offload/ssdtrain.h"
#include "planners/technique/technique_table.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::studies {
namespace {

constexpr std::array<std::string_view, 3> carried_fates = {ssdtrain_word, checkpoints_word, hybrid_word};
// Megatron-core's, torchtitan's and DeepSpeed's.
constexpr std::array<std::string_view, 3> carried_schedules = {default_schedule, interleaved_schedule,
                                                               all_forwards_first};

template <std::size_t Count>
bool has(const std::array<std::string_view, Count>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool has_carried_schedule(const TrainingSetup& setup, const TrainingSetup& given) {
  if (setup.recomputed_chunks > given.recomputed_chunks || setup.offloaded_states > given.offloaded_states)
    return false;
  return setup.pipeline_schedule == given.pipeline_schedule || has(carried_schedules, setup.pipeline_schedule);
}

}  // namespace

std::string_view to_string(Carrier carrier) {
  constexpr std::array<std::string_view, 3> words = {"frameworks", "spillway.torch", "simulation"};
  return words[static_cast<std::size_t>(carrier)];
}

Carrier carrier_of(const FitPoints& points, const FitPoint& point) {
  const FitPoint& given = points.as_given();
  const auto is_new = [&](std::string_view key) {
    return points.value(point, std::string(key)) != points.value(given, std::string(key));
  };
  if (!has_carried_schedule(point.setup, given.setup)) return Carrier::nobody;
  if (is_new(order_key) && points.value(point, std::string(order_key)) != program_order_word) return Carrier::nobody;
  const std::string allocator = points.value(point, std::string(allocator_key));
  if (is_new(allocator_key) && allocator != torch_policy && allocator != expandable_policy) return Carrier::nobody;
  const std::string fates = points.value(point, std::string(offload_key));
  if (!is_new(offload_key) || fates == no_offload) return Carrier::frameworks;
  return has(carried_fates, fates) ? Carrier::planner : Carrier::nobody;
}

}  // namespace spillway::studies
