#include "models/step/deepspeed_zero.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/step/optimizer_step.h"

namespace spillway::models {
namespace {

// Bytes of the norm per element of a gradient, and of fp16's look for overflows: an fp32 copy, masks, fp32 again; stage
// 3 looks at its flat gradients.
constexpr std::int64_t norm_bytes = 8, check_bytes = 11, flat_check_bytes = 3;

}  // namespace

DeepspeedZero::DeepspeedZero(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                             const std::vector<TrainedParameter*>& parameters)
    : setup_(setup), session_(session), communication_(communication) {
  const std::int64_t most = splits_gradients() ? setup.sub_group : std::numeric_limits<std::int64_t>::max();
  std::int64_t largest = 0;
  for (const bool is_matrix : {true, false}) {  // transformers' Trainer: with weight decay, then without
    bool is_open = false;
    for (TrainedParameter* parameter : parameters) {
      if ((parameter->shape.columns > 1) != is_matrix) continue;
      if (!is_open) groups_.emplace_back();
      Group& group = groups_.back();
      group.parameters.push_back(parameter);
      group.share += parameter->share;
      share_ += parameter->share;
      largest = std::max(largest, parameter->shape.elements());
      is_open = group.share < most;
    }
  }
  edge_ = splits_gradients() ? 0 : largest;
  const std::int64_t ranks = communication.shape(CommGroup::shard).ranks;
  largest_ = splits_gradients() ? (largest + ranks - 1) / ranks : std::min(largest, share_);
  for (Group& group : groups_) allocate(group);
  bucket_elements_ = std::max<std::int64_t>(1, setup.bucket_bytes / setup.gradient_bytes());
  if (!splits_gradients() || groups_.empty()) return;
  gradients_ = session_.empty("gradients.flat", kept_type(), share_, TensorRole::gradient);
  buckets_ = {session_.empty("gradients.bucket", gradient_type(), bucket_elements_, TensorRole::buffer)};
}

DataType DeepspeedZero::gradient_type() const { return groups_.front().parameters.front()->type(); }

DataType DeepspeedZero::kept_type() const { return setup_.gradient_bytes() == 4 ? DataType::fp32 : gradient_type(); }

void DeepspeedZero::allocate(Group& group) {
  session_.set_layer(group.parameters.front()->shape.layer);
  const auto state = [&](const char* name, DataType type) {
    return session_.empty(name, type, group.share, TensorRole::optimizer_state);
  };
  const DataType type = type_of_bytes(setup_.state_bytes());
  if (setup_.has_master_weights()) group.master = state("states.master", DataType::fp32);
  if (setup_.optimizer != OptimizerKind::sgd) group.first_moment = state("states.exp_avg", type);
  if (setup_.optimizer == OptimizerKind::adam || setup_.optimizer == OptimizerKind::adamw)
    group.second_moment = state("states.exp_avg_sq", type);
  session_.set_layer(-1);
}

Tensor DeepspeedZero::temporary(const char* name, DataType type, std::int64_t elements) {
  return session_.empty(name, type, elements, TensorRole::temporary);
}

void DeepspeedZero::pass(std::string_view name, std::vector<Tensor> reads, std::vector<Tensor> writes) {
  session_.kernel({.name = name,
                   .reads = std::move(reads),
                   .writes = std::move(writes),
                   .cost = {.memory = MemoryKind::optimizer}});
}

void DeepspeedZero::take(TrainedParameter& parameter, Tensor gradient, bool is_last) {
  Tensor& whole = parameter.whole_gradient;  // a tied weight's of its uses, or stage 1's of the micro-batches so far
  if (whole) {
    session_.kernel({.name = "accumulate_gradient", .reads = {whole, gradient}, .writes = {whole}});
  } else {
    whole = std::move(gradient);
  }
  gradient = {};
  parameter.met = (parameter.met + 1) % parameter.uses;
  if (parameter.met != 0 || (setup_.zero_stage == 1 && !is_last)) return;
  put(parameter, std::exchange(whole, {}));
}

void DeepspeedZero::put(TrainedParameter& parameter, Tensor gradient) {
  const std::int64_t elements = gradient.elements();
  if (elements > bucket_elements_) {
    reduce(gradient, parameter.share);
    return;
  }
  if (filled_ + elements > bucket_elements_) reduce();
  const std::size_t turns = setup_.overlap_gradients && !splits_gradients() ? 2 : 1;
  while (buckets_.size() < turns)
    buckets_.push_back(session_.empty("gradients.bucket", gradient_type(), bucket_elements_, TensorRole::buffer));
  session_.kernel(
      {.name = "copy_", .reads = {gradient}, .writes = {buckets_[at_]}, .bytes = gradient.bytes() + gradient.bytes()});
  filled_ += elements;
  filled_share_ += parameter.share;
}

void DeepspeedZero::reduce() {
  if (filled_ == 0) return;
  const Tensor whole = temporary("gradients.bucket.flat", gradient_type(), filled_);
  session_.kernel({.name = "cat", .reads = {buckets_[at_]}, .writes = {whole}, .bytes = whole.bytes() + whole.bytes()});
  reduce(whole, filled_share_);
  at_ = (at_ + 1) % buckets_.size();
  filled_ = filled_share_ = 0;
}

void DeepspeedZero::reduce(const Tensor& whole, std::int64_t share) {
  if (!splits_gradients()) {
    communication_.all_reduce(CommGroup::gradient, "all_reduce_gradients", {whole});
    return keep(whole);
  }
  if (communication_.shape(CommGroup::shard).ranks == 1) return keep(whole);
  const Tensor part = temporary("gradients.bucket.share", whole.type(), share);
  communication_.scatter_into(CommGroup::shard, "reduce_scatter_gradients", {whole}, {part}, whole.bytes());
  communication_.all_reduce(CommGroup::copies, "all_reduce_shares", {part});
  keep(part);
}

// What is the rank's own of a reduced bucket. Without overlap the program's stream waits for the reduction here.
void DeepspeedZero::keep(const Tensor& part) {
  Tensor& into = splits_gradients() ? gradients_ : fresh_;
  if (!into) into = session_.empty("gradients.partition", kept_type(), share_ + edge_, TensorRole::gradient);
  const Bytes own(std::min(part.elements(), share_ + edge_) * size_of(part.type()) /
                  (splits_gradients() ? 1 : communication_.shape(CommGroup::shard).ranks));
  session_.kernel({.name = "add_",
                   .reads = {part},
                   .writes = {into},
                   .bytes = own + own + own,
                   .beside = setup_.overlap_gradients});
}

void DeepspeedZero::end_backward(bool is_last) {
  if (setup_.zero_stage == 1 && !is_last) return;
  reduce();
  if (splits_gradients()) return;
  buckets_.clear();
  at_ = 0;
  if (!fresh_) return;
  if (gradients_)
    pass("add_", {gradients_, std::exchange(fresh_, {})}, {gradients_});
  else
    gradients_ = std::exchange(fresh_, {});
}

void DeepspeedZero::look_at_norm() {
  const bool is_fp16 = setup_.precision == TrainingPrecision::fp16_mixed;
  if (is_fp16) {
    const std::int64_t bytes = splits_gradients() ? flat_check_bytes * share_ : check_bytes * largest_;
    pass("has_overflow", {gradients_}, {temporary("optimizer.overflow", DataType::byte, bytes)});
  }
  pass("norm", {gradients_}, {temporary("optimizer.norm", DataType::byte, norm_bytes * largest_)});
}

void DeepspeedZero::update() {
  if (!gradients_) return;
  look_at_norm();
  for (const Group& group : groups_) {
    session_.set_layer(group.parameters.front()->shape.layer);
    step(group);
  }
  session_.set_layer(-1);
  if (!splits_gradients()) gradients_ = {};
  std::vector<TrainedParameter*> all;
  for (const Group& group : groups_) all.insert(all.end(), group.parameters.begin(), group.parameters.end());
  gather_updated_weights(setup_, &communication_, all);
}

void DeepspeedZero::step(const Group& group) {
  std::vector<Tensor> values;
  for (const TrainedParameter* parameter : group.parameters)
    values.push_back(splits_gradients() ? parameter->shard : parameter->value);
  Tensor gradient = temporary("optimizer.grad", kept_type(), group.share);
  session_.kernel(
      {.name = "cat", .reads = {gradients_}, .writes = {gradient}, .bytes = gradient.bytes() + gradient.bytes()});
  if (setup_.has_master_weights() && kept_type() != DataType::fp32) {
    Tensor wide = temporary("optimizer.grad_fp32", DataType::fp32, group.share);
    pass("cast", {gradient}, {wide});
    gradient = std::move(wide);
  }
  adam(group, group.master ? std::vector<Tensor>{group.master} : values, gradient);
  gradient = {};
  if (group.master)
    session_.kernel({.name = "copy_",
                     .reads = {group.master},
                     .writes = values,
                     .cost = {.memory = MemoryKind::optimizer},
                     .bytes = group.master.bytes() + group.master.bytes() / 2});
}

// One kernel, or the passes of PyTorch's foreach implementation with the root of the second moments in between.
void DeepspeedZero::adam(const Group& group, const std::vector<Tensor>& weights, const Tensor& gradient) {
  const Bytes one(group.share * setup_.state_bytes()), weight(group.share * (group.master ? 4 : setup_.weight_bytes()));
  std::vector<Tensor> writes = weights;
  for (const Tensor& state : {group.first_moment, group.second_moment})
    if (state) writes.push_back(state);
  const auto run = [&](const char* name, std::vector<Tensor> reads, std::vector<Tensor> into, Bytes bytes) {
    session_.kernel({.name = name,
                     .reads = std::move(reads),
                     .writes = std::move(into),
                     .cost = {.memory = MemoryKind::optimizer},
                     .bytes = bytes});
  };
  const Bytes moments = one * static_cast<std::int64_t>(writes.size() - weights.size());
  if (setup_.optimizer_form == OptimizerForm::fused || !group.second_moment) {
    writes.push_back(gradient);
    const std::vector<Tensor> reads = writes;
    writes.pop_back();
    return run(group.second_moment ? "fused_adamw" : "fused_sgd", reads, writes,
               gradient.bytes() + (weight + moments) * 2);
  }
  const Tensor &first = group.first_moment, &second = group.second_moment;
  run("foreach_mul_", weights, weights, weight * 2);
  run("foreach_lerp_", {first, gradient}, {first}, one * 2 + gradient.bytes());
  run("foreach_mul_", {second}, {second}, one * 2);
  run("foreach_addcmul_", {second, gradient}, {second}, one * 2 + gradient.bytes());
  const Tensor root = temporary("optimizer.exp_avg_sq_sqrt", second.type(), group.share);
  run("foreach_sqrt", {second}, {root}, one * 2);
  run("foreach_div_", {root}, {root}, one * 2);
  run("foreach_add_", {root}, {root}, one * 2);
  std::vector<Tensor> reads = weights;
  reads.insert(reads.end(), {first, root});
  run("foreach_addcdiv_", reads, weights, one * 2 + weight * 2);
}

}  // namespace spillway::models
