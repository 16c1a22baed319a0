#include "studies/fit/other_training.h"

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "planners/technique.h"

namespace spillway::studies {
namespace {

constexpr std::int64_t most_replays = 24;  // of each training
constexpr std::int64_t share_of_work = 8;  // of the question's, as much for each

OtherTraining with(FitQuestion question, std::string name, Trainable trainable, const FitOptions& options,
                   bool& stopped) {
  const std::string said = setting("model.trainable", to_string(trainable));
  question.settings.push_back(said);
  question.same_maths = true;
  question.replays = std::min(question.replays, most_replays);
  question.work /= share_of_work;
  question.few_layouts = true;
  OtherTraining found{.name = std::move(name), .best = {}, .refusal = {}, .ended_early = false};
  FitOutcome outcome;
  try {
    outcome = find_fit(question, fit_subject(question), options);
  } catch (const InputError& error) {
    found.refusal = error.cause();
    return found;
  }
  stopped = outcome.stopped;
  found.ended_early = outcome.exhausted;
  if (!outcome.any()) return found;
  found.best = std::move(outcome.ways.front());
  found.best->changes_maths = true;
  std::vector<std::string>& edits = found.best->row.candidate.edits;
  edits.insert(edits.begin(), said);
  return found;
}

}  // namespace

std::vector<OtherTraining> other_trainings(const FitQuestion& question, const FitSubject& subject,
                                           const FitOptions& options) {
  if (!subject.model || question.same_maths || subject.parsed.training.has_adapters()) return {};
  std::vector<OtherTraining> found;
  bool stopped = false;
  for (const auto& [name, trainable] : {std::pair("LoRA", Trainable::lora), std::pair("QLoRA", Trainable::qlora)}) {
    OtherTraining one = with(question, name, trainable, options, stopped);
    if (stopped) break;
    found.push_back(std::move(one));
  }
  return found;
}

}  // namespace spillway::studies
