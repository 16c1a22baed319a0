#include "models/step/host_optimizer.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/step/optimizer_step.h"

namespace spillway::models {
namespace {

constexpr std::size_t state_buffers = 3, weight_buffers = 2;
constexpr std::size_t most_copies = 2, most_writes = 4;  // of gradients in flight

// Bytes a second of Adam's passes: one thread (0.90e9 parameters of Falcon-7B on each of 8 A100 by accelerate, which
// gives a process one: 7.65 s; deepspeedai/DeepSpeed issue 3901), and one process of DeepSpeed's, however many threads
// it has (Qwen2.5-1.5B and 3B on two A100 with 64 each: 30 and 33 GB/s; DeepSpeed's ZenFlow core-binding post).
constexpr double thread_rate = 5.2e9, deepspeed_rate = 33e9;

}  // namespace

HostOptimizer::HostOptimizer(const TrainingSetup& setup, EagerSession& session,
                             const std::vector<TrainedParameter*>& parameters, Communication* communication,
                             std::int64_t sharers)
    : setup_(setup), session_(session), communication_(communication), sharers_(sharers), parameters_(parameters) {
  const bool shares = setup.zero_stage >= 2 && communication != nullptr;
  for (TrainedParameter* const each : parameters) {
    TrainedParameter& parameter = *each;
    session.set_layer(parameter.shape.layer);
    if (parameter.share == 0) parameter.share = parameter.shape.elements();
    allocate_main_gradient(setup, session, parameter, shares);
    if (groups_.empty() || groups_.back().layer != parameter.shape.layer)
      groups_.emplace_back().layer = parameter.shape.layer;
    parameter.host_group = groups_.size() - 1;
    groups_.back().parameters.push_back(&parameter);
    groups_.back().elements += parameter.share;
  }
  for (Group& group : groups_) allocate(group);
  allocate_buffers();
  session.set_layer(-1);
}

void HostOptimizer::allocate(Group& group) {
  if (setup_.optimizer_device == StateDevice::drives) return;
  session_.set_layer(group.layer);
  const std::string name = "host.layers." + std::to_string(group.layer);
  const auto on_host = [&](const char* part, DataType type, TensorRole role) {
    return session_.empty(name + part, type, group.elements, role, TensorPlace::host);
  };
  const DataType state = type_of_bytes(setup_.state_bytes()), gradient = type_of_bytes(setup_.gradient_bytes());
  group.master = on_host(".master", setup_.has_master_weights() ? DataType::fp32 : state, TensorRole::optimizer_state);
  group.first_moment = on_host(".exp_avg", state, TensorRole::optimizer_state);
  group.second_moment = on_host(".exp_avg_sq", state, TensorRole::optimizer_state);
  group.gradient = on_host(".grad", gradient, TensorRole::gradient);
  if (setup_.traits().deepspeed && setup_.has_master_weights()) {
    group.wide_gradient = on_host(".grad_fp32", DataType::fp32, TensorRole::gradient);
    if (setup_.zero_stage < 3)
      group.weights = on_host(".weights", type_of_bytes(setup_.trained_weight_bytes()), TensorRole::buffer);
  }
  if (!setup_.delayed_update) return;
  group.last_gradient = on_host(".last_grad", gradient, TensorRole::gradient);
  if (setup_.has_master_weights() && !group.weights)
    group.weights = on_host(".weights", type_of_bytes(setup_.trained_weight_bytes()), TensorRole::buffer);
}

void HostOptimizer::allocate_buffers() {
  std::int64_t largest = 1;
  for (const Group& group : groups_) largest = std::max(largest, group.elements);
  const auto add = [&](std::vector<Tensor>& buffers, std::size_t count, const char* name, std::int64_t bytes) {
    for (std::size_t i = 0; i < count; ++i)
      buffers.push_back(session_.empty(name, DataType::byte, largest * bytes, TensorRole::buffer, TensorPlace::host));
  };
  if (setup_.optimizer_device == StateDevice::drives)
    add(state_buffers_, state_buffers, "host.state_buffer", state_bytes() + size_of(DataType::fp32));
  const bool weights_pass = setup_.has_master_weights() && setup_.weight_device != StateDevice::cpu;
  if (weights_pass && !setup_.delayed_update)
    add(weight_buffers_, weight_buffers, "host.weight_buffer", setup_.trained_weight_bytes());
}

std::int64_t HostOptimizer::state_bytes() const {
  const std::int64_t master = setup_.has_master_weights() ? size_of(DataType::fp32) : setup_.state_bytes();
  return master + 2 * setup_.state_bytes();
}

double HostOptimizer::most_rate() const {
  const double process = setup_.traits().deepspeed ? deepspeed_rate : std::numeric_limits<double>::infinity();
  return setup_.host_threads == 0 ? process : std::min(process, thread_rate * static_cast<double>(setup_.host_threads));
}

Bytes HostOptimizer::adam_bytes(const Group& group) const {
  const bool on_drives = setup_.optimizer_device == StateDevice::drives;
  const std::int64_t gradient = on_drives ? size_of(DataType::fp32) : setup_.gradient_bytes();
  const std::int64_t narrow = setup_.has_master_weights() ? setup_.trained_weight_bytes() : 0;
  if (group.wide_gradient)  // cast and scaled; Adam; cast back and copied out
    return Bytes(group.elements * (gradient + 3 * size_of(DataType::fp32) + 2 * state_bytes() + 3 * narrow));
  return Bytes(group.elements * (gradient + 2 * state_bytes() + narrow));
}

void HostOptimizer::take(const std::vector<TrainedParameter*>& bucket) {
  const bool on_drives = setup_.optimizer_device == StateDevice::drives;
  Transfer out{.name = "gradients_to_host", .kind = OpKind::copy_device_to_host, .lane = "gradients to host"};
  std::int64_t elements = 0;
  for (TrainedParameter* parameter : bucket) {
    out.reads.push_back(parameter->gradient);
    out.bytes += Bytes(parameter->share * size_of(parameter->gradient.type()));
    elements += parameter->share;
    const Tensor& on_host = groups_[parameter->host_group].gradient;
    const auto same = [&](const Tensor& tensor) { return tensor.id() == on_host.id(); };
    if (!on_drives && std::none_of(out.writes.begin(), out.writes.end(), same)) out.writes.push_back(on_host);
    parameter->is_gradient_on_host = true;
    if (!setup_.has_main_gradients()) parameter->gradient = {};
  }
  const auto make_room = [this](std::deque<InFlight>& queue, std::size_t most) {
    if (queue.size() < most) return;
    session_.host_wait({queue.front().op});
    queue.pop_front();
  };
  make_room(copies_, most_copies);
  if (on_drives) {
    make_room(writes_, most_writes);
    out.writes = {
        session_.empty("host.grad_buffer", DataType::fp32, elements, TensorRole::gradient, TensorPlace::host)};
  }
  last_copy_ = session_.transfer(out);
  copies_.push_back({last_copy_, std::move(out.reads)});
  if (!on_drives) return;
  last_write_ = session_.transfer({.name = "gradients_to_drives",
                                   .kind = OpKind::storage_write,
                                   .lane = "host to drives",
                                   .at_device = false,
                                   .bytes = out.writes.front().bytes(),
                                   .reads = out.writes});
  writes_.push_back({last_write_, std::move(out.writes)});
}

void HostOptimizer::take_rest() {
  std::vector<TrainedParameter*> bucket;
  std::int64_t bytes = 0;
  const auto leave = [&] {
    if (!bucket.empty()) take(bucket);
    bucket.clear();
    bytes = 0;
  };
  for (auto parameter = parameters_.rbegin(); parameter != parameters_.rend(); ++parameter) {
    if (!(*parameter)->gradient || (*parameter)->is_gradient_on_host) continue;
    bucket.push_back(*parameter);
    bytes += (*parameter)->gradient.bytes().count();
    if (bytes >= setup_.bucket_bytes) leave();
  }
  leave();
}

void HostOptimizer::forget() {
  copies_.clear();
  writes_.clear();
  await_last();
}

void HostOptimizer::await_last() {
  for (OpId* last : {&last_copy_, &last_write_}) {
    if (*last != OpId::none) awaited_.push_back(*last);
    *last = OpId::none;
  }
}

OpId HostOptimizer::run() {
  take_rest();
  await_last();
  session_.host_wait(awaited_);
  awaited_.clear();
  copies_.clear();
  writes_.clear();
  OpId last = OpId::none;
  if (setup_.delayed_update)
    update_delayed();
  else
    last = update_now();
  session_.set_layer(-1);
  gather_updated_weights(setup_, communication_, parameters_);
  if (setup_.has_main_gradients()) zero_gradients();
  for (TrainedParameter* parameter : parameters_) parameter->is_gradient_on_host = false;
  return last;
}

// Reads are asked for two groups ahead; the buffers hold them back.
OpId HostOptimizer::update_now() {
  OpId last = OpId::none;
  const bool on_drives = setup_.optimizer_device == StateDevice::drives;
  for (std::size_t g = 0; on_drives && g + 1 < std::min(state_buffers, groups_.size() + 1); ++g) read_states(g);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    session_.set_layer(group.layer);
    if (on_drives && g + state_buffers - 1 < groups_.size()) read_states(g + state_buffers - 1);
    std::vector<Tensor> weights;
    if (setup_.weight_device == StateDevice::cpu)
      for (const TrainedParameter* parameter : group.parameters) weights.push_back(parameter->shard);
    else if (!weight_buffers_.empty())
      weights.push_back(weight_buffers_[g % weight_buffers]);
    last = adam(g, group.gradient, weights);
    if (on_drives) write_states(g);
    if (setup_.weight_device != StateDevice::cpu)
      send_weights(group, weights.empty() ? states(group, g).front() : weights.front());
  }
  return last;
}

void HostOptimizer::update_delayed() {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    session_.set_layer(groups_[g].layer);
    std::vector<Tensor> weights;
    if (groups_[g].weights) weights.push_back(groups_[g].weights);
    adam(g, groups_[g].last_gradient, weights);
  }
  for (const Group& group : groups_) {
    session_.set_layer(group.layer);
    send_weights(group, group.weights ? group.weights : group.master);
  }
}

std::vector<Tensor> HostOptimizer::states(const Group& group, std::size_t index) const {
  if (setup_.optimizer_device == StateDevice::drives) return {state_buffers_[index % state_buffers]};
  return {group.master, group.first_moment, group.second_moment};
}

void HostOptimizer::read_states(std::size_t index) {
  const Group& group = groups_[index];
  session_.transfer({.name = "states_from_drives",
                     .kind = OpKind::storage_read,
                     .lane = "drives to host",
                     .at_device = false,
                     .bytes = Bytes(group.elements * (state_bytes() + size_of(DataType::fp32))),
                     .writes = states(group, index)});
}

void HostOptimizer::write_states(std::size_t index) {
  const Group& group = groups_[index];
  session_.transfer({.name = "states_to_drives",
                     .kind = OpKind::storage_write,
                     .lane = "host to drives",
                     .at_device = false,
                     .bytes = Bytes(group.elements * state_bytes()),
                     .reads = states(group, index)});
}

OpId HostOptimizer::adam(std::size_t index, const Tensor& gradient, const std::vector<Tensor>& weights) {
  const Group& group = groups_[index];
  std::vector<Tensor> writes = states(group, index), reads = writes;
  if (gradient) reads.push_back(gradient);
  writes.insert(writes.end(), weights.begin(), weights.end());
  const Duration time = session_.cost().host_update(adam_bytes(group), sharers_, most_rate());
  return session_.host_work("cpu_adam", time.time, reads, writes, setup_.delayed_update);
}

void HostOptimizer::send_weights(const Group& group, const Tensor& from) {
  const bool on_drives = setup_.weight_device == StateDevice::drives;
  Transfer in{.name = on_drives ? "weights_to_drives" : "weights_to_device",
              .kind = on_drives ? OpKind::storage_write : OpKind::copy_host_to_device,
              .lane = on_drives ? "host to drives" : "host to device",
              .at_device = !on_drives,
              .reads = {from}};
  for (const TrainedParameter* parameter : group.parameters) {
    in.writes.push_back(setup_.zero_stage == 3 ? parameter->shard : parameter->value);
    in.bytes += Bytes(parameter->share * setup_.trained_weight_bytes());
  }
  session_.transfer(in);
}

void HostOptimizer::zero_gradients() {
  for (const Group& group : groups_) {
    session_.set_layer(group.layer);
    Kernel zero{.name = "zero_gradients", .cost = {.memory = MemoryKind::optimizer}};
    for (const TrainedParameter* parameter : group.parameters) zero.writes.push_back(parameter->gradient);
    session_.kernel(zero);
  }
  session_.set_layer(-1);
}

}  // namespace spillway::models
