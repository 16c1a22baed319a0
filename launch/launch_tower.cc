// Vision towers, as LLaMA-Factory (freeze_vision_tower, freeze_multi_modal_projector: hparams/finetuning_args.py) and
// ms-swift (freeze_vit, freeze_aligner: arguments/tuner_args.py) freeze them. Other Trainers train all that requires a
// gradient.
#include <string>

#include "launch/launch_compose.h"
#include "launch/launch_facts.h"

namespace spillway::launch {

void compose_tower(LaunchLedger& ledger, const ModelSpec& spec) {
  const bool is_factory = ledger.dialect() == Dialect::factory;
  const bool is_swift = ledger.launcher() == LaunchFormat::swift || ledger.launcher() == LaunchFormat::swift_megatron;
  const bool freezes = is_factory || is_swift;
  const bool is_frozen = ledger.text(facts::frozen_tower).value_or(freezes ? "true" : "false") == "true";
  const bool has_frozen_way = ledger.text(facts::frozen_projector).value_or(freezes ? "true" : "false") == "true";
  if (spec.tower == nullptr) {
    const bool is_unknown = spec.held_parameters > 0;
    for (const std::string_view fact : {facts::frozen_tower, facts::frozen_projector, facts::image_pixels})
      ledger.leave_out(
          fact, is_unknown ? IgnoreReason::not_said : IgnoreReason::no_effect,
          is_unknown ? "the sizes of the model's vision tower are not known" : "the model reads no images");
    return;
  }
  if (ledger.program() != LaunchFormat::hf && !freezes) return;
  const std::string trainable = ledger.chosen("model.trainable").value_or("full");
  const std::string trained = !is_frozen ? "whole" : has_frozen_way ? "frozen" : "projector";
  if (trainable == "full") {
    ledger.set("model.train_tower", trained,
               is_factory ? "LLaMA-Factory freezes towers unless told"
               : is_swift ? "ms-swift freezes towers unless told"
                          : "all that a Trainer is given is trained");
  } else if (trained != "frozen") {
    for (const std::string_view fact : {facts::frozen_tower, facts::frozen_projector})
      if (ledger.text(fact) == "false")
        ledger.doubt(fact, IgnoreReason::adds, "a tower trained beside adapters is not modelled: it stays frozen");
  }
  const Patches& patches = spec.tower->patches;
  const std::int64_t pixels = patches.patch * patches.patch * spec.tower->projector.merged();
  if (patches.image > 0)
    ledger.leave_out(facts::image_pixels, IgnoreReason::no_effect, "the model's images have one size");
  else if (const auto most = ledger.number(facts::image_pixels))
    ledger.set("model.image_tokens", std::to_string(*most / pixels), "");
  else if (is_factory)
    ledger.set("model.image_tokens", std::to_string(std::int64_t{768} * 768 / pixels),
               "LLaMA-Factory's image_max_pixels, 768 x 768");
}

}  // namespace spillway::launch
