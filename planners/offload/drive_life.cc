#include "planners/offload/drive_life.h"

#include <algorithm>
#include <limits>
#include <string>

namespace spillway {
namespace {

const DriveGroup* group_of(const HardwareProfile& hardware, const std::string& set) {
  for (const DriveGroup& group : hardware.drives)
    if (set == group.name || (!group.raid0 && set.starts_with(group.name + "."))) return &group;
  return nullptr;
}

}  // namespace

void rate_drives(const HardwareProfile& hardware, const EnduranceOptions& options, Result& result) {
  const double seconds = to_seconds(result.replayed);
  for (DriveTraffic& traffic : result.drives) {
    const DriveGroup* group = group_of(hardware, traffic.set);
    if (group == nullptr || seconds <= 0) continue;
    const Endurance endurance = drive_endurance(group->drive, options);
    traffic.model = group->drive.name;
    if (!endurance.known) continue;
    const double rate = static_cast<double>(traffic.written.count() * traffic.sharing) / seconds;
    const auto drives = static_cast<double>(traffic.drives);
    DriveLife& life = traffic.life.emplace();
    life.years = years_to_write(endurance.bytes * drives, rate);
    life.low_years = years_to_write(endurance.low * drives, rate);
    life.high_years = years_to_write(endurance.high * drives, rate);
    life.basis = endurance.basis;
    life.assumptions = endurance.assumptions;
  }
}

double shortest_life_years(const Result& result) {
  double shortest = std::numeric_limits<double>::infinity();
  for (const DriveTraffic& traffic : result.drives)
    if (traffic.life) shortest = std::min(shortest, traffic.life->years);
  return shortest;
}

}  // namespace spillway
