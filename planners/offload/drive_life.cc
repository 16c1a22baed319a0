#include "planners/offload/drive_life.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace spillway::planners {
namespace {

const DriveGroup* group_of(const HardwareProfile& hardware, const std::string& set) {
  for (const DriveGroup& group : hardware.drives)
    if (set == group.name || (!group.raid0 && set.starts_with(group.name + "."))) return &group;
  return nullptr;
}

std::string gigabytes(Bytes bytes) { return fmt::format("{:.4g} GB", static_cast<double>(bytes.count()) / 1e9); }

// That share the set and do as the rank does.
std::int64_t gpus_of(const DriveTraffic& traffic, std::uint16_t rank) {
  for (const DriveSharer& sharer : traffic.sharers)
    if (sharer.rank == rank) return sharer.gpus;
  return 0;
}

Bytes held_on(const DriveTraffic& traffic, const OffloadPlan& plan, const PlannedTrace& planned, const Result& result) {
  const Trace& trace = planned.trace;
  std::vector<std::pair<Picos, Bytes>> changes;
  std::set<std::uint32_t> from_before;
  Bytes held{};
  for (std::size_t k = 0; k < plan.absences.size(); ++k) {
    const OpId store = planned.transfer[k], load = planned.fetch[k], any = store == OpId::none ? load : store;
    if (plan.absences[k].tier != Tier::drive || any == OpId::none) continue;
    const std::int64_t gpus = gpus_of(traffic, trace.lanes[index_of(trace.ops.lane[index_of(any)])].rank);
    if (gpus == 0) continue;
    const Bytes bytes = trace.ops.bytes[index_of(any)] * gpus;
    if (store == OpId::none) {
      if (from_before.insert(trace.tensors.storage[index_of(plan.absences[k].tensor)]).second) held += bytes;
      continue;
    }
    changes.emplace_back(result.op_start[index_of(store)], bytes);
    if (load != OpId::none)
      changes.emplace_back(result.op_end[index_of(load)], Bytes(0) - bytes);
    else if (plan.absences[k].forwarded)
      changes.emplace_back(result.op_end[index_of(store)], Bytes(0) - bytes);
  }
  std::sort(changes.begin(), changes.end());  // at one instant what goes comes first
  Bytes most = held;
  for (const auto& [time, change] : changes) most = std::max(most, held += change);
  return most;
}

std::string refusal(const DriveTraffic& traffic, const NvmeProfile& drive, const DriveDemands& demands) {
  if (traffic.room && traffic.held > *traffic.room)
    return fmt::format("{} has room for {}, the step keeps {} there at once", traffic.set, gigabytes(*traffic.room),
                       gigabytes(traffic.held));
  if (traffic.written == Bytes(0)) return "";
  if (!traffic.life)
    return demands.least_life_years > 0
               ? fmt::format("{} is not rated, {:.3g} years are asked for", drive.name, demands.least_life_years)
               : "";
  if (traffic.life->years <= 0) return fmt::format("nothing is left of the rated life of {}", drive.name);
  const double years = years_by(*traffic.life, demands.bound);
  if (years >= demands.least_life_years) return "";
  const std::string expected =
      demands.bound == LifeBound::expected ? "" : fmt::format(" ({:.3g} expected)", traffic.life->years);
  return fmt::format("{} lasts {:.3g} years {}{}, {:.3g} are asked for", drive.name, years, told(demands.bound),
                     expected, demands.least_life_years);
}

double shortest(const Result& result, double DriveLife::*years) {
  double least = std::numeric_limits<double>::infinity();
  if (unrated_writes(result) != nullptr) return least;
  for (const DriveTraffic& traffic : result.drives)
    if (traffic.life) least = std::min(least, (*traffic.life).*years);
  return least;
}

}  // namespace

const Words& life_bound_words() {
  static const Words words{{"rated", "the rating as it stands"},
                           {"expected", "as these writes are rated or modelled to wear it"},
                           {"high", "the most that the rating may be adjusted to"}};
  return words;
}

double years_by(const DriveLife& life, LifeBound bound) {
  return bound == LifeBound::rated ? life.low_years : bound == LifeBound::expected ? life.years : life.high_years;
}

std::string_view told(LifeBound bound) {
  return bound == LifeBound::rated      ? "by its rating as it stands"
         : bound == LifeBound::expected ? "expected"
                                        : "by the high end of its range";
}

DriveLife drive_life(const Endurance& endurance, std::int64_t drives, double bytes_per_second) {
  const auto years = [&](double bytes) {
    return years_to_write(bytes * static_cast<double>(drives), bytes_per_second);
  };
  return {years(endurance.bytes), years(endurance.low), years(endurance.high), endurance.basis, endurance.assumptions};
}

double write_rate(const DriveTraffic& traffic, const Result& result) {
  const auto steps = static_cast<double>(std::max<std::size_t>(1, result.steps.size()));
  const double seconds = to_seconds(result.step_time) * steps;
  return seconds > 0 ? static_cast<double>(traffic.written.count()) / seconds : 0;
}

void rate_drives(const HardwareProfile& hardware, const DriveDemands& demands, const OffloadPlan& plan,
                 const PlannedTrace& planned, Result& result) {
  result.drives_refuse.clear();
  for (DriveTraffic& traffic : result.drives) {
    const DriveGroup* group = group_of(hardware, traffic.set);
    if (group == nullptr || result.step_time <= Picos(0)) continue;
    traffic.model = group->drive.name;
    traffic.held = held_on(traffic, plan, planned, result);
    if (demands.free || group->drive.capacity)
      traffic.room = (demands.free ? *demands.free : group->drive.capacity->value) * traffic.drives;
    EnduranceOptions options;
    options.used_fraction = demands.used_fraction;
    const Endurance endurance = drive_endurance(group->drive, options);
    if (endurance.known) traffic.life = drive_life(endurance, traffic.drives, write_rate(traffic, result));
    if (result.drives_refuse.empty()) result.drives_refuse = refusal(traffic, group->drive, demands);
  }
}

double shortest_life_years(const Result& result) { return shortest(result, &DriveLife::years); }
double shortest_rated_years(const Result& result) { return shortest(result, &DriveLife::low_years); }

const DriveTraffic* unrated_writes(const Result& result) {
  const auto found = std::find_if(result.drives.begin(), result.drives.end(), [](const DriveTraffic& traffic) {
    return !traffic.life && traffic.written > Bytes(0);
  });
  return found == result.drives.end() ? nullptr : &*found;
}

std::string told_unrated(const DriveTraffic& drive) {
  return (drive.model.empty() ? drive.name : drive.model) + " is not rated: how long it lasts is unknown";
}

std::string life_cell(double rated_years, double years) {
  if (!std::isfinite(years)) return "-";
  const std::string rated = fmt::format("{:.3g}", rated_years), expected = fmt::format("{:.3g}", years);
  return rated == expected ? expected : rated + "-" + expected;
}

std::string life_cell(const Result& result) {
  return unrated_writes(result) != nullptr ? "not rated"
                                           : life_cell(shortest_rated_years(result), shortest_life_years(result));
}

}  // namespace spillway::planners
