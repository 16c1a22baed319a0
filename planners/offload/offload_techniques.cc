#include "planners/offload/offload_techniques.h"

#include <utility>

#include "planners/offload/bpipe.h"
#include "planners/offload/checkpoints.h"
#include "planners/offload/hybrid_search.h"
#include "planners/offload/lifetimes.h"
#include "planners/offload/pipeoffload.h"

namespace spillway::planners {
namespace {

TechniquePart part_of(OffloadOutcome outcome) {
  TechniquePart part;
  part.plan.fates = std::move(outcome.plan);
  part.planned = std::move(outcome.planned);
  part.result = std::move(outcome.result);
  part.notes = std::move(outcome.notes);
  return part;
}

template <auto Run>
TechniquePart made_by(const TechniqueRequest& request) {
  return part_of(Run(request.trace, request.replayer, request.settings));
}

TechniquePart make_hybrid(const TechniqueRequest& request) {
  HybridSettings settings;
  settings.runtime = request.settings;
  settings.budget = settings.runtime.budget;
  HybridOutcome outcome = plan_hybrid(request.trace, request.replayer, settings);
  TechniquePart part;
  part.plan.fates = std::move(outcome.best.plan);
  if (part.plan.fates->technique.empty()) part.plan.fates->technique = hybrid_word;  // everything stays
  part.planned = std::move(outcome.planned);
  part.result = std::move(outcome.best.result);
  if (part.result.offload && part.result.offload->technique.empty())
    part.result.offload->technique = part.plan.fates->technique;
  return part;
}

TechniquePart make_moved_by_schedule(const TechniqueRequest& request) {
  if (request.layers != nullptr && request.layers->moved > 0)
    return part_of(run_pipeoffload(request.trace, *request.layers, request.replayer, request.settings));
  SPILLWAY_ASSERT(request.schedule != nullptr);
  return part_of(run_bpipe(request.trace, *request.schedule, request.replayer, request.settings));
}

// To the drives, and to host memory alone.
std::vector<TechniqueWay> both_tiers(std::string_view word, std::string to_drives, std::string to_host,
                                     Offered drives = Offered::when_named, Offered host = Offered::when_named) {
  const std::string name(word);
  const auto settings = [&](Tier tier) {
    return std::vector<std::string>{setting(offload_key, name), "offload.tier=" + std::string(to_string(tier))};
  };
  return {{name, std::move(to_drives), settings(Tier::drive), drives},
          {name + "-host", std::move(to_host), settings(Tier::host), host}};
}

}  // namespace

bool moves_as_needed(std::string_view technique) { return technique == hybrid_word || technique == lifetimes_word; }

const std::vector<Technique>& offload_techniques() {
  const auto needed = [] {
    return std::vector{Capability::times, Capability::memory, Capability::uses, Capability::phases};
  };
  static const std::vector<Technique> rows = {
      {.name = std::string(ssdtrain_word),
       .title = "SSDTrain",
       .about = "what the forward saves leaves as it is made, and comes back before the backward",
       .source = "arXiv 2408.10013, sections III and IV",
       .key = std::string(offload_key),
       .needs = needed(),
       .ways = both_tiers(ssdtrain_word, "offload activations to SSD (SSDTrain)", "offload activations to host memory",
                          Offered::with_drives, Offered::of_models),
       .make = made_by<run_ssdtrain>,
       .repeats = true},
      {.name = std::string(hybrid_word),
       .title = "keep, offload or recompute",
       .about = "a decision for each tensor, so that the step fits and is fastest; searched by simulations",
       .source = "ours; after Capuchin (ASPLOS 2020) and TERAIO (NeurIPS 2025)",
       .key = std::string(offload_key),
       .needs = needed(),
       .ways = {{std::string(hybrid_word),
                 "keep, recompute or offload, per tensor",
                 {setting(offload_key, hybrid_word)}}},
       .make = make_hybrid},
      {.name = std::string(checkpoints_word),
       .title = "checkpoints that leave",
       .about = "layers are recomputed, and their inputs leave until then",
       .source = "ZeRO-Infinity (arXiv 2104.07857), section 5.1.2",
       .key = std::string(offload_key),
       .needs = needed(),
       .ways = both_tiers(checkpoints_word, "recompute layers, keep their inputs on SSD",
                          "recompute layers, keep their inputs in host memory"),
       .make = made_by<run_checkpoints>,
       .repeats = true},
      {.name = std::string(lifetimes_word),
       .title = "offloading by lifetimes",
       .about = "any tensor leaves while it is idle, as far as the step's peak needs it",
       .source = "TERAIO (NeurIPS 2025)",
       .key = std::string(offload_key),
       .needs = needed(),
       .ways = both_tiers(lifetimes_word, "swap idle tensors to SSD", "swap idle tensors to host memory"),
       .make = made_by<run_lifetimes>,
       .moves_state = true},
      {.name = std::string(streaming_word),
       .title = "streamed model state",
       .about = "weights and optimizer state are away whenever they aren't used",
       .source = "ZeRO-Infinity (arXiv 2104.07857)",
       .key = std::string(offload_key),
       .needs = needed(),
       .ways = both_tiers(streaming_word, "stream weights and states from SSD",
                          "stream weights and states from host memory"),
       .make = made_by<run_streaming>,
       .moves_state = true,
       .repeats = true},
      {.name = std::string(cpu_optimizer_word),
       .title = "optimizer on the CPU",
       .about = "the optimizer's states live in host memory, and the CPU updates the weights",
       .source = "ZeRO-Offload (arXiv 2101.06840)",
       .part = PlanPart::none,
       .key = std::string(optimizer_device_key),
       .word = "cpu",
       .ways = {{std::string(cpu_optimizer_word),
                 "keep the optimizer on the CPU",
                 {setting(optimizer_device_key, "cpu")}}},
       .moves_state = true},
      {.name = std::string(moved_by_schedule),
       .title = "PipeOffload and BPipe",
       .about = "what the pipeline schedule moves to host memory or to another stage",
       .source = "arXiv 2503.01328; Kim et al. 2023",
       .needs = needed(),
       .make = make_moved_by_schedule},
  };
  return rows;
}

}  // namespace spillway::planners
