#include "models/step/reference_pass.h"

#include <utility>
#include <vector>

namespace spillway::models {

// Layers behind the last: none is trained.
TrainingSetup reference_setup(const ModelSpec& model, const TrainingSetup& setup) {
  TrainingSetup untrained = setup;
  untrained.trainable = Trainable::full;
  if (setup.reference != Reference::base) untrained.base_weights = BaseWeights::same;
  untrained.reference = Reference::none;
  untrained.frozen_layers = model.all_layers();
  untrained.trained_layers = 1;
  untrained.recompute = Recompute::none;
  return untrained;
}

ReferencePass::ReferencePass(const ModelSpec& model, const TrainingSetup& setup, EagerSession& session,
                             Autograd& autograd, Communication* communication)
    : setup_(reference_setup(model, setup)), reference_(setup.reference), autograd_(autograd) {
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
  if (setup_.loss == LossForm::group) return;
  autograd_.set_recording(false);
  if (setup_.loss == LossForm::unpaired) static_cast<void>(trained.forward(ids, labels));
  if (reference_ != Reference::none) run_reference(trained, ids, labels);
  autograd_.set_recording(true);
  if (gatherer_) gatherer_->end_backward();
}

void ReferencePass::run_reference(Transformer& trained, const Tensor& ids, const Tensor& labels) {
  std::vector<std::pair<TrainedParameter*, std::pair<TrainedParameter*, TrainedParameter*>>> adapted;
  if (!own_)
    for (TrainedParameter& parameter : trained.parameters()) {
      if (parameter.adapter_a == nullptr) continue;
      adapted.push_back({&parameter, {parameter.adapter_a, parameter.adapter_b}});
      parameter.adapter_a = parameter.adapter_b = nullptr;
    }
  for (int batch = 0; batch < (setup_.loss == LossForm::unpaired ? 2 : 1); ++batch)
    static_cast<void>((own_ ? *own_ : trained).forward(ids, labels));
  for (const auto& [parameter, adapters] : adapted) {
    parameter->adapter_a = adapters.first;
    parameter->adapter_b = adapters.second;
  }
}

}  // namespace spillway::models
