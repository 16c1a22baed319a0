#include "sim/devices/memory/memory_pool.h"

#include <algorithm>

#include "traces/base/input_error.h"
#include "traces/base/nearest_name.h"

namespace spillway {
namespace {

constexpr std::string_view policies[] = {"ideal", "torch", "torch-expandable"};

}  // namespace

std::string_view MemoryPool::name() const {
  return std::visit([](const auto& policy) { return policy.name(); }, policy_);
}

MemoryPool make_memory_pool(const MemoryPoolOptions& options) {
  if (!(options.memory_fraction > 0 && options.memory_fraction <= 1))
    throw InputError("", "memory fraction", "not a share between 0 and 1", "give a number like 0.9");
  if (options.policy == "torch" || options.policy == "torch-expandable") {
    const bool expandable = options.policy == "torch-expandable";
    TorchSettings settings = parse_torch_settings(options.settings);
    if (expandable && !settings.expandable_segments &&
        options.settings.find("expandable_segments") != std::string::npos)
      throw InputError("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments",
                       "the torch-expandable policy with expandable_segments:False", "use the torch policy");
    settings.expandable_segments |= expandable;
    settings.device_memory = options.device_memory;
    settings.outside_memory = options.outside_memory;
    if (settings.memory_fraction == 1) settings.memory_fraction = options.memory_fraction;
    return MemoryPool(TorchPool(settings));
  }
  if (options.policy != "ideal")
    throw InputError("", "allocator " + options.policy, "unknown allocator", suggest(options.policy, policies));
  if (!options.settings.empty())
    throw InputError("", "allocator ideal", "the ideal policy has no settings",
                     "leave them out or use the torch policy");
  TorchSettings limits;
  limits.device_memory = options.device_memory;
  limits.outside_memory = options.outside_memory;
  limits.memory_fraction = options.memory_fraction;
  return MemoryPool(IdealPool(reserve_limit(limits)));
}

}  // namespace spillway
