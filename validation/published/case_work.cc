#include "validation/published/case_work.h"

#include "base/input_error.h"
#include "models/spec/training_setup.h"
#include "scenario/scenario_run.h"

namespace spillway::validation {

double work_of(const CaseFile& file, const Case& one) {
  if (!one.skip.empty() || one.projection || one.scenario.model.empty()) return 0;
  try {
    const auto own = file.models.find(one.scenario.model);
    const ModelSpec model =
        with_layers(one.scenario, own == file.models.end() ? find_model(one.scenario.model) : own->second);
    const TrainingSetup setup = resolve(one.scenario.training, model);
    return static_cast<double>(model.layers) * static_cast<double>(setup.gradient_accumulation);
  } catch (const InputError&) {
    return 0;  // running it says why
  }
}

}  // namespace spillway::validation
