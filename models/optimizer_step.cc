#include "models/optimizer_step.h"

#include <algorithm>
#include <array>
#include <utility>

#include "traces/base/input_error.h"

namespace spillway {
namespace {

constexpr std::int64_t chunk_elements = 65'536;
constexpr std::int64_t chunks_per_launch = 320;
constexpr std::array<std::size_t, 5> tensors_per_launch = {110, 64, 48, 36, 30};  // by number of lists

std::vector<Tensor> list_of(const std::vector<TrainedParameter*>& group, Tensor TrainedParameter::*member) {
  std::vector<Tensor> list;
  list.reserve(group.size());
  for (const TrainedParameter* parameter : group) list.push_back(parameter->*member);
  return list;
}

std::vector<Tensor> temporaries_like(EagerSession& session, std::string_view name, const std::vector<Tensor>& list,
                                     DataType type) {
  std::vector<Tensor> result;
  result.reserve(list.size());
  for (const Tensor& tensor : list)
    result.push_back(session.empty(name, type, tensor.elements(), TensorRole::temporary));
  return result;
}

}  // namespace

OptimizerStep::OptimizerStep(const TrainingSetup& setup, EagerSession& session,
                             std::deque<TrainedParameter>& parameters)
    : setup_(setup), session_(session) {
  const DataType state = setup.precision == TrainingPrecision::bf16 ? DataType::bf16 : DataType::fp32;
  std::int64_t layer = -2;
  for (TrainedParameter& parameter : parameters) {
    const std::string& name = parameter.shape.name;
    const std::int64_t elements = parameter.shape.elements();
    session.set_layer(parameter.shape.layer);
    if (setup.precision == TrainingPrecision::bf16_mixed)
      parameter.master = session.empty(name + ".master", DataType::fp32, elements, TensorRole::optimizer_state);
    if (setup.optimizer == OptimizerKind::adamw) {
      parameter.first_moment = session.empty(name + ".exp_avg", state, elements, TensorRole::optimizer_state);
      parameter.second_moment = session.empty(name + ".exp_avg_sq", state, elements, TensorRole::optimizer_state);
    }
    if (setup.fp32_gradients)
      parameter.gradient = session.empty(name + ".grad", DataType::fp32, elements, TensorRole::gradient);
    if (parameter.shape.layer != layer) groups_.emplace_back();
    layer = parameter.shape.layer;
    groups_.back().push_back(&parameter);
  }
  session.set_layer(-1);
}

void OptimizerStep::run() {
  for (const Group& group : groups_) {
    session_.set_layer(group.front()->shape.layer);
    update(group);
  }
  for (const Group& group : groups_) {
    if (setup_.fp32_gradients) {
      session_.set_layer(group.front()->shape.layer);
      foreach_kernel("foreach_zero_", {}, {list_of(group, &TrainedParameter::gradient)});
      continue;
    }
    for (TrainedParameter* parameter : group) parameter->gradient = {};
  }
  session_.set_layer(-1);
}

void OptimizerStep::update(const Group& group) {
  const bool mixed = setup_.precision == TrainingPrecision::bf16_mixed;
  const List values = list_of(group, &TrainedParameter::value);
  const List weights = mixed ? list_of(group, &TrainedParameter::master) : values;
  const List first = list_of(group, &TrainedParameter::first_moment);
  const List second = list_of(group, &TrainedParameter::second_moment);
  List gradients = list_of(group, &TrainedParameter::gradient);
  const bool adamw = setup_.optimizer == OptimizerKind::adamw;
  if (setup_.optimizer_form == OptimizerForm::fused) {
    Lists reads = {weights, gradients}, writes = {weights};
    if (mixed) writes.push_back(values);
    if (adamw) {
      for (Lists* lists : {&reads, &writes}) lists->insert(lists->end(), {first, second});
    }
    foreach_kernel(adamw ? "fused_adamw" : "fused_sgd", reads, writes);
    return;
  }
  if (mixed && !setup_.fp32_gradients) {
    List wide = temporaries_like(session_, "optimizer.grad_fp32", gradients, DataType::fp32);
    foreach_kernel("foreach_copy_", {gradients}, {wide});
    gradients = std::move(wide);
  }
  if (adamw) {
    adamw_foreach(weights, gradients, first, second);
  } else {
    foreach_kernel("foreach_add_", {weights, gradients}, {weights});
  }
  if (mixed) foreach_kernel("foreach_copy_", {weights}, {values});
}

// In the order of PyTorch's _multi_tensor_adamw without amsgrad; the step counters live on the host.
void OptimizerStep::adamw_foreach(const List& weights, const List& gradients, const List& first, const List& second) {
  foreach_kernel("foreach_mul_", {weights}, {weights});  // weight decay
  foreach_kernel("foreach_lerp_", {first, gradients}, {first});
  foreach_kernel("foreach_mul_", {second}, {second});
  foreach_kernel("foreach_addcmul_", {second, gradients}, {second});
  const List root = temporaries_like(session_, "optimizer.exp_avg_sq_sqrt", second, second.front().type());
  foreach_kernel("foreach_sqrt", {second}, {root});
  foreach_kernel("foreach_div_", {root}, {root});  // bias correction
  foreach_kernel("foreach_add_", {root}, {root});  // epsilon
  foreach_kernel("foreach_addcdiv_", {weights, first, root}, {weights});
}

void OptimizerStep::foreach_kernel(std::string_view name, const Lists& reads, const Lists& writes) {
  const std::size_t count = writes.front().size();
  const std::size_t lists =
      std::clamp<std::size_t>(std::max(reads.size(), writes.size()), 1, tensors_per_launch.size());
  const std::size_t most_tensors = tensors_per_launch[lists - 1];
  Kernel kernel{.name = name, .bytes = Bytes(0)};
  std::int64_t chunks = 0;
  std::size_t tensors = 0;
  const auto launch = [&] {
    if (tensors == 0) return;
    session_.kernel(kernel);
    kernel.reads.clear();
    kernel.writes.clear();
    kernel.bytes = Bytes(0);
    chunks = 0;
    tensors = 0;
  };
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t left = writes.front()[i].elements();
    while (left > 0) {
      const std::int64_t elements = std::min(left, (chunks_per_launch - chunks) * chunk_elements);
      for (const List& list : reads) {
        kernel.reads.push_back(list[i]);
        *kernel.bytes += Bytes(elements * size_of(list[i].type()));
      }
      for (const List& list : writes) {
        kernel.writes.push_back(list[i]);
        *kernel.bytes += Bytes(elements * size_of(list[i].type()));
      }
      left -= elements;
      chunks += (elements + chunk_elements - 1) / chunk_elements;
      if (++tensors == most_tensors || chunks == chunks_per_launch) launch();
    }
  }
  launch();
}

}  // namespace spillway
