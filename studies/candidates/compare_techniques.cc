#include "studies/candidates/compare_techniques.h"

#include <utility>

#include "base/input_error.h"
#include "planners/technique/technique_table.h"
#include "scenario/recompute_gain.h"

namespace spillway::studies {
namespace {

Way way_of(std::string name, const std::vector<std::string>& own) {
  Way way{std::move(name), without_techniques()};
  way.settings.insert(way.settings.end(), own.begin(), own.end());
  return way;
}

bool has_drives(const Scenario& scenario) {
  if (!scenario.offload.drives.empty()) return true;
  return !scenario.hardware.empty() && !ProfileLibrary::shared().load_system(scenario.hardware).drives.empty();
}

// What the generator does is of no use to a step that is there.
bool is_of_models(const std::vector<std::string>& settings) {
  for (const std::string& setting : settings)
    if (setting.starts_with("model.")) return true;
  return false;
}

}  // namespace

std::vector<Way> technique_ways_of(const WaysScenario& scenario, std::span<const std::string> names) {
  std::vector<Way> ways = {way_of(std::string(plain_technique), {})};
  for (const std::string& name : names)
    if (name != plain_technique) ways.push_back(way_of(name, settings_named(name, "", "--technique")));
  if (!names.empty()) return ways;
  const Scenario plain = scenario_of(scenario, ways.front().settings);
  const bool drives = has_drives(plain), of_model = !plain.model.empty();
  const bool stages = of_model && plain.training.pipeline_parallel > 1;
  for (const ComparedWay& compared : compared_ways()) {
    if ((compared.needs.drives && !drives) || (compared.needs.stages && !stages)) continue;
    const std::vector<std::string> settings = settings_named(compared.names, "", "");
    if (of_model || !is_of_models(settings)) ways.push_back(way_of(compared.names, settings));
  }
  return ways;
}

TechniqueComparison compare_techniques(const WaysScenario& scenario, std::span<const Way> ways,
                                       const WaysOptions& options) {
  TechniqueComparison comparison;
  for (WayRow& row : evaluate_ways(scenario, ways, options)) {
    comparison.is_whole &= row.is_done;
    if (row.is_done) comparison.rows.push_back({std::move(row)});
  }
  if (comparison.rows.empty() || comparison.rows.front().row.way.name != plain_technique) return comparison;
  const WayRow& plain = comparison.rows.front().row;
  const double step = to_seconds(plain.result.step_time);
  for (TechniqueRow& each : comparison.rows) {
    Result& result = each.row.result;
    if (!each.row.ran() || !(step > 0)) continue;
    each.against_plain = to_seconds(result.step_time) / step;
    const Recompute recompute = scenario_of(scenario, each.row.way.settings).training.recompute;
    if (recompute == Recompute::none || result.offload || &each.row == &plain) continue;
    if (std::string note = recomputes_for_nothing(recompute, result, plain.result); !note.empty())
      result.warnings.push_back(std::move(note));
  }
  return comparison;
}

}  // namespace spillway::studies
