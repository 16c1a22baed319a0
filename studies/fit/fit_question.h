// The question of `spillway fit`, and what stays the same in every way: the model, the sequences and their number in a
// step, the machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/words.h"
#include "hwprofiles/hardware_profile.h"
#include "models/spec/model_spec.h"
#include "studies/candidates/evaluate.h"

namespace spillway::studies {

// The better of two ways that fit. Equal ones: the faster, then the one that writes less to drives, then the one with
// fewer edits.
enum class FitGoal : std::uint8_t {
  speed,   // the shorter step
  cost,    // the cheaper token; fewer GPUs than there are may do it
  life,    // the longer lifetime of the drives; nothing written: unlimited
  memory,  // the lower reserved peak of the fullest GPU
  gpus,    // fewer GPUs
  change,  // fewer edits of the scenario
};
const Words& fit_goal_words();

struct FitQuestion {
  std::string what;                   // a scenario, a trace, a bundled model's name, a model file or config.json
  std::string machine;                // hwprofiles/machine_choice.h; empty: the scenario's
  std::vector<std::string> settings;  // as from --set, before everything else
  FitGoal goal = FitGoal::speed;
  bool same_maths = false;                      // no other optimizer, precision, or order of updates
  bool any_numerics = false;                    // those ranked among the others, not behind them
  bool research = false;                        // also what nobody can run today (fit_carrier.h)
  std::string launcher;                         // as which ways are launched (fit_exports.h); empty: as they are
  bool few_layouts = false;                     // of tensor, context and pipeline parallelism one at most
  std::int64_t sequence = 0, global_batch = 0;  // 0: the scenario's own; of a model by default_batch()
  std::int64_t replays = 200;                   // at most
  // Layers run forward and backward in all replays, about: what the search may take, whatever the machine it runs on.
  std::int64_t work = 40'000;
};

struct FitSubject {
  BaseScenario scenario;           // as given: the edits of every way are edits of it
  Scenario parsed;                 // of that
  std::optional<ModelSpec> model;  // none: a capture, with its step as it is
  HardwareProfile hardware;
  std::int64_t gpus = 1;                 // all there are
  std::vector<std::string> assumptions;  // what the question left open, in words
  bool is_model_alone = false;           // nothing is run today that ways could be compared with
  // Edits that keep the sequences of a step where the scenario as it was doesn't say them by global_batch.
  std::vector<std::string> batch_edits;
};

// Sequences of a step where nobody says: half a million tokens in all, at least one and at most 16 a GPU, in powers of
// two. Times per token change little beyond.
std::int64_t default_batch(std::int64_t gpus, std::int64_t sequence);

// Throws InputError: what is neither, with the nearest names; a model without a machine; what parse_scenario() refuses.
FitSubject fit_subject(const FitQuestion& question);
// The same of a scenario at hand, which `question.what` only names in messages.
FitSubject fit_subject(const FitQuestion& question, const BaseScenario& scenario);

}  // namespace spillway::studies
