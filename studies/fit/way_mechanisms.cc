#include "studies/fit/way_mechanisms.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "planners/offload/hybrid_search.h"
#include "planners/offload/offload_settings.h"
#include "sim/devices/memory/memory_policies.h"

namespace spillway::studies {

std::uint32_t mechanisms_of(const FitPoints& points, const FitPoint& point) {
  const TrainingSetup &setup = point.setup, &given = points.as_given().setup;
  const auto value = [&](std::string_view key) { return points.value(point, std::string(key)); };
  const bool is_full = setup.recompute == Recompute::full;
  const bool is_partly = setup.recompute_layers > 0 || setup.recompute_every > 1;
  const std::string fates = value(offload_key), allocator = value(allocator_key), order = value(order_key);
  const bool moves = fates != no_offload && fates != hybrid_word;
  const bool to_host = value("offload.tier") == to_string(Tier::host);
  const std::array<bool, 18> has = {
      is_full && !is_partly,
      is_full && is_partly,
      !is_full && setup.recompute != Recompute::none,
      setup.optimizer_device == StateDevice::cpu,
      setup.optimizer_device == StateDevice::drives,
      setup.weight_device != StateDevice::gpu,
      moves && to_host,
      moves && !to_host,
      fates == hybrid_word,
      setup.pipeline_parallel > 1 && setup.pipeline_schedule != given.pipeline_schedule,
      allocator == expandable_policy,
      allocator != torch_policy && allocator != expandable_policy,
      !order.empty() && order != program_order_word,
      setup.optimizer != given.optimizer,
      setup.precision != given.precision,
      setup.delayed_update,
      setup.has_adapters(),
      setup.gpus() == 1 && setup.micro_batch < given.micro_batch,
  };
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < has.size(); ++i) bits |= has[i] ? std::uint32_t{1} << i : 0;
  return bits;
}

std::string layout_of(const TrainingSetup& setup) {
  return fmt::format("{} {} {} {} {} {} {}", setup.tensor_parallel, setup.context_parallel, setup.pipeline_parallel,
                     setup.data_parallel, setup.expert_parallel, setup.zero_stage, setup.shard_groups);
}

}  // namespace spillway::studies
