#include "models/step/reference_pass.h"

#include <utility>
#include <vector>

namespace spillway::models {
namespace {

// Layers behind the last: none is trained.
TrainingSetup untrained(const ModelSpec& model, TrainingSetup setup) {
  setup.trainable = Trainable::full;
  setup.base_weights = BaseWeights::same;
  setup.frozen_layers = model.all_layers();
  setup.trained_layers = 1;
  setup.recompute = Recompute::none;
  return setup;
}

}  // namespace

ReferencePass::ReferencePass(const ModelSpec& model, const TrainingSetup& setup, EagerSession& session,
                             Autograd& autograd, Communication* communication)
    : setup_(untrained(model, setup)), autograd_(autograd) {
  if (setup.reference != Reference::model) return;
  own_ = std::make_unique<Transformer>(model, setup_, ModelPart{.layers = {0, model.all_layers()}}, session, autograd,
                                       communication);
  if (setup.zero_stage != 3 || communication == nullptr) return;
  gatherer_.emplace(setup_, session, *communication, own_->parameters(), true);
  WeightGatherer* const gatherer = &*gatherer_;
  own_->set_units({[gatherer](std::int64_t layer) { gatherer->before(layer); },
                   [gatherer](std::int64_t layer) { gatherer->after(layer); }, [](std::int64_t) {}, [](std::int64_t) {},
                   [gatherer] { gatherer->before_head(); }});
}

void ReferencePass::run(Transformer& trained, const Tensor& ids, const Tensor& labels) {
  std::vector<std::pair<TrainedParameter*, std::pair<TrainedParameter*, TrainedParameter*>>> adapted;
  if (!own_)
    for (TrainedParameter& parameter : trained.parameters()) {
      if (parameter.adapter_a == nullptr) continue;
      adapted.push_back({&parameter, {parameter.adapter_a, parameter.adapter_b}});
      parameter.adapter_a = parameter.adapter_b = nullptr;
    }
  autograd_.set_recording(false);
  static_cast<void>((own_ ? *own_ : trained).forward(ids, labels));
  autograd_.set_recording(true);
  for (const auto& [parameter, adapters] : adapted) {
    parameter->adapter_a = adapters.first;
    parameter->adapter_b = adapters.second;
  }
  if (gatherer_) gatherer_->end_backward();
}

}  // namespace spillway::models
