#include "models/spec/tower.h"

#include <fmt/format.h>

#include <utility>

#include "base/input_error.h"
#include "models/spec/trainable.h"

namespace spillway::models {
namespace {

// Products of a matrix with a row: the forward, the gradient of its input, its own gradient.
int products_of(const Parameter& parameter, const ModelSpec& tower, const TrainingSetup& setup) {
  if (setup.train_tower == TrainTower::whole) return 3;
  if (!is_trained(parameter, setup, tower)) return 1;
  const Projector& projector = tower.projector;
  const char* const first = projector.inner > 0 ? ".in.weight" : ".out.weight";
  const bool reads_frozen =
      parameter.name == "projector.merge.weight" ||
      (parameter.name.ends_with(first) && !(projector.reduces && parameter.name.find("taps") == std::string::npos));
  return reads_frozen ? 2 : 3;
}

}  // namespace

void set_tower(ModelSpec& spec, std::shared_ptr<const ModelSpec> tower) {
  spec.held_parameters = parameter_count(*tower);
  spec.tower = std::move(tower);
}

std::int64_t image_rows(const ModelSpec& tower, const TrainingSetup& setup) {
  return setup.image_tokens * tower.projector.merged() + (tower.patches.class_token ? 1 : 0);
}

bool trains_tower(const TrainingSetup& setup) { return setup.images > 0 && setup.train_tower != TrainTower::frozen; }

TrainingSetup tower_setup(const TrainingSetup& setup, const ModelSpec& model) {
  TrainingSetup own = setup;
  own.micro_batch = setup.micro_batch * setup.images;
  own.sequence = image_rows(*model.tower, setup);
  own.images = 0;
  own.document_tokens = 0;
  own.data_parallel = setup.data_parallel * setup.context_parallel;  // that share out states
  own.tensor_parallel = own.context_parallel = own.expert_parallel = own.sequence_slices = 1;
  own.sequence_parallel = own.overlap_tensor = false;
  if (has_narrow_products(setup.precision)) own.precision = TrainingPrecision::bf16_mixed;
  own.fp8_weights = own.fp32_unpacked = false;
  own.trainable = Trainable::full;
  own.base_weights = BaseWeights::same;
  own.frozen_layers = setup.train_tower == TrainTower::whole ? 0 : model.tower->layers;
  own.trained_layers = 0;
  own.recompute = setup.recompute == Recompute::full ? Recompute::full : Recompute::none;
  own.recompute_layers = 0;
  own.recompute_every = 1;
  own.dropout = 0;
  own.cuda_graphs.clear();
  own.expert_load = ExpertSpread::even;
  own.expert_capacity = 0;
  return own;
}

double tower_flops(const ModelSpec& model, const TrainingSetup& setup) {
  if (setup.images == 0) return 0;
  const ModelSpec& tower = *model.tower;
  const auto rows = static_cast<double>(setup.images * image_rows(tower, setup));
  const auto tokens = static_cast<double>(setup.images * setup.image_tokens);
  double flops = 0;
  for (const Parameter& parameter : parameters(tower)) {
    const double each = parameter.name.starts_with("projector") ? tokens : rows;
    flops += 2 * each * static_cast<double>(matmul_elements(tower, parameter)) * products_of(parameter, tower, setup);
  }
  const int passes = setup.train_tower == TrainTower::whole ? 3 : 1;
  for (std::int64_t layer = 0; layer < tower.layers; ++layer) {
    const Block block = tower.block(layer);
    const auto keys = static_cast<double>(block.window > 0 ? block.window : image_rows(tower, setup));
    flops += passes * 4 * rows * keys * static_cast<double>(block.query_width());
  }
  return flops;
}

void check_tower(TrainingSetup& setup, const ModelSpec& model) {
  const auto refuse = [](const char* place, const std::string& cause, const std::string& remedy) {
    throw InputError("", place, cause, remedy);
  };
  if (setup.images < 0 || setup.images > 65'536) refuse("images", "no number of images", "give 0 .. 65536");
  if (setup.images == 0) {  // nothing that the step depends on
    setup.image_tokens = 0;
    setup.train_tower = TrainTower::frozen;
    return;
  }
  if (model.tower == nullptr)
    refuse("images",
           model.title +
               (model.held_parameters > 0 ? ": the sizes of its vision tower are not known" : " reads no images"),
           fmt::format("leave it out, or name a model with one of the towers {}", tower_words().listed()));
  const ModelSpec& tower = *model.tower;
  const Patches& patches = tower.patches;
  const std::int64_t fixed = patches.count() / tower.projector.merged();
  if (setup.image_tokens == 0) setup.image_tokens = fixed;
  if (setup.image_tokens <= 0)
    refuse("image_tokens", tower.title + " takes images of any size",
           fmt::format("give the tokens that an image becomes: its pixels / {}",
                       patches.patch * patches.patch * tower.projector.merged()));
  if (fixed > 0 && setup.image_tokens != fixed)
    refuse("image_tokens", fmt::format("{} makes {} tokens of every image", tower.title, fixed), "leave it out");
  if (setup.images * setup.image_tokens > setup.sequence)
    refuse(
        "images",
        fmt::format("{} images of {} tokens, but a sequence has {}", setup.images, setup.image_tokens, setup.sequence),
        "give fewer, smaller image_tokens, or a longer sequence: an image's tokens are part of it");
  if (setup.micro_batch * setup.images * image_rows(tower, setup) > std::int64_t{1} << 28)
    refuse("images", "more than 2^28 patches in a micro-batch", "give fewer, or a smaller micro_batch");
  if (setup.sequence_slices > 1)
    refuse("images", "slices of a sequence with images are not modelled", "set sequence_slices to 1");
  if (setup.train_tower != TrainTower::frozen && setup.has_adapters())
    refuse("train_tower", "a tower trained beside adapters of the text is not modelled", "set it to frozen");
  const std::int64_t first_stage = (model.layers + setup.pipeline_parallel * setup.pipeline_chunks - 1) /
                                   (setup.pipeline_parallel * setup.pipeline_chunks);
  if (static_cast<std::int64_t>(tower.projector.taps.size()) > first_stage)
    refuse("pipeline_parallel",
           fmt::format("{} layers behind the embedding read images, which a stage of {} has not",
                       tower.projector.taps.size(), first_stage),
           "use fewer stages or chunks");
}

}  // namespace spillway::models
