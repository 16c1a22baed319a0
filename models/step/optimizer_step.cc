#include "models/step/optimizer_step.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr std::int64_t chunk_elements = 65'536;
constexpr std::int64_t chunks_per_launch = 320;
constexpr std::array<std::size_t, 5> tensors_per_launch = {110, 64, 48, 36, 30};  // by number of lists

// Moments in a byte or less: elements that share a scale; 0: none.
constexpr std::int64_t smallest_scaled = 4096;
constexpr std::int64_t scaled_block(OptimizerKind kind) {
  return kind == OptimizerKind::adamw_8bit || kind == OptimizerKind::torchao_8bit ? 256
         : kind == OptimizerKind::torchao_4bit                                    ? 128
                                                                                  : 0;
}
constexpr int newton_schulz_steps = 5;

using List = std::vector<Tensor>;
using Group = std::vector<TrainedParameter*>;

List list_of(const Group& group, Tensor TrainedParameter::*member) {
  List list;
  list.reserve(group.size());
  for (const TrainedParameter* parameter : group) list.push_back(parameter->*member);
  return list;
}

List temporaries_like(EagerSession& session, std::string_view name, const Group& group, DataType type) {
  List result;
  result.reserve(group.size());
  for (const TrainedParameter* parameter : group)
    result.push_back(session.empty(name, type, parameter->share, TensorRole::temporary));
  return result;
}

bool is_adam(OptimizerKind kind) { return kind == OptimizerKind::adam || kind == OptimizerKind::adamw; }

// Matrices of a parameter, one for each expert: m no taller than n wide, projected to a width of r.
struct Projection {
  std::int64_t count = 1, m = 1, n = 1, r = 1;
};

Projection projection_of(const Parameter& shape, std::int64_t rank) {
  const std::int64_t count = std::max<std::int64_t>(1, shape.experts), rows = shape.rows / count;
  const std::int64_t m = std::min(rows, shape.columns);
  return {.count = count, .m = m, .n = std::max(rows, shape.columns), .r = std::min(rank, m)};
}

// Of those spread over ranks, or of the rest.
void gather_weights(const TrainingSetup& setup, Communication& communication, const Group& parameters, bool experts) {
  List values;
  Bytes bytes{};
  const CommGroup ranks = experts ? CommGroup::expert_gradient : CommGroup::shard;
  const auto gather = [&] {
    if (!values.empty()) communication.gather_into(ranks, "all_gather_weights", values, values, bytes);
    values.clear();
    bytes = Bytes(0);
  };
  std::int64_t layer = -1;
  for (const TrainedParameter* parameter : parameters) {
    if (parameter->is_expert != experts) continue;
    if (setup.bucket_bytes == whole_layers && parameter->shape.layer != layer) gather();
    layer = parameter->shape.layer;
    values.push_back(parameter->value);
    bytes += parameter->value.bytes();
    if (bytes.count() >= setup.bucket_bytes) gather();
  }
  gather();
}

}  // namespace

void allocate_main_gradient(const TrainingSetup& setup, EagerSession& session, TrainedParameter& parameter,
                            bool shares) {
  if (!setup.has_main_gradients()) return;
  const DataType type = setup.main_gradients == StateType::bf16 ? DataType::bf16 : DataType::fp32;
  parameter.gradient = session.empty(parameter.shape.name + ".grad", type,
                                     shares ? parameter.share : parameter.shape.elements(), TensorRole::gradient);
}

void gather_updated_weights(const TrainingSetup& setup, Communication* communication, const Group& parameters) {
  if (communication == nullptr || (setup.zero_stage != 1 && setup.zero_stage != 2)) return;
  gather_weights(setup, *communication, parameters, false);
  gather_weights(setup, *communication, parameters, true);
}

OptimizerStep::OptimizerStep(const TrainingSetup& setup, EagerSession& session,
                             const std::vector<TrainedParameter*>& parameters, Communication* communication)
    : setup_(setup), session_(session), communication_(communication) {
  const bool one_group = setup.traits().megatron;
  std::array<Group, 2> by_decay;  // transformers' Trainer: matrices, then norms and biases
  const bool shares = setup.zero_stage >= 2 && communication != nullptr;
  std::int64_t layer = -2;
  for (TrainedParameter* const each : parameters) {
    TrainedParameter& parameter = *each;
    session.set_layer(parameter.shape.layer);
    if (parameter.share == 0) parameter.share = parameter.shape.elements();
    allocate_state(parameter);
    allocate_main_gradient(setup, session, parameter, shares);
    if (setup.traits().transformers) {
      by_decay[parameter.shape.columns > 1 ? 0 : 1].push_back(&parameter);
      continue;
    }
    if (groups_.empty() || (!one_group && parameter.shape.layer != layer)) groups_.emplace_back();
    layer = parameter.shape.layer;
    groups_.back().push_back(&parameter);
  }
  for (Group& group : by_decay)
    if (!group.empty()) groups_.push_back(std::move(group));
  session.set_layer(-1);
}

bool OptimizerStep::is_projected(const TrainedParameter& parameter) const {
  return projects_gradients(setup_.optimizer) && parameter.shape.layer >= 0 && parameter.shape.columns > 1;
}

bool OptimizerStep::is_muon(const TrainedParameter& parameter) const {
  return setup_.optimizer == OptimizerKind::muon && parameter.shape.layer >= 0 && parameter.shape.columns > 1;
}

bool OptimizerStep::has_small_state(const TrainedParameter& parameter) const {
  const std::int64_t block = scaled_block(setup_.optimizer);
  if (block == 0 || parameter.share < smallest_scaled) return false;
  if (setup_.optimizer != OptimizerKind::adamw_8bit) return parameter.share % block == 0;
  return !setup_.traits().transformers || parameter.shape.component != Component::embedding;
}

void OptimizerStep::allocate_state(TrainedParameter& parameter) {
  const std::string& name = parameter.shape.name;
  const auto state = [&](const char* part, DataType type, std::int64_t elements) {
    return session_.empty(name + part, type, elements, TensorRole::optimizer_state);
  };
  const bool is_wide = setup_.state_bytes() == 4 || setup_.optimizer == OptimizerKind::adamw_8bit;
  // torch.optim's are as the parameter: beside adapters in fp32 a trained copy has the base's 16 bits.
  const bool is_copy = setup_.has_wide_adapters() && name.find(".lora_") == std::string::npos;
  const bool is_short =
      is_copy && is_adam(setup_.optimizer) && setup_.moments == StateType::usual && setup_.weight_bytes() == 2;
  const DataType usual = is_wide ? DataType::fp32 : setup_.state_bytes() == 2 ? DataType::bf16 : DataType::byte;
  const DataType type = is_short ? DataType::bf16 : usual;
  const std::int64_t share = parameter.share;
  if (parameter.gathered_type) {
    parameter.master = parameter.shard;
  } else if (setup_.has_master_weights()) {
    const DataType master = setup_.master_remainders ? DataType::bf16 : DataType::fp32;
    parameter.master = state(".master", master, share);
  }
  const bool factors = setup_.optimizer == OptimizerKind::adafactor || setup_.optimizer == OptimizerKind::adalomo;
  if (setup_.optimizer == OptimizerKind::sgd || setup_.optimizer == OptimizerKind::lomo) return;
  if (is_projected(parameter)) {
    const auto [count, m, n, r] = projection_of(parameter.shape, setup_.optimizer_rank);
    parameter.first_moment = state(".exp_avg", type, count * r * n);
    parameter.second_moment = state(".exp_avg_sq", type, count * r * n);
    if (setup_.optimizer == OptimizerKind::galore_adamw)
      parameter.first_scale = state(".projection", type, count * r * m);
  } else if (setup_.optimizer == OptimizerKind::sgd_momentum || is_muon(parameter)) {
    parameter.first_moment = state(".momentum", type, share);
  } else if (factors && parameter.shape.columns > 1) {
    const DataType wide = setup_.updates_in_backward() ? DataType::fp32 : type;
    parameter.first_moment =
        state(".row_factors", wide, setup_.optimizer_share(parameter.shape.rows, parameter.is_expert));
    parameter.second_moment = state(".column_factors", wide, parameter.shape.columns);
  } else if (has_small_state(parameter)) {
    const std::int64_t blocks = (share - 1) / scaled_block(setup_.optimizer) + 1;
    const std::int64_t bytes = setup_.optimizer == OptimizerKind::torchao_4bit ? (share + 1) / 2 : share;
    parameter.first_moment = state(".exp_avg", DataType::byte, bytes);
    parameter.second_moment = state(".exp_avg_sq", DataType::byte, bytes);
    parameter.first_scale = state(".exp_avg.scale", DataType::fp32, blocks);
    parameter.second_scale = state(".exp_avg_sq.scale", DataType::fp32, blocks);
  } else {
    if (!factors) parameter.first_moment = state(".exp_avg", type, share);
    const bool wide = setup_.updates_in_backward();
    parameter.second_moment = state(".exp_avg_sq", wide ? DataType::fp32 : type, share);
  }
}

void OptimizerStep::run() {
  if (setup_.updates_in_backward()) return;
  next_matrix_ = {};
  if (setup_.traits().megatron) prepare_gradients(groups_.empty() ? Group() : groups_.front());
  for (const Group& group : groups_) {
    session_.set_layer(group.front()->shape.layer);
    update(group);
  }
  wide_gradients_.clear();
  Group all;
  for (const Group& group : groups_) all.insert(all.end(), group.begin(), group.end());
  gather_updated_weights(setup_, communication_, all);
  for (const Group& group : groups_) give_back(group);
  session_.set_layer(-1);
}

// Megatron-LM: gradients to fp32 where they aren't; in fp16, their scale is taken off while looking for infinities;
// then clip_grad_norm: a norm over all ranks of the model, and one scaling of every gradient. Without a barrier the
// stages' norms are looked at later, and a step that should have been clipped is taken back (Qi et al. 2024, section
// 4).
void OptimizerStep::prepare_gradients(const Group& all) {
  List gradients = list_of(all, &TrainedParameter::gradient);
  if (setup_.has_master_weights() && !setup_.has_main_gradients()) {
    wide_gradients_ = temporaries_like(session_, "optimizer.grad_fp32", all, DataType::fp32);
    foreach_kernel("foreach_copy_", all, {gradients}, {wide_gradients_});
    gradients = wide_gradients_;
  }
  if (setup_.precision == TrainingPrecision::fp16_mixed)
    foreach_kernel("foreach_unscale_", all, {gradients}, {gradients});
  const Tensor norm = session_.empty("optimizer.norm", DataType::fp32, 1, TensorRole::temporary);
  foreach_kernel("foreach_norm", all, {gradients}, {List(gradients.size(), norm)});
  std::vector<Tensor> met;  // the slowest stage's norm as well
  if (communication_ != nullptr) {
    communication_->all_reduce(CommGroup::tensor, "all_reduce", {norm});
    std::vector<std::int64_t> stages(static_cast<std::size_t>(communication_->layout().stages()));
    std::iota(stages.begin(), stages.end(), std::int64_t{0});
    if (setup_.step_barrier && stages.size() > 1) {
      communication_->all_reduce_stages("all_reduce", {norm}, stages);
      met = {norm};
    }
  }
  foreach_kernel("foreach_mul_", all, {gradients}, {gradients}, met);
}

void OptimizerStep::give_back(const Group& group) {
  if (setup_.has_main_gradients()) {
    session_.set_layer(group.front()->shape.layer);
    foreach_kernel("foreach_zero_", group, {}, {list_of(group, &TrainedParameter::gradient)});
    return;
  }
  for (TrainedParameter* parameter : group) parameter->gradient = {};
}

List OptimizerStep::weights_of(const Group& group) const {
  return list_of(group, setup_.zero_stage == 3 ? &TrainedParameter::shard : &TrainedParameter::value);
}

void OptimizerStep::update(const Group& group) {
  const bool mixed = setup_.has_master_weights();
  const bool in_one = setup_.optimizer_form == OptimizerForm::fused || setup_.traits().megatron;
  const bool fuses = in_one && (is_adam(setup_.optimizer) || setup_.optimizer == OptimizerKind::sgd ||
                                setup_.optimizer == OptimizerKind::sgd_momentum);
  const List values = weights_of(group);
  const List weights = mixed ? list_of(group, &TrainedParameter::master) : values;
  List gradients = wide_gradients_.empty() ? list_of(group, &TrainedParameter::gradient) : wide_gradients_;
  if (fuses) {
    const bool copies = mixed && setup_.traits().pytorch && !has_wide_shard(group);
    fused(group, weights, gradients, copies);
    if (mixed && !copies) copy_back(group);
    return;
  }
  if (gradients.front().type() != DataType::fp32 && mixed && !setup_.has_main_gradients() && wide_gradients_.empty()) {
    List wide = temporaries_like(session_, "optimizer.grad_fp32", group, DataType::fp32);
    foreach_kernel("foreach_copy_", group, {gradients}, {wide});
    gradients = std::move(wide);
  }
  update_moments(group, weights, gradients);
  if (mixed) copy_back(group);
}

bool OptimizerStep::has_wide_shard(const Group& group) {
  return std::any_of(group.begin(), group.end(), [](const auto* parameter) { return parameter->gathered_type; });
}

// From master weights to those in 16 bits, where there are both.
void OptimizerStep::copy_back(const Group& group) {
  Group both;
  std::copy_if(group.begin(), group.end(), std::back_inserter(both),
               [](const TrainedParameter* parameter) { return !parameter->gathered_type; });
  if (!both.empty())
    foreach_kernel("foreach_copy_", both, {list_of(both, &TrainedParameter::master)}, {weights_of(both)});
}

void OptimizerStep::fused(const Group& group, const List& weights, const List& gradients, bool copies) {
  Lists reads = {weights, gradients}, writes = {weights};
  if (copies) writes.push_back(weights_of(group));
  const auto add_state = [&](Tensor TrainedParameter::*member) {
    for (Lists* lists : {&reads, &writes}) lists->push_back(list_of(group, member));
  };
  if (setup_.optimizer != OptimizerKind::sgd) add_state(&TrainedParameter::first_moment);
  if (is_adam(setup_.optimizer)) add_state(&TrainedParameter::second_moment);
  foreach_kernel(setup_.optimizer == OptimizerKind::adamw  ? "fused_adamw"
                 : setup_.optimizer == OptimizerKind::adam ? "fused_adam"
                                                           : "fused_sgd",
                 group, reads, writes);
}

void OptimizerStep::update_moments(const Group& group, const List& weights, const List& gradients) {
  switch (setup_.optimizer) {
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return adam_foreach(group, weights, gradients);
    case OptimizerKind::sgd:
    case OptimizerKind::lomo:
      return foreach_kernel("foreach_add_", group, {weights, gradients}, {weights});
    case OptimizerKind::sgd_momentum: {
      const List momentum = list_of(group, &TrainedParameter::first_moment);
      foreach_kernel("foreach_mul_", group, {momentum}, {momentum});
      foreach_kernel("foreach_add_", group, {momentum, gradients}, {momentum});
      return foreach_kernel("foreach_add_", group, {weights, momentum}, {weights});
    }
    case OptimizerKind::adafactor:
    case OptimizerKind::adalomo:
      return adafactor(group, weights, gradients);
    case OptimizerKind::adamw_8bit:
    case OptimizerKind::torchao_8bit:
    case OptimizerKind::torchao_4bit:
      return narrow_adamw(group, weights, gradients);
    case OptimizerKind::galore_adamw:
    case OptimizerKind::apollo_adamw:
      return projected_adamw(group, weights, gradients);
    case OptimizerKind::muon:
      return muon(group, weights, gradients);
  }
}

// In the order of PyTorch's _multi_tensor_adamw without amsgrad; the step counters live on the host.
void OptimizerStep::adam_foreach(const Group& group, const List& weights, const List& gradients) {
  const List first = list_of(group, &TrainedParameter::first_moment);
  const List second = list_of(group, &TrainedParameter::second_moment);
  if (setup_.optimizer == OptimizerKind::adam)  // weight decay
    foreach_kernel("foreach_add_", group, {gradients, weights}, {gradients});
  else
    foreach_kernel("foreach_mul_", group, {weights}, {weights});
  foreach_kernel("foreach_lerp_", group, {first, gradients}, {first});
  foreach_kernel("foreach_mul_", group, {second}, {second});
  foreach_kernel("foreach_addcmul_", group, {second, gradients}, {second});
  const List root = temporaries_like(session_, "optimizer.exp_avg_sq_sqrt", group, second.front().type());
  foreach_kernel("foreach_sqrt", group, {second}, {root});
  foreach_kernel("foreach_div_", group, {root}, {root});  // bias correction
  foreach_kernel("foreach_add_", group, {root}, {root});  // epsilon
  foreach_kernel("foreach_addcdiv_", group, {weights, first, root}, {weights});
}

// One parameter after the other: the squared gradient's row and column means, their outer product as the scale.
void OptimizerStep::adafactor(const Group& group, const List& weights, const List& gradients) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const TrainedParameter& parameter = *group[i];
    const Tensor update = session_.empty("optimizer.update", DataType::fp32, parameter.share, TensorRole::temporary);
    const auto pass = [&](const char* name, const Tensor& from, const Tensor& to) {
      foreach_kernel(name, {group[i]}, {{from}}, {{to}});
    };
    pass("square", gradients[i], update);
    if (parameter.first_moment) {
      pass("row_mean", update, parameter.first_moment);
      pass("column_mean", update, parameter.second_moment);
      pass("outer_rsqrt", parameter.first_moment, update);
    } else {
      pass("lerp_", update, parameter.second_moment);
      pass("rsqrt", parameter.second_moment, update);
    }
    pass("multiply_", gradients[i], update);
    pass("scale_by_rms_", update, update);
    pass("add_", update, weights[i]);
  }
}

void OptimizerStep::narrow_adamw(const Group& group, const List& weights, const List& gradients) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const TrainedParameter& parameter = *group[i];
    Lists reads = {{weights[i]}, {gradients[i]}}, writes = {{weights[i]}};
    for (const Tensor& state :
         {parameter.first_moment, parameter.second_moment, parameter.first_scale, parameter.second_scale})
      if (state) reads.push_back({state}), writes.push_back({state});
    const bool in_four = setup_.optimizer == OptimizerKind::torchao_4bit;
    foreach_kernel(!has_small_state(parameter) ? "adamw_32bit"
                   : in_four                   ? "adamw_4bit_blockwise"
                                               : "adamw_8bit_blockwise",
                   {group[i]}, reads, writes);
  }
}

// Matrices one after the other, then the rest as AdamW has it.
void OptimizerStep::projected_adamw(const Group& group, const List& weights, const List& gradients) {
  Group rest;
  List rest_weights, rest_gradients;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (is_projected(*group[i])) {
      project(*group[i], weights[i], gradients[i]);
      continue;
    }
    rest.push_back(group[i]);
    rest_weights.push_back(weights[i]);
    rest_gradients.push_back(gradients[i]);
  }
  if (!rest.empty()) adam_foreach(rest, rest_weights, rest_gradients);
}

void OptimizerStep::project(TrainedParameter& parameter, const Tensor& weight, const Tensor& gradient) {
  const auto [count, m, n, r] = projection_of(parameter.shape, setup_.optimizer_rank);
  const DataType type = gradient.type();
  const auto temporary = [this](const char* name, DataType of, std::int64_t elements) {
    return session_.empty(name, of, elements, TensorRole::temporary);
  };
  const bool is_random = setup_.optimizer == OptimizerKind::apollo_adamw;
  Tensor projection = parameter.first_scale;
  if (is_random) {
    projection = temporary("optimizer.projection", type, count * r * m);
    session_.kernel({.name = "random_projection", .writes = {projection}});
  } else {
    List held;  // of one matrix at a time
    for (const std::int64_t elements : {type == DataType::fp32 ? 0 : m * n, m * m, m * n})
      if (elements > 0) held.push_back(temporary("optimizer.svd", DataType::fp32, elements));
    held.push_back(projection);
    session_.kernel({.name = "svd", .reads = {gradient}, .writes = held, .bytes = Bytes(0)});
  }
  const Tensor narrow = temporary("optimizer.low_rank", type, count * r * n);
  product("gemm_project", type, {.m = r, .n = n, .k = m, .batch = count}, {projection, gradient}, narrow);
  const Tensor &first = parameter.first_moment, &second = parameter.second_moment;
  session_.kernel({.name = "low_rank_adamw",
                   .reads = {narrow, first, second},
                   .writes = {narrow, first, second},
                   .cost = {.memory = MemoryKind::optimizer}});
  const Tensor update = temporary("optimizer.update", type, count * m * n);
  if (is_random)
    foreach_kernel("scale_channels", {&parameter}, {{gradient}}, {{update}});
  else
    product("gemm_project_back", type, {.m = m, .n = n, .k = r, .batch = count}, {projection, narrow}, update);
  foreach_kernel("add_", {&parameter}, {{weight}, {update}}, {{weight}});
}

// As LOMO's hooks do it: weight and gradient in fp32 for as long as it takes.
void OptimizerStep::update_now(TrainedParameter& parameter) {
  const Group one = {&parameter};
  List weights = temporaries_like(session_, "optimizer.weight_fp32", one, DataType::fp32);
  List gradients = temporaries_like(session_, "optimizer.grad_fp32", one, DataType::fp32);
  foreach_kernel("copy_", one, {{parameter.gradient}}, {gradients});
  foreach_kernel("copy_", one, {{parameter.value}}, {weights});
  parameter.gradient = {};
  update_moments(one, weights, gradients);
  foreach_kernel("copy_", one, {weights}, {{parameter.value}});
}

void OptimizerStep::muon(const Group& group, const List& weights, const List& gradients) {
  Group rest;
  List rest_weights, rest_gradients;
  for (std::size_t i = 0; i < group.size(); ++i) {
    TrainedParameter& parameter = *group[i];
    if (!is_muon(parameter)) {
      rest.push_back(&parameter);
      rest_weights.push_back(weights[i]);
      rest_gradients.push_back(gradients[i]);
      continue;
    }
    const Tensor& momentum = parameter.first_moment;
    foreach_kernel("lerp_", {&parameter}, {{momentum}, {gradients[i]}}, {{momentum}});
    const std::int64_t matrices = std::max<std::int64_t>(1, parameter.shape.experts);
    std::int64_t& next = next_matrix_[parameter.is_expert ? 1 : 0];
    const std::int64_t ranks = setup_.optimizer_ranks(parameter.is_expert);
    const std::int64_t before = (next + ranks - 1) / ranks, owned = (next + matrices + ranks - 1) / ranks - before;
    next += matrices;
    Tensor update = session_.empty("optimizer.update", DataType::bf16, parameter.share, TensorRole::temporary);
    foreach_kernel("nesterov", {&parameter}, {{momentum}, {gradients[i]}}, {{update}});
    const bool exchanges = setup_.zero_stage >= 2 && communication_ != nullptr && ranks > 1;
    const auto exchange = [&](const char* name) {
      const CommGroup group = parameter.is_expert ? CommGroup::expert_gradient : CommGroup::shard;
      update = communication_->all_to_all(group, name, update, TensorRole::temporary);
    };
    if (exchanges) exchange("optimizer.matrices");
    foreach_kernel("normalise_", {&parameter}, {{update}}, {{update}});
    if (owned > 0) {
      const std::int64_t elements = owned * (parameter.shape.elements() / matrices);
      const Tensor matrix =
          ranks == 1 ? update : session_.empty("optimizer.matrix", DataType::bf16, elements, TensorRole::temporary);
      newton_schulz(parameter.shape, owned, matrix);
    }
    if (exchanges) exchange("optimizer.updates");
    foreach_kernel("add_", {&parameter}, {{weights[i]}, {update}}, {{weights[i]}});
  }
  if (!rest.empty()) adam_foreach(rest, rest_weights, rest_gradients);
}

// X <- a X + (b A + c A A) X with A = X X^T, X no taller than wide; the matrices of experts in one batch.
void OptimizerStep::newton_schulz(const Parameter& shape, std::int64_t count, const Tensor& matrix) {
  const auto [_, m, n, rank] = projection_of(shape, 0);
  const Tensor square = session_.empty(shape.name + ".gram", DataType::bf16, count * m * m, TensorRole::temporary);
  const Tensor polynomial =
      session_.empty(shape.name + ".polynomial", DataType::bf16, count * m * m, TensorRole::temporary);
  const auto step_product = [&](const GemmShape& product_shape, const List& reads, const Tensor& write) {
    product("gemm_newton_schulz", DataType::bf16, product_shape, reads, write);
  };
  for (int step = 0; step < newton_schulz_steps; ++step) {
    step_product({.m = m, .n = m, .k = n, .batch = count}, {matrix}, square);
    step_product({.m = m, .n = m, .k = m, .batch = count}, {square}, polynomial);
    step_product({.m = m, .n = n, .k = m, .batch = count}, {polynomial, matrix}, matrix);
  }
}

void OptimizerStep::product(std::string_view name, DataType type, const GemmShape& shape, const List& reads,
                            const Tensor& write) {
  session_.kernel({.name = name,
                   .reads = reads,
                   .writes = {write},
                   .cost = {.kind = KernelClass::gemm,
                            .type = type,
                            .gemm = shape,
                            .flops = Flops(2 * shape.m * shape.n * shape.k * shape.batch)}});
}

void OptimizerStep::foreach_kernel(std::string_view name, const Group& group, const Lists& reads, const Lists& writes,
                                   const std::vector<Tensor>& after) {
  const std::size_t lists =
      std::clamp<std::size_t>(std::max(reads.size(), writes.size()), 1, tensors_per_launch.size());
  const std::size_t most_tensors = tensors_per_launch[lists - 1];
  Kernel kernel{.name = name, .reads = after, .cost = {.memory = MemoryKind::optimizer}, .bytes = Bytes(0)};
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
  const auto take = [&](const Lists& from, std::vector<Tensor>& into, std::size_t i, std::int64_t elements) {
    for (const List& list : from) {
      into.push_back(list[i]);
      const bool is_in_halves = list[i].type() == DataType::byte && list[i].elements() < group[i]->share;  // of a byte
      const std::int64_t of_it = is_in_halves ? (elements + 1) / 2 : std::min(elements, list[i].elements());
      *kernel.bytes += Bytes(bytes_of(list[i].type(), of_it));
    }
  };
  for (std::size_t i = 0; i < group.size(); ++i) {
    // Gradients are cleared whole, whatever part of them this rank worked on.
    std::int64_t left = reads.empty() ? writes.front()[i].elements() : group[i]->share;
    while (left > 0) {
      const std::int64_t elements = std::min(left, (chunks_per_launch - chunks) * chunk_elements);
      take(reads, kernel.reads, i, elements);
      take(writes, kernel.writes, i, elements);
      left -= elements;
      chunks += (elements + chunk_elements - 1) / chunk_elements;
      if (++tensors == most_tensors || chunks == chunks_per_launch) launch();
    }
  }
  launch();
}

}  // namespace spillway::models
