// What Transformer does with images: of a ViT, and of a vision tower what leads from its result into a text.
#include "models/network/vision_tower.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/network/eager_linear.h"
#include "models/network/eager_ops.h"
#include "models/network/patch_embedding.h"

namespace spillway::models {

Transformer::~Transformer() = default;

void Transformer::set_units(Units units) {
  if (tower_) tower_->network.set_units(units);
  units_ = std::move(units);
}

// A convolution with stride and size of a patch is a product; the class token is put before its rows.
Tensor Transformer::embed_patches(const Tensor& images) {
  Tensor x = linear("patches", images);
  if (model_.patches.class_token)
    x = prepend_token("class_token", x, *by_name_.find("class_token")->second, setup_.micro_batch, session_, autograd_);
  if (has("positions")) {
    const Tensor positions = eager::embedding(rec_, "positions", position_ids_[slice_], weight("positions"));
    x = eager::add_broadcast(rec_, "positions.add", x, positions);
  }
  if (model_.norms_embedding()) x = norm("embedding_norm", x);
  return eager::dropout(rec_, "embedding.dropout", x, setup_.dropout);
}

Tensor Transformer::with_taps(std::int64_t index, const Tensor& x) {
  if (const auto at = static_cast<std::size_t>(index); at < taps_.size() && !model_.is_tower())
    return add_rows(fmt::format("taps.{}", at), x, std::exchange(taps_[at], {}), session_, autograd_);
  const std::vector<std::int64_t>& taps = model_.projector.taps;
  if (std::find(taps.begin(), taps.end(), index) != taps.end())
    taps_.push_back(project(fmt::format("projector.taps.{}", taps_.size()), x, true));
  return x;
}

Tensor Transformer::with_images(const Tensor& x) {
  session_.set_layer(-1);
  Transformer& tower = tower_->network;
  const Tensor images = tower.empty_input();
  session_.copy_in(images);
  const Tensor tokens = tower.forward(images, {});
  taps_ = std::exchange(tower.taps_, {});
  if (setup_.sequence_parallel)
    for (Tensor& tap : taps_) tap = eager::split_sequence(rec_, "taps.split", tap);
  return put_rows("images", x, tokens, session_, autograd_);
}

// Rows of a patch's width to tokens of the text. Side by side they lie so in memory, but for Pixtral's.
Tensor Transformer::project(const std::string& name, const Tensor& x, bool is_tap) {
  const Projector& projector = model_.projector;
  Tensor rows = x;
  if (model_.patches.class_token) {
    const std::int64_t patches = x.elements() - setup_.micro_batch * model_.hidden;
    rows = regrouped(name + ".patches", "copy", rows, patches, session_, autograd_);
  }
  if (projector.pools)
    rows = regrouped(name + ".pool", "avg_pool2d", rows, rows.elements() / projector.merged(), session_, autograd_);
  if (has(name + ".norm")) rows = eager::norm(rec_, name + ".norm", rows, weight(name + ".norm"), bias(name + ".norm"));
  if (projector.reduces && !is_tap) {
    rows = regrouped(name + ".unfold", "im2col", rows, rows.elements(), session_, autograd_);
    rows = linear(name + ".merge", rows);
  }
  if (projector.inner > 0)
    rows = eager::pointwise(rec_, name + ".gelu", linear(name + ".in", rows), eager::Pointwise::gelu);
  return linear(name + ".out", rows);
}

}  // namespace spillway::models
