#include "models/step/gradient_reducer.h"

#include <algorithm>
#include <utility>

namespace spillway::models {

GradientReducer::GradientReducer(const TrainingSetup& setup, EagerSession& session, Autograd& autograd,
                                 Communication* communication)
    : setup_(setup), session_(session), autograd_(autograd), communication_(communication) {
  reduces_ = communication != nullptr && communication->shape(CommGroup::gradient).ranks > 1;
  autograd.set_sink([this](TrainedParameter& parameter, Tensor gradient) { take(parameter, std::move(gradient)); });
}

void GradientReducer::begin_backward(bool is_last_micro_batch) {
  is_last_ = is_last_micro_batch;
  if (!is_last_) seen_.clear();  // a parameter of two chunks meets its gradients in two backwards
}

void GradientReducer::end_backward() {
  if (zero_ != nullptr) return zero_->end_backward(is_last_);
  reduce();
  held_.clear();
}

void GradientReducer::take(TrainedParameter& parameter, Tensor gradient) {
  if (zero_ != nullptr) return zero_->take(parameter, std::move(gradient), is_last_);
  if (shares_gradients()) {
    if (setup_.late_reduction) return keep_whole(parameter, std::move(gradient));
    return put(parameter, std::move(gradient));
  }
  if (setup_.traits().gradients_at_end && gradient) held_.push_back(gradient);
  autograd_.add(parameter, std::move(gradient));
  const bool leaves = reduces_ ? setup_.overlap_gradients : host_ != nullptr || update_ != nullptr;
  if (!leaves || !is_last_) return;
  if (parameter.uses > 1 && ++seen_[parameter.shape.name] < parameter.uses) return;
  if (update_) return update_(parameter);
  put(parameter, parameter.gradient);
}

// As FSDP2 does it: the first gradient is taken over, in fp32 if it is to be reduced so, later ones are added to it.
void GradientReducer::keep_whole(TrainedParameter& parameter, Tensor gradient) {
  Tensor& whole = parameter.whole_gradient;
  if (whole) {
    session_.kernel({.name = "accumulate_gradient", .reads = {whole, gradient}, .writes = {whole}});
  } else if (setup_.fp32_reduction && gradient.type() != DataType::fp32) {
    whole =
        session_.empty(parameter.shape.name + ".grad.whole", DataType::fp32, gradient.elements(), TensorRole::gradient);
    session_.kernel({.name = "cast", .reads = {gradient}, .writes = {whole}});
  } else {
    whole = std::move(gradient);
  }
  gradient = {};
  if (!is_last_) return;
  if (parameter.uses > 1 && ++seen_[parameter.shape.name] < parameter.uses) return;
  put(parameter, std::move(whole));
  whole = {};
}

void GradientReducer::put(TrainedParameter& parameter, Tensor gradient) {
  bucket_bytes_ += gradient.bytes().count();
  bucket_.push_back({&parameter, std::move(gradient)});
  if (bucket_bytes_ >= setup_.bucket_bytes) reduce();
}

void GradientReducer::reduce() {
  if (bucket_.empty()) return;
  if (reduces_) reduce_bucket();
  if (host_ != nullptr && (is_last_ || (setup_.traits().deepspeed && shares_gradients()))) hand_over();
  bucket_.clear();
  bucket_bytes_ = 0;
}

void GradientReducer::reduce_bucket() {
  if (setup_.fp32_reduction) widen_bucket();
  reduce(true);
  reduce(false);
}

void GradientReducer::hand_over() {
  std::vector<TrainedParameter*> ready;
  for (Pending& pending : bucket_) {
    const TrainedParameter& parameter = *pending.parameter;
    const bool grows = shares_gradients() && parameter.uses > 1;  // another use's share may come
    if (!parameter.is_partial_sum && !parameter.is_summed_late && !grows) ready.push_back(pending.parameter);
    pending.gradient = {};
  }
  if (!ready.empty()) host_->take(ready);
}

void GradientReducer::reduce(bool experts) {
  const CommGroup group = experts ? CommGroup::expert_gradient : CommGroup::shard;
  std::vector<Pending> mine;
  for (const Pending& pending : bucket_)
    if (pending.parameter->is_expert == experts) mine.push_back(pending);
  if (mine.empty()) return;
  if (shares_gradients()) return reduce_to_shares(group, mine);
  std::vector<Tensor> gradients;
  Bytes bytes{};
  for (const Pending& pending : mine) {
    gradients.push_back(pending.gradient);
    bytes += pending.gradient.bytes();
  }
  if (setup_.zero_stage == 0) return communication_->all_reduce(group, "all_reduce_gradients", gradients);
  communication_->scatter_into(group, "reduce_scatter_gradients", gradients, gradients, bytes);
  communication_->all_reduce(CommGroup::copies, "all_reduce_shares", gradients,
                             bytes / communication_->shape(group).ranks);
}

void GradientReducer::widen_bucket() {
  std::vector<Tensor> narrow, wide;
  for (Pending& pending : bucket_) {
    if (pending.gradient.type() == DataType::fp32) continue;
    narrow.push_back(pending.gradient);
    wide.push_back(session_.empty(pending.parameter->shape.name + ".grad.wide", DataType::fp32,
                                  pending.gradient.elements(), TensorRole::temporary));
    pending.gradient = wide.back();
  }
  if (!wide.empty()) session_.kernel({.name = "cast", .reads = std::move(narrow), .writes = std::move(wide)});
}

void GradientReducer::reduce_to_shares(CommGroup group, const std::vector<Pending>& bucket) {
  if (communication_->shape(group).ranks == 1) {  // experts that no other rank of the group holds
    std::vector<Tensor> whole;
    for (const Pending& pending : bucket) whole.push_back(pending.gradient);
    communication_->all_reduce(CommGroup::copies, "all_reduce_shares", std::move(whole));
    for (const Pending& pending : bucket) autograd_.add(*pending.parameter, pending.gradient, true);
    return;
  }
  std::vector<Tensor> whole, shares;
  Bytes bytes{};
  for (const Pending& pending : bucket) {
    TrainedParameter& parameter = *pending.parameter;
    bytes += pending.gradient.bytes();
    const bool first = !parameter.gradient;
    // FSDP keeps gradients in the type of its shards; its casts, of a share each, are not priced.
    const bool is_narrow = setup_.fp32_reduction && !is_mixed(setup_.precision);
    Tensor share = session_.empty(parameter.shape.name + (first ? ".grad.share" : ".grad.share.new"),
                                  parameter.gathered_type ? parameter.shard.type()
                                  : is_narrow             ? parameter.type()
                                                          : pending.gradient.type(),
                                  parameter.share, first ? TensorRole::gradient : TensorRole::temporary);
    whole.push_back(pending.gradient);
    shares.push_back(share);
  }
  communication_->scatter_into(group, "reduce_scatter_gradients", whole, shares, bytes);
  communication_->all_reduce(CommGroup::copies, "all_reduce_shares", shares,
                             bytes / communication_->shape(group).ranks);  // cast afterwards
  for (std::size_t i = 0; i < bucket.size(); ++i) autograd_.add(*bucket[i].parameter, std::move(shares[i]), true);
}

void GradientReducer::finish(const std::vector<TrainedParameter*>& parameters) {
  if (communication_ == nullptr || zero_ != nullptr) return;
  std::vector<Tensor> parts;
  for (const TrainedParameter* parameter : parameters)
    if (parameter->is_partial_sum) parts.push_back(parameter->gradient);
  communication_->all_reduce(CommGroup::tensor, "all_reduce_gradients", parts);
  if (setup_.overlap_gradients || setup_.zero_stage >= 2) return;
  const bool waits = communication_->after_kernels();
  communication_->set_after_kernels(true);
  if (setup_.traits().megatron)
    finish_as_megatron(parameters);
  else if (reduces_)
    for (auto parameter = parameters.rbegin(); parameter != parameters.rend(); ++parameter)
      put(**parameter, (*parameter)->gradient);
  reduce();
  communication_->set_after_kernels(waits);
}

// Megatron-LM's own data parallelism: everything is divided by the number of replicas, even by one, and reduced at
// once.
void GradientReducer::finish_as_megatron(const std::vector<TrainedParameter*>& parameters) {
  std::vector<Tensor> gradients;
  Bytes all{};
  for (const TrainedParameter* parameter : parameters) {
    gradients.push_back(parameter->gradient);
    all += parameter->gradient.bytes();
  }
  const auto pass = [&](std::string_view name) {
    session_.kernel({.name = name,
                     .reads = gradients,
                     .writes = gradients,
                     .cost = {.memory = MemoryKind::optimizer},
                     .bytes = all + all});
  };
  const bool copies = setup_.traits().copies_gradients;
  if (copies) pass("flatten_gradients");
  pass("divide_gradients");
  if (reduces_) {
    for (TrainedParameter* parameter : parameters) bucket_.push_back({parameter, parameter->gradient});
    bucket_bytes_ = all.count();
    reduce();
  }
  if (copies) pass("unflatten_gradients");
}

}  // namespace spillway::models
