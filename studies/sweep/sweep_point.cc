#include "studies/sweep/sweep_point.h"

#include <fmt/format.h>

#include "base/input_error.h"
#include "scenario/scenario.h"
#include "studies/sweep/sweep_space.h"

namespace spillway::studies {

std::string point_scenario(const SweepFile& file, std::int64_t number, const std::string& to_folder) {
  SweepSpace space(file);
  if (number < 0 || number >= space.size())
    throw InputError(file.path, "--point", fmt::format("there is no point {}", number),
                     fmt::format("give one of 0 to {}, as \"point\" in --format json has it", space.size() - 1));
  const SweepPoint point = space.at(number);
  if (!space.allows(number))
    throw InputError(file.path, "--point", fmt::format("a rule leaves out point {}: {}", number, space.label(point)),
                     "see --explain-pruning, or name another one");
  std::string text =
      with_setting(file.base, "title=" + (file.title.empty() ? "" : file.title + ": ") + space.label(point));
  for (const auto& [key, value] : space.settings(point)) text = with_setting(text, key + "=" + value);
  return moved_scenario(text, file.folder, to_folder);
}

}  // namespace spillway::studies
