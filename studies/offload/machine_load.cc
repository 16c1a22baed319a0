#include "studies/offload/machine_load.h"

#include <algorithm>

namespace spillway::studies {
namespace {

// Of nothing all have the same part.
double part_of(Bytes bytes, Bytes most) {
  return most > Bytes(0) ? static_cast<double>(bytes.count()) / static_cast<double>(most.count()) : 1;
}

}  // namespace

MachineLoad::MachineLoad(const OffloadTraffic& traffic, std::int64_t gpus, std::int64_t machine_gpus, std::int64_t sets,
                         const std::vector<std::size_t>& numbers) {
  const sim::RankPlaces places(traffic.loads.size(), gpus, machine_gpus);
  std::vector<std::size_t> set_of_gpu;
  for (std::int64_t gpu = 0; gpu < machine_gpus; ++gpu) set_of_gpu.push_back(static_cast<std::size_t>(gpu % sets));
  const auto counts = [&](std::size_t set) {
    return numbers.empty() || std::find(numbers.begin(), numbers.end(), set) != numbers.end();
  };
  std::int64_t machine = -1;
  sim::SharedSet busiest;
  Bytes most{};
  for (const std::int64_t each : places.kinds())
    for (sim::SharedSet& shared : places.sets_on(each, set_of_gpu)) {
      if (!counts(shared.set)) continue;
      Bytes written{};
      for (const sim::RankShare& share : shared.shares) written += traffic.loads[share.rank].written() * share.gpus;
      if (machine >= 0 && written <= most) continue;
      machine = each;
      most = written;
      busiest = std::move(shared);
    }
  if (machine < 0 && !numbers.empty()) {  // sets that no GPU uses as they are numbered: as if it used them
    *this = MachineLoad(traffic, gpus, machine_gpus, sets);
    return;
  }
  of_set_.step = traffic.load.step;
  for (const sim::RankShare& share : busiest.shares) {
    sharers_ += share.gpus;
    for (LoadSpan span : traffic.loads[share.rank].spans) {
      span.bytes = span.bytes * share.gpus;
      of_set_.spans.push_back(span);
    }
  }
  for (const sim::RankShare& share : places.on(std::max<std::int64_t>(0, machine))) {
    const DriveLoad& load = traffic.loads[share.rank];
    const GpuShare part{part_of(load.written(), traffic.load.written()), part_of(load.read(), traffic.load.read())};
    gpus_.insert(gpus_.end(), static_cast<std::size_t>(share.gpus), part);
  }
  prefix_ = places.prefix(std::max<std::int64_t>(0, machine));
}

}  // namespace spillway::studies
