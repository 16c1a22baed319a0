#include "planners/recompute/recompute_techniques.h"

#include <string>
#include <utility>

#include "models/spec/training_setup.h"
#include "planners/recompute/recompute_run.h"

namespace spillway::planners {
namespace {

Technique of_generator(Recompute recompute, const std::string& way, std::string title, std::string words,
                       std::string about, std::string source, Offered offered) {
  const std::string word(to_string(recompute));
  return {.name = way,
          .title = std::move(title),
          .about = std::move(about),
          .source = std::move(source),
          .key = std::string(recompute_key),
          .word = word,
          .ways = {{way, std::move(words), {setting(recompute_key, word)}, offered}}};
}

TechniquePart make_recompute(const TechniqueRequest& request) {
  const std::vector<SavedTensor> saved = saved_tensors(request.trace);
  RecomputeIndex index(request.trace, saved);
  const RecomputeMethod method = request.every > 1 ? RecomputeMethod::every : RecomputeMethod::full;
  AwayUntil away = request.every > 1 ? recompute_every(index, request.every) : full_recompute(index);
  RecomputeCase made = replay_recompute(index, std::move(away), request.replayer, std::string(to_string(method)));
  TechniquePart part;
  part.plan.fates = std::move(made.plan);
  part.result = std::move(made.result);
  return part;
}

}  // namespace

const std::vector<Technique>& recompute_techniques() {
  static const std::vector<Technique> rows = {
      of_generator(Recompute::none, "keep", "nothing recomputed", "keep everything on the GPU", "keep every activation",
                   "", Offered::always),
      of_generator(Recompute::selective, "selective", "selective recomputation", "recompute attention",
                   "recompute attention cores", "Korthikanti et al. 2022, section 5", Offered::of_models),
      of_generator(Recompute::full, "full", "full recomputation", "recompute whole layers",
                   "recompute all but each layer's input", "Chen et al. 2016", Offered::of_models),
      {.name = std::string(recompute_word),
       .title = "recomputation of any step",
       .about = "what lies inside every layer, or every K-th, is recomputed: `spillway plan recompute`",
       .source = "Chen et al. 2016",
       .needs = {Capability::times, Capability::memory, Capability::uses, Capability::phases},
       .make = make_recompute},
  };
  return rows;
}

}  // namespace spillway::planners
