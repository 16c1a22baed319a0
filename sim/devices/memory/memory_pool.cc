#include "sim/devices/memory/memory_pool.h"

#include <algorithm>
#include <array>

#include "base/input_error.h"
#include "base/nearest_name.h"

namespace spillway::sim {
namespace {

constexpr auto policies = [] {
  std::array<std::string_view, memory_policy_table.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = memory_policy_table[i].name;
  return names;
}();

// A value in the settings wins.
void set_limits(const MemoryPoolOptions& options, TorchSettings& settings) {
  settings.device_memory = options.device_memory;
  settings.outside_memory = options.outside_memory;
  if (settings.memory_fraction == 1) settings.memory_fraction = options.memory_fraction;
}

void refuse_settings(const MemoryPoolOptions& options) {
  if (!options.settings.empty())
    throw InputError("", "allocator " + options.policy, "the " + options.policy + " policy has no settings",
                     "leave them out or use the torch policy");
}

MemoryPool make_torch(const MemoryPoolOptions& options) {
  const bool expandable = options.policy == expandable_policy;
  TorchSettings settings = parse_torch_settings(options.settings);
  if (expandable && !settings.expandable_segments && options.settings.find("expandable_segments") != std::string::npos)
    throw InputError("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments",
                     "the torch-expandable policy with expandable_segments:False", "use the torch policy");
  settings.expandable_segments |= expandable;
  set_limits(options, settings);
  return MemoryPool(TorchPool(settings));
}

MemoryPool make_planned(const MemoryPoolOptions& options) {
  refuse_settings(options);
  const bool arena = options.policy == arena_policy;
  if (options.plan == nullptr)
    throw InputError(
        "", "allocator " + options.policy, "follows a memory plan, and none was given",
        arena ? "give a layout, for example of `spillway plan layout`" : "give a plan file, or use the torch policy");
  if ((options.plan->kind == PlanKind::layout) != arena)
    throw InputError("", "allocator " + options.policy, "the plan is of another kind",
                     arena ? "layouts are for arena, STAlloc plans for planned: use --allocator planned"
                           : "layouts are for arena, STAlloc plans for planned: use --allocator arena");
  TorchSettings limits;
  set_limits(options, limits);
  return MemoryPool(PlannedPool(options.plan, limits));
}

}  // namespace

std::span<const std::string_view> memory_policies() { return policies; }

std::string_view MemoryPool::name() const {
  return std::visit([](const auto& policy) { return policy.name(); }, policy_);
}

std::vector<BlockId> MemoryPool::restore(const PoolState& state) {
  if (auto* torch = as<TorchPool>()) {
    const bool of_its_kind = std::all_of(
        state.segments.begin(), state.segments.end(),
        [&](const SegmentState& segment) { return segment.expandable == torch->settings().expandable_segments; });
    return of_its_kind ? torch->restore(state) : allocate_live_blocks(*torch, state);
  }
  return std::visit([&](auto& policy) { return policy.restore(state); }, policy_);
}

MemoryPool make_memory_pool(const MemoryPoolOptions& options) {
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1))
    throw InputError("", "memory fraction", "not a share between 0 and 1", "give a number like 0.9");
  const bool planned = options.policy == planned_policy || options.policy == arena_policy;
  if (options.plan != nullptr && !planned)
    throw InputError("", "allocator " + options.policy, "follows no plan",
                     "use planned or arena, or leave the plan out");
  if (planned) return make_planned(options);
  if (options.policy == torch_policy || options.policy == expandable_policy) return make_torch(options);
  if (options.policy == gmlake_policy) {
    GmlakeSettings settings = parse_gmlake_settings(options.settings);
    set_limits(options, settings.torch);
    return MemoryPool(GmlakePool(settings));
  }
  if (options.policy != ideal_policy)
    throw InputError("", "allocator " + options.policy, "unknown allocator", suggest(options.policy, policies));
  refuse_settings(options);
  TorchSettings limits;
  set_limits(options, limits);
  return MemoryPool(IdealPool(reserve_limit(limits)));
}

}  // namespace spillway::sim
