#include "studies/answer/techniques_answer.h"

#include <fmt/format.h>

#include <utility>

#include "planners/technique/technique_table.h"
#include "scenario/scenario_memory.h"
#include "studies/fit/way_names.h"

namespace spillway::studies {

Answer techniques_answer(const BaseScenario& scenario, const TechniqueComparison& comparison, std::string command,
                         bool with_pictures) {
  const Row& plain = comparison.rows.front().row;
  const LoadedScenario loaded = load(scenario_of(scenario, plain.candidate.edits));
  Answer answer = run_answer(loaded, plain.result, std::move(command));
  if (with_pictures) {
    ScenarioRun run = run_traced(loaded);
    take_replayed_order(loaded, run);
    add_pictures(loaded, run, answer);
  }
  answer.drawn = words_of_ways(plain.candidate.name);
  for (std::size_t i = 1; i < comparison.rows.size(); ++i) {
    const Row& row = comparison.rows[i].row;
    AnswerWay& way = answer.ways.emplace_back();
    way.name = capitalized(words_of_ways(row.candidate.name)) + (row.ran() ? "" : ": " + row.error);
    way.group = "Each alone, and composed";
    way.edits = row.candidate.edits;
    for (const std::string& setting : way.edits) {
      const std::size_t equals = setting.find('=');
      const std::string key = setting.substr(0, equals);
      way.changes.push_back({key, setting_of(scenario.text, key).value_or("not set"), setting.substr(equals + 1), ""});
    }
    if (row.ran())
      way.figures = figures_of(row.result, &plain.result);
    else
      way.figures = {.verdict = row.error, .step = "-", .tokens = "-", .left = "-"};
  }
  answer.ways_heading = fmt::format("{} techniques", answer.ways.size());
  return answer;
}

}  // namespace spillway::studies
