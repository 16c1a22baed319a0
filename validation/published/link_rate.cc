#include "validation/published/link_rate.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/input_error.h"
#include "base/nearest_name.h"
#include "hwprofiles/profile_library.h"
#include "sim/devices/machine.h"
#include "sim/engine/executor.h"

namespace spillway::validation {
namespace {

constexpr std::int64_t transferred = std::int64_t{64} << 30;
constexpr std::array<std::string_view, 6> paths = {"host_to_device", "device_to_host", "peer",
                                                   "peer_duplex",    "drive_read",     "drive_write"};

HardwareProfile machine_of(const LinkQuestion& question) {
  const ProfileLibrary& library = ProfileLibrary::standard();
  HardwareProfile profile = library.load_system(question.system);
  if (question.drive.empty()) return profile;
  DriveGroup group;
  group.name = "drives";
  group.drive = library.load_nvme(question.drive);
  group.drive.write_cache.reset();
  group.drive.steady_write_bandwidth.reset();
  group.count = question.drive_count;
  profile.drives = {std::move(group)};
  assign_slots(profile, true);
  return profile;
}

std::vector<PathId> paths_of(const LinkQuestion& question, const Machine& machine) {
  const auto need = [&](bool has, const char* what) {
    if (!has)
      throw InputError(question.system, question.path, std::string("the system has no ") + what, "choose another");
  };
  if (question.path == "host_to_device") return {machine.host_to_device(0)};
  if (question.path == "device_to_host") return {machine.device_to_host(0)};
  if (question.path.starts_with("peer")) {
    need(machine.gpu_count() > 1, "second GPU");
    if (question.path == "peer") return {machine.peer(0, 1)};
    return {machine.peer(0, 1), machine.peer(1, 0)};
  }
  need(!machine.drive_sets().empty(), "drives");
  if (question.path == "drive_read") return {machine.drive_to_gpu(0, 0, DriveRoute::gpudirect)};
  return {machine.gpu_to_drive(0, 0, DriveRoute::gpudirect)};
}

}  // namespace

double link_rate(const LinkQuestion& question) {
  if (std::find(paths.begin(), paths.end(), question.path) == paths.end())
    throw InputError("", "projection.path", "no path '" + question.path + "'", suggest(question.path, paths));
  const HardwareProfile profile = machine_of(question);
  ActivityGraph graph;
  const Machine machine(profile, graph);
  const std::vector<PathId> wanted = paths_of(question, machine);
  for (const PathId path : wanted) graph.add_flow(graph.add_lane(1), transferred, path);
  graph.finish();
  Executor<> executor(std::move(graph), {});
  const Outcome outcome = executor.run();
  SPILLWAY_ASSERT(outcome.ok());
  return static_cast<double>(transferred) * static_cast<double>(wanted.size()) / to_seconds(outcome.end_time);
}

}  // namespace spillway::validation
