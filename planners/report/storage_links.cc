#include "planners/report/storage_links.h"

#include <algorithm>

#include "sim/engine/executor.h"
#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr std::int64_t probe_bytes = 256'000'000;  // small beside any write cache

struct Direction {
  Rate rate{};                // of the slowest GPU
  std::vector<double> share;  // by link
};

Direction move_all(const HardwareProfile& hardware, std::int64_t gpus, DriveRoute route, bool write) {
  ActivityGraph graph;
  const Machine machine(hardware, graph);
  std::vector<ActivityId> flows;
  for (std::size_t gpu = 0; gpu < static_cast<std::size_t>(gpus); ++gpu) {
    const std::size_t set = gpu % machine.drive_sets().size();
    flows.push_back(graph.add_flow(
        no_lane, probe_bytes, write ? machine.gpu_to_drive(gpu, set, route) : machine.drive_to_gpu(gpu, set, route)));
  }
  graph.finish();
  Executor<> executor(std::move(graph));
  const Outcome outcome = executor.run();
  SPILLWAY_ASSERT(outcome.ok());
  Picos last{};
  for (const ActivityId flow : flows) last = std::max(last, executor.end(flow));
  Direction direction;
  direction.rate = rate_from_bytes_per_second(static_cast<double>(probe_bytes) / to_seconds(last));
  for (const Machine::NamedLink& link : machine.links())
    direction.share.push_back(static_cast<double>(executor.link_totals(link.link).units) /
                              static_cast<double>(probe_bytes));
  return direction;
}

}  // namespace

HardwareProfile with_drives(const HardwareProfile& hardware, const NvmeProfile& drive, std::int64_t count,
                            std::int64_t gpus) {
  HardwareProfile changed = hardware;
  changed.drives.clear();
  for (std::int64_t gpu = 0; gpu < gpus; ++gpu) {
    DriveGroup group;
    group.name = "set" + std::to_string(gpu);
    group.drive = drive;
    group.count = count;
    changed.drives.push_back(std::move(group));
  }
  assign_slots(changed, true);
  return changed;
}

StorageLinks storage_links(const HardwareProfile& hardware, std::int64_t gpus, DriveRoute route) {
  SPILLWAY_ASSERT(gpus >= 1 && gpus <= hardware.gpu_count);
  if (hardware.drives.empty())
    throw InputError("", "report", "the machine '" + hardware.name + "' has no drives",
                     "name some with --drives, or a profile that has them");
  const Direction write = move_all(hardware, gpus, route, true), read = move_all(hardware, gpus, route, false);
  ActivityGraph graph;
  const Machine machine(hardware, graph);
  StorageLinks found{write.rate, read.rate, {}};
  for (std::size_t i = 0; i < machine.links().size(); ++i)
    if (write.share[i] > 0 || read.share[i] > 0)
      found.links.push_back({machine.links()[i].name, machine.links()[i].capacity, write.share[i], read.share[i]});
  return found;
}

}  // namespace spillway
