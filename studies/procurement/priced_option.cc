#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "planners/technique/technique_table.h"
#include "studies/procurement/procurement.h"

namespace spillway::studies {

std::string PricedOption::name() const {
  const std::int64_t machines = (fleet.gpus + hardware.gpu_count - 1) / hardware.gpu_count;
  return fmt::format("{} x {} ({} GPUs), {}{}", machines, fleet.machine, fleet.gpus, words_of_ways(fleet.technique),
                     writes_nothing           ? " (which writes nothing)"
                     : !saves_nothing.empty() ? " (which saves no memory)"
                                              : "");
}

std::vector<std::string> PricedOption::settings_of(std::size_t r) const {
  std::vector<std::string> settings = fleet.plans[r].candidate.edits;
  if (writes_nothing) return settings;  // as searched
  const auto names_drives = [](const std::string& setting) {
    return setting.starts_with("offload.drives=") || setting.starts_with("offload.drives_per_machine=");
  };
  std::erase_if(settings, names_drives);
  if (!drive) return settings;
  settings.push_back("offload.drives=" + drive->drive.name);
  settings.push_back("offload.drives_per_machine=" +
                     std::to_string(drive->chosen * std::min(fleet.gpus, hardware.gpu_count)));
  return settings;
}

double PricedOption::least_usd() const {
  constexpr double none = std::numeric_limits<double>::infinity();
  return std::min(buy_usd.value_or(none), rent_usd.value_or(none));
}

std::string PricedOption::drive_name() const {
  return drive && drive->chosen > 0 ? fmt::format("{} x {} per GPU", drive->chosen, drive->drive.name) : "";
}

FigureRange PricedOption::busy_range() const {
  FigureRange whole{.known = true, .low = 0, .high = 0, .basis = "of its runs, by their time"};
  double seconds = 0;
  for (const RunReplay& run : runs) {
    const FigureRange& range = run.result.step_time_range;
    whole.known &= range.known;
    whole.low += run.step_seconds() * (range.known ? range.low : 1 - step_time_error);
    whole.high += run.step_seconds() * (range.known ? range.high : 1 + step_time_error);
    seconds += run.step_seconds();
  }
  if (seconds <= 0)
    return {.known = false, .low = 1 - step_time_error, .high = 1 + step_time_error, .basis = "assumed"};
  whole.low /= seconds;
  whole.high /= seconds;
  return whole;
}

}  // namespace spillway::studies
