#include "models/step/weight_gatherer.h"

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

WeightGatherer::WeightGatherer(const TrainingSetup& setup, EagerSession& session, Communication& communication,
                               std::deque<TrainedParameter>& parameters, bool evaluates)
    : setup_(setup),
      session_(session),
      communication_(communication),
      evaluates_(evaluates),
      by_module_(setup.traits().deepspeed) {
  for (TrainedParameter& parameter : parameters) {
    const std::int64_t layer = parameter.shape.layer;
    if (!by_module_) {
      units_[layer].push_back(&parameter);
      continue;
    }
    hooks_[layer] += std::max<std::int64_t>(1, parameter.shape.experts);
    const std::string& name = parameter.shape.name;
    const bool is_behind = layer == -1 && (name.starts_with("head.") || name.starts_with("final_norm."));
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
    if (parameter->shape.layer != -1 || goes_after_use(*parameter)) parameter->value = {};
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
  if (evaluates_) return false;
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
    if (layer == -1 && has(behind_layers)) release(units_[behind_layers]);  // of the evaluation's batch before
    if (layer >= 0 && has(-1)) release(units_[-1]);
    gather(layer);
    return gather_ahead(units_.upper_bound(layer), units_.end());
  }
  gather(layer);
  if (layer == -1) return;
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
  const bool of_tower = layer < -1;
  const std::int64_t reached = of_tower ? std::numeric_limits<std::int64_t>::min() : setup_.frozen_layers;
  const std::int64_t lowest = std::max(layer - setup_.prefetch, reached);
  if (by_module_) {
    const auto unit = units_.find(layer), end = units_.lower_bound(reached);
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
