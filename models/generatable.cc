#include "models/generatable.h"

#include <fmt/format.h>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

struct Gap {
  bool present;
  const char* what;
};

}  // namespace

void require_generatable(const ModelSpec& model) {
  const bool around = model.norm_placement == NormPlacement::sandwich || model.norm_placement == NormPlacement::branch;
  const Gap gaps[] = {
      {model.has_experts(), "experts"},
      {model.has_latent(), "latent attention"},
      {model.has_encoder(), "an encoder beside the decoder"},
      {model.reads_images(), "image patches"},
      {model.positions == Positions::relative_bias, "a relative position bias"},
      {model.block_layout != BlockLayout::sequential, "parallel attention and feed-forward blocks"},
      {around, "norms of a sub-layer's result"},
      {model.attention_window > 0, "an attention window"},
      {model.attention_softcap > 0 || model.logit_softcap > 0, "soft caps"},
      {model.masked_lm_head, "a masked-LM head without next-sentence prediction"},
      {model.head_bias, "a bias of the LM head"},
  };
  for (const Gap& gap : gaps)
    if (gap.present)
      throw InputError(model.name, "",
                       fmt::format("{} has {}, which the trace generator does not know", model.title, gap.what),
                       "choose another model, or record a trace of this one");
}

}  // namespace spillway
