#include "models/step/reference_pass.h"

#include <utility>
#include <vector>

namespace spillway::models {

// Layers behind the last: none is trained.
TrainingSetup reference_setup(const ModelSpec& model, const TrainingSetup& setup) {
  TrainingSetup untrained = setup;
  untrained.trainable = Trainable::full;
  untrained.modules_to_save = SavedModules::none;
  if (setup.reference != Reference::base) untrained.base_weights = BaseWeights::same;
  untrained.reference = Reference::none;
  untrained.frozen_layers = model.all_layers();
  untrained.trained_layers = 1;
  untrained.recompute = Recompute::none;
  return untrained;
}

ReferencePass::ReferencePass(const ModelSpec& model, const TrainingSetup& setup, const ModelPart& part,
                             EagerSession& session, Autograd& autograd, Communication* communication)
    : setup_(reference_setup(model, setup)), reference_(setup.reference), part_(part), autograd_(autograd) {
  if (setup.reference != Reference::model) return;
  own_ = std::make_unique<Transformer>(model, setup_, part_, session, autograd, communication);
  if (setup.zero_stage != 3 || communication == nullptr) return;
  gatherer_.emplace(setup_, session, *communication, own_->parameters(), true);
  WeightGatherer* const gatherer = &*gatherer_;
  own_->set_units({[gatherer](std::int64_t layer) { gatherer->before(layer); },
                   [gatherer](std::int64_t layer) { gatherer->after(layer); }, [](std::int64_t) {}, [](std::int64_t) {},
                   [gatherer] { gatherer->before_head(); }});
}

std::size_t ReferencePass::forwards() const {
  if (setup_.loss == LossForm::group) return 0;
  const std::size_t others = setup_.loss == LossForm::unpaired ? 1 : 0;
  return others + (reference_ == Reference::none ? 0 : 1 + others);
}

void ReferencePass::run(Transformer& trained, const Tensor& ids, const Tensor& labels, std::vector<Tensor>& passed) {
  const std::size_t count = forwards(), of_trained = setup_.loss == LossForm::unpaired ? 1 : 0;
  if (setup_.loss == LossForm::group) return;
  std::vector<Tensor> next;
  const auto forward = [&](Transformer& model, std::size_t index) {
    Tensor out = model.forward(part_.has_embedding ? ids : passed.at(index), labels);
    if (!part_.has_embedding) passed[index] = {};
    if (!part_.has_head) next.push_back(std::move(out));
  };
  autograd_.set_recording(false);
  for (std::size_t i = 0; i < of_trained; ++i) forward(trained, i);
  std::vector<std::pair<TrainedParameter*, std::pair<TrainedParameter*, TrainedParameter*>>> adapted;
  if (!own_ && reference_ != Reference::none)
    for (TrainedParameter& parameter : trained.parameters()) {
      if (parameter.adapter_a == nullptr) continue;
      adapted.push_back({&parameter, {parameter.adapter_a, parameter.adapter_b}});
      parameter.adapter_a = parameter.adapter_b = nullptr;
    }
  for (std::size_t i = of_trained; i < count; ++i) forward(own_ ? *own_ : trained, i);
  for (const auto& [parameter, adapters] : adapted) {
    parameter->adapter_a = adapters.first;
    parameter->adapter_b = adapters.second;
  }
  passed = std::move(next);
  autograd_.set_recording(true);
  if (gatherer_) gatherer_->end_backward();
}

}  // namespace spillway::models
