#include "models/step/gradient_reducer.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "models/step/host_times.h"

namespace spillway::models {
namespace {

// DeepSpeed's stage3_param_persistence_threshold and stage3_max_reuse_distance as they are unless said.
constexpr std::int64_t persistent_elements = 100'000, reuse_elements = 1'000'000'000;
constexpr std::int64_t behind_layers = std::numeric_limits<std::int64_t>::max();  // unit

}  // namespace

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
  const bool leaves = reduces_ ? setup_.overlap_gradients : host_ != nullptr;
  if (!leaves || !is_last_) return;
  if (parameter.uses > 1 && ++seen_[parameter.shape.name] < parameter.uses) return;
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

WeightGatherer::WeightGatherer(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                               std::deque<TrainedParameter>& parameters)
    : setup_(setup), session_(session), communication_(communication), by_module_(setup.traits().deepspeed) {
  for (TrainedParameter& parameter : parameters) {
    const std::int64_t layer = parameter.shape.layer;
    if (!by_module_) {
      units_[layer].push_back(&parameter);
      continue;
    }
    hooks_[layer] += std::max<std::int64_t>(1, parameter.shape.experts);
    const std::string& name = parameter.shape.name;
    const bool is_behind = layer < 0 && (name.starts_with("head.") || name.starts_with("final_norm."));
    if (parameter.stored <= persistent_elements && parameter.stored_share < parameter.stored)
      parameter.value = session.empty(name, parameter.type(), parameter.stored, TensorRole::weight);
    else
      units_[is_behind ? behind_layers : layer].push_back(&parameter);
  }
}

void WeightGatherer::gather(std::int64_t layer) {
  const auto unit = units_.find(layer);
  if (unit == units_.end()) return;
  if (by_module_) return gather_modules(unit->second, false);
  if (unit->second.front()->value) return;
  gather(unit->second, false);
  gather(unit->second, true);
}

void WeightGatherer::gather_modules(const Unit& unit, bool again) {
  for (TrainedParameter* parameter : unit) gather_module(*parameter, again);
}

// again: experts one by one, for the backward behind their recomputation.
void WeightGatherer::gather_module(TrainedParameter& parameter, bool again) {
  const std::int64_t pieces =
      parameter.shape.experts > 0 && !setup_.leaf_modules ? parameter.shape.experts : std::int64_t{1};
  if (parameter.value && !(again && pieces > 1)) return;
  if (communication_.shape(CommGroup::shard).ranks > 1)
    session_.host_work("fetch weights", zero_fetch * pieces, {}, {});
  const Tensor shard = setup_.weight_device == StateDevice::gpu ? parameter.shard : fetch({&parameter}).front();
  if (parameter.stored_share == parameter.stored) {
    parameter.value = shard;
    return;
  }
  if (!parameter.value)
    parameter.value = session_.empty(parameter.shape.name, parameter.type(), parameter.stored, TensorRole::weight);
  communication_.gather_into(CommGroup::shard, "all_gather_weights", {shard}, {parameter.value},
                             parameter.value.bytes(), pieces);
}

template <class Begin>
void WeightGatherer::gather_ahead(Begin unit, Begin end) {
  std::int64_t ahead = 0, fresh = 0;
  for (; unit != end && ahead < setup_.prefetch_elements; ++unit)
    for (TrainedParameter* parameter : unit->second) {
      if (ahead >= setup_.prefetch_elements) break;
      ahead += parameter->stored;
      if (parameter->value || (parameter->shape.experts > 0 && !setup_.leaf_modules)) continue;
      fresh += parameter->stored;
      gather_module(*parameter, false);
    }
  if (fresh > 0 && communication_.shape(CommGroup::shard).ranks > 1)
    ahead_ = session_.empty("gathered_ahead", units_.begin()->second.front()->type(), fresh, TensorRole::temporary);
}

void WeightGatherer::release(Unit& unit) {
  for (TrainedParameter* parameter : unit)
    if (parameter->shape.layer >= 0 || goes_after_use(*parameter)) parameter->value = {};
}

bool WeightGatherer::goes_after_use(const TrainedParameter& parameter) {
  const std::string& name = parameter.shape.name;
  return parameter.uses == 1 &&
         (name == "embedding.weight" || name.starts_with("head.") || name == "final_norm.weight");
}

void WeightGatherer::run_hooks(std::int64_t layer, Picos each) {
  session_.host_work("module hooks", each * hooks_[layer], {}, {});
}

// Of DeepSpeed's stage3_max_reuse_distance: elements of the weights used between this layer's forward and the next use
// of its weights.
bool WeightGatherer::is_kept_over_turn(std::int64_t layer) const {
  const std::int64_t passes = setup_.recompute == Recompute::full ? 3 : 2;
  std::int64_t between = 0;
  for (auto unit = units_.upper_bound(layer); unit != units_.end(); ++unit)
    for (const TrainedParameter* parameter : unit->second)
      between += parameter->stored * (unit->first == behind_layers ? 2 : passes);
  return between <= reuse_elements;
}

void WeightGatherer::gather(const std::vector<TrainedParameter*>& unit, bool experts) {
  std::vector<TrainedParameter*> wanted;
  for (TrainedParameter* parameter : unit)
    if (parameter->is_expert == experts) wanted.push_back(parameter);
  const std::vector<Tensor> parts = setup_.weight_device == StateDevice::gpu ? std::vector<Tensor>() : fetch(wanted);
  std::vector<Tensor> shards, values;
  Bytes whole{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    TrainedParameter& parameter = *wanted[i];
    const Tensor& shard = parts.empty() ? parameter.shard : parts[i];
    if (parameter.stored_share == parameter.stored) {
      parameter.value = shard;
      continue;
    }
    parameter.value = session_.empty(parameter.shape.name, parameter.type(), parameter.stored, TensorRole::weight);
    shards.push_back(shard);
    values.push_back(parameter.value);
    whole += parameter.value.bytes();
  }
  if (!values.empty())
    communication_.gather_into(experts ? CommGroup::expert_gradient : CommGroup::shard, "all_gather_weights",
                               std::move(shards), std::move(values), whole);
}

std::vector<Tensor> WeightGatherer::fetch(const std::vector<TrainedParameter*>& parameters) {
  const bool on_drives = setup_.weight_device == StateDevice::drives;
  Transfer in{.name = "fetch_weights",
              .kind = on_drives ? OpKind::storage_read : OpKind::copy_host_to_device,
              .lane = on_drives ? "drives to device" : "host to device",
              .after_kernels = true};
  for (const TrainedParameter* parameter : parameters) {
    const bool whole = parameter->stored_share == parameter->stored;
    in.reads.push_back(parameter->shard);
    in.writes.push_back(session_.empty(parameter->shape.name + (whole ? "" : ".part"), parameter->shard.type(),
                                       parameter->stored_share, whole ? TensorRole::weight : TensorRole::temporary));
    in.bytes += in.writes.back().bytes();
  }
  if (!in.writes.empty()) session_.transfer(in);
  return in.writes;
}

void WeightGatherer::before(std::int64_t layer) {
  ahead_ = {};
  if (by_module_) {
    run_hooks(layer, zero_forward_hooks);
    if (layer >= 0 && has(-1)) release(units_[-1]);
    gather(layer);
    return gather_ahead(units_.upper_bound(layer), units_.end());
  }
  gather(layer);
  if (layer < 0) return;
  for (std::int64_t next = layer + 1; next <= layer + setup_.prefetch && has(next); ++next) gather(next);
}

void WeightGatherer::before_head() {
  if (!by_module_) return;
  ahead_ = {};
  gather(behind_layers);
}

void WeightGatherer::before_backward(std::int64_t layer) {
  ahead_ = {};
  const bool recomputes = setup_.recompute == Recompute::full;
  if (by_module_) {
    run_hooks(layer, recomputes ? zero_forward_hooks + zero_backward_hooks : zero_backward_hooks);
    if (has(behind_layers)) release(units_[behind_layers]);
  }
  gather(layer);
  if (by_module_ && recomputes && has(layer)) gather_modules(units_[layer], true);
  if (!setup_.late_prefetch) gather_below(layer);
}

void WeightGatherer::after_backward(std::int64_t layer) {
  if (has(layer)) release(units_[layer]);
  if (setup_.late_prefetch) gather_below(layer);
  if (by_module_ && layer == 0) gather(-1);
}

void WeightGatherer::gather_below(std::int64_t layer) {
  const std::int64_t lowest = std::max(layer - setup_.prefetch, setup_.frozen_layers);
  if (by_module_) {
    const auto unit = units_.find(layer), end = units_.lower_bound(setup_.frozen_layers);
    if (unit != units_.end()) gather_ahead(std::make_reverse_iterator(unit), std::make_reverse_iterator(end));
    return;
  }
  for (std::int64_t next = layer - 1; next >= lowest && has(next); --next) gather(next);
}

void WeightGatherer::after(std::int64_t layer) {
  if (!has(layer) || (by_module_ && is_kept_over_turn(layer))) return;
  release(units_[layer]);
}

void WeightGatherer::end_backward() {
  ahead_ = {};
  for (auto& [layer, unit] : units_)
    for (TrainedParameter* parameter : unit) parameter->value = {};
}

}  // namespace spillway::models
