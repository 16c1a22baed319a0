#include "studies/fit/fit_exports.h"

#include <utility>

#include "base/input_error.h"
#include "models/spec/training_setup_fields.h"
#include "planners/offload/offload_settings.h"
#include "scenario/brief_run.h"
#include "sim/devices/memory/memory_policies.h"
#include "studies/fit/fit_knobs.h"

namespace spillway::studies {
namespace {

Scenario as_said(Scenario scenario, const launch::LaunchExport& made) {
  for (const launch::UnsaidKey& each : made.unsaid) {
    const std::string_view key = each.key;
    if (key == "offload.technique") scenario.offload.technique = no_offload;
    if (key == "memory.allocator") scenario.allocator = torch_policy;
    if (key == "plan") scenario.plan.clear();
    if (key == "memory.plan") scenario.memory_plan.clear();
    constexpr std::string_view model = "model.";
    if (!each.otherwise || !key.starts_with(model)) continue;
    const std::string_view field = key.substr(model.size());
    if (field == "framework" || role_of(field) != KeyRole::question)
      set_field(scenario.training, field, *each.otherwise);
  }
  return scenario;
}

}  // namespace

Exported exported(const Scenario& scenario, std::string_view target) {
  Exported one{.target = std::string(target), .launch = launch::export_launch(scenario, target)};
  try {
    one.alone = run_briefly(as_said(scenario, one.launch), Detail::figures).run.result;
  } catch (const InputError& error) {
    one.refusal = error.cause();
  }
  return one;
}

std::vector<Exported> exported(const Scenario& scenario) {
  std::vector<Exported> all;
  for (const Word& target : launch::export_target_words()) all.push_back(exported(scenario, target.name));
  return all;
}

}  // namespace spillway::studies
