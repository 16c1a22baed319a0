// What another training of the same model would come to on the same machines: adapters beside frozen weights (LoRA),
// and on a base in NF4 (QLoRA). No way to do what was asked, which is to train all weights: said beside the ways, under
// its own name, as somebody whose model is too large may have a use for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "studies/fit/fit_search.h"

namespace spillway::studies {

struct OtherTraining {
  std::string name;  // "LoRA"
  // Of those that fit; its edits make it of the question, training and all. None: none that was tried does.
  std::optional<FitWay> best;
  std::string refusal;       // why it can't be run at all; then nothing is known of what fits
  bool ended_early = false;  // more was to be tried: with no way found that is no no
};

// The best that few replays find of each. None of a capture, of a question that has adapters itself or keeps its maths;
// those for which the thread's StopScope leaves no time are left out. Preconditions as of find_fit().
std::vector<OtherTraining> other_trainings(const FitQuestion& question, const FitSubject& subject,
                                           const FitOptions& options = {});

}  // namespace spillway::studies
