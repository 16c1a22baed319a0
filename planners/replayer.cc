#include "planners/replayer.h"

namespace spillway::planners {

ReplayOptions varied(ReplayOptions options, const ReplayVariation& variation) {
  MemoryReplayOptions& memory = options.memory;
  if (variation.capacity) memory.capacity = *variation.capacity;
  if (variation.detail) memory.detail = *variation.detail;
  if (!variation.places.empty()) {
    memory.allocator = policy_of(*variation.places.begin()->second);
    memory.plan = nullptr;
    memory.plans = variation.places;
  }
  if (variation.ideal_memory) {
    memory.allocator = ideal_policy;
    memory.settings.clear();
    memory.plan = nullptr;
    memory.plans.clear();
    memory.capacity = Bytes(0);
  }
  return options;
}

Result PlainReplayer::replay(const Trace& trace, const ReplayVariation& variation) const {
  return sim::replay(trace, hardware_, varied(options_, variation));
}

Result PlainReplayer::replay(PlannedTrace planned, const ReplayVariation& variation) const {
  return sim::replay(std::move(planned), hardware_, varied(options_, variation));
}

VariedReplayer::VariedReplayer(const Replayer& of, const ReplayVariation& variation)
    : ReplayerBefore(of), variation_(variation), options_(varied(of.options(), variation)) {}

Bytes VariedReplayer::memory_limit() const {
  return variation_.capacity || variation_.ideal_memory ? options_.memory.capacity : of().memory_limit();
}

ReplayVariation VariedReplayer::asked(const ReplayVariation& more) const {
  ReplayVariation all = more;
  if (!all.capacity) all.capacity = variation_.capacity;
  if (!all.detail) all.detail = variation_.detail;
  all.ideal_memory |= variation_.ideal_memory;
  if (all.places.empty()) all.places = variation_.places;
  return all;
}

}  // namespace spillway::planners
