#include "studies/fit/other_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/input_error.h"
#include "planners/technique.h"
#include "studies/fit/fit_rank.h"

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

std::optional<OtherMachine> on_more_gpus(const FitQuestion& asked, const FitSubject& subject,
                                         const FitOptions& options) {
  constexpr std::int64_t most_times = 64;
  if (!subject.model) return std::nullopt;
  const auto weights = 2 * static_cast<double>(parameter_count(*subject.model));  // in 16 bits, on all GPUs together
  FitQuestion question = asked;
  question.same_maths = question.few_layouts = true;
  question.research = false;
  question.replays = std::min(question.replays, most_replays);
  question.work /= share_of_work;
  question.sequence = subject.parsed.training.sequence;
  question.global_batch = subject.parsed.training.step_sequences();
  for (std::int64_t times = 2; times <= most_times; times *= 2) {
    const std::int64_t gpus = times * subject.gpus;
    if (weights > static_cast<double>(subject.hardware.gpu.memory.value.count()) * static_cast<double>(gpus)) continue;
    question.machine = fmt::format("{}x{}", gpus, subject.hardware.gpu.name);
    try {
      FitOutcome outcome = find_fit(question, fit_subject(question), options);
      if (outcome.stopped) return std::nullopt;
      if (outcome.any() && does_fit(outcome.ways.front().row))
        return OtherMachine{.machine = question.machine, .gpus = gpus, .best = std::move(outcome.ways.front())};
    } catch (const InputError&) {
      return std::nullopt;  // so many don't make a machine, or the sequences don't divide
    }
  }
  return std::nullopt;
}

}  // namespace spillway::studies
