#include "studies/candidates/compare_techniques.h"

#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/field_setter.h"
#include "base/input_error.h"
#include "planners/technique/technique_table.h"
#include "scenario/recompute_gain.h"
#include "scenario/scenario_fields.h"

namespace spillway::studies {
namespace {

Candidate candidate_of(std::string name, const std::vector<std::string>& own) {
  Candidate made{std::move(name), without_techniques()};
  made.edits.insert(made.edits.end(), own.begin(), own.end());
  return made;
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

std::string texts_of(Scenario scenario) {
  FieldTexts texts;
  describe(scenario, texts);
  return texts.take();
}

}  // namespace

std::vector<Candidate> technique_candidates(const BaseScenario& scenario, std::span<const std::string> names) {
  std::vector<Candidate> candidates = {candidate_of(std::string(plain_technique), {})};
  for (const std::string& name : names)
    if (name != plain_technique) candidates.push_back(candidate_of(name, settings_named(name, "", "--technique")));
  if (!names.empty()) return candidates;
  const Scenario plain = scenario_of(scenario, candidates.front().edits);
  const bool drives = has_drives(plain), of_model = !plain.model.empty();
  const bool stages = of_model && plain.training.pipeline_parallel > 1;
  for (const ComparedWay& compared : compared_ways()) {
    if ((compared.needs.drives && !drives) || (compared.needs.stages && !stages)) continue;
    const std::vector<std::string> settings = settings_named(compared.names, "", "");
    if (of_model || !is_of_models(settings)) candidates.push_back(candidate_of(compared.names, settings));
  }
  return candidates;
}

std::string taken_out(const BaseScenario& scenario) {
  std::string keys;
  for (const std::string& edit : without_techniques()) {
    const std::string key = edit.substr(0, edit.find('='));
    const std::optional<std::string> own = setting_of(scenario.text, key);
    if (!own || texts_of(scenario_of(scenario, {})) == texts_of(scenario_of(scenario, std::span(&edit, 1)))) continue;
    keys += (keys.empty() ? "" : ", ") + key + "=" + *own;
  }
  return keys.empty() ? "" : "the plain step is without the scenario's own " + keys;
}

TechniqueComparison compare_techniques(const BaseScenario& scenario, std::span<const Candidate> candidates,
                                       const EvaluateOptions& options) {
  TechniqueComparison comparison;
  for (Row& row : evaluate(scenario, candidates, options)) {
    comparison.is_whole &= row.is_done;
    if (row.is_done) comparison.rows.push_back({std::move(row)});
  }
  if (comparison.rows.empty() || comparison.rows.front().row.candidate.name != plain_technique) return comparison;
  const Row& plain = comparison.rows.front().row;
  const double step = to_seconds(plain.result.step_time);
  for (TechniqueRow& each : comparison.rows) {
    Result& result = each.row.result;
    if (!each.row.ran() || !(step > 0)) continue;
    each.against_plain = to_seconds(result.step_time) / step;
    const Recompute recompute = scenario_of(scenario, each.row.candidate.edits).training.recompute;
    if (recompute == Recompute::none || result.offload || &each.row == &plain) continue;
    if (std::string note = recomputes_for_nothing(recompute, result, plain.result); !note.empty())
      result.warnings.push_back(std::move(note));
  }
  return comparison;
}

}  // namespace spillway::studies
