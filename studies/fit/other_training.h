// Another training of the same model on the same machines: adapters beside frozen weights (LoRA), and on a base in NF4
// (QLoRA). It does not do what was asked, which is to train all weights. So it stands beside the ways under its own
// name, as people with a model too large may have a use for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "studies/fit/fit_search.h"

namespace spillway::studies {

struct OtherTraining {
  std::string name;  // "LoRA"
  // The best that fits; its edits make it of the question, training and all. None: none that was tried fits.
  std::optional<FitWay> best;
  std::string refusal;       // why it can't be run at all; then nothing is known of what fits
  bool ended_early = false;  // more was to be tried: with no way found that is no no
};

// Who has more GPUs trains all weights, where that fits.
inline constexpr std::int64_t most_gpus_for_adapters = 64;

// The best that few replays find of each. None of a capture, of a question that has adapters itself or keeps its maths;
// those for which the thread's StopScope leaves no time are left out. `framework`: a word of
// launch::export_target_words(); each is ranked as that launches it, by as_launched(). Preconditions as of find_fit().
std::vector<OtherTraining> other_trainings(const FitQuestion& question, const FitSubject& subject,
                                           const FitOptions& options = {}, std::string_view framework = {});

// The same training on other machines, where none that train alike fit on those there are.
struct OtherMachine {
  std::string machine;  // as --on takes it: "8xh100-sxm5-80gb"
  std::int64_t gpus = 0;
  bool is_larger = false;  // as many GPUs with more memory; else more of the same
  FitWay best;             // edits of the same question on that machine
};
// Larger machines for the question, by a short search on each. More GPUs: the least power of two times as many, up to
// 64 times, with a way. More memory: as many GPUs of the same vendor, the six cheapest by the hour, the two cheapest by
// the token. Only for a model and machines by the name of a GPU. None of a capture, where there is no such machine, or
// where none was found, which is no verdict.
std::vector<OtherMachine> on_other_machines(const FitQuestion& question, const FitSubject& subject,
                                            const FitOptions& options = {});

}  // namespace spillway::studies
