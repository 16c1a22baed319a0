#include "models/session/eager_session.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/input_error.h"
#include "base/splitmix64.h"
#include "base/stop.h"
#include "traces/capture_fit.h"
#include "traces/graph_pool.h"

namespace spillway::models {
namespace {

constexpr std::uint64_t first_address = 0x7000'0000'0000;
constexpr std::uint64_t address_step = 512;
constexpr std::int64_t first_transfer_lane = 200, memory_stream_number = 198, beside_stream_number = 199;

// Of kernels of kind gemm.
bool is_same_product(const KernelCost& a, const KernelCost& b) {
  const auto sides = [](const KernelCost& one) {
    return std::tie(one.gemm.m, one.gemm.n, one.gemm.k, one.gemm.batch, one.gemm.layout, one.type, one.flops, one.bytes,
                    one.is_cast_before, one.accumulates, one.one_by_one, one.before_cuda_12, one.flops_per_clock);
  };
  return sides(a) == sides(b);
}

}  // namespace

Tensor::Body::~Body() { session->free(*this); }

EagerSession::EagerSession(const CostModel& cost, std::string_view device_name) : cost_(cost) {
  const Picos each = cost.host_time_per_kernel();
  program_times_ = engine_times_ = {.call = each, .plain = each, .expert = each};
  host_ = trace_.lane({.kind = LaneKind::host_thread, .number = 1, .name = trace_.strings.intern("host")});
  stream_ =
      trace_.lane({.kind = LaneKind::stream, .device = 0, .number = 7, .name = trace_.strings.intern("stream 7")});
  trace_.devices.push_back(
      {.name = trace_.strings.intern(device_name),
       .memory = cost.gpu().memory.value,
       .multiprocessors = cost.gpu().sm_count ? static_cast<std::int32_t>(cost.gpu().sm_count->value) : 0});
  trace_.memory_size_is_requested = true;
  launch_name_ = trace_.strings.intern("cudaLaunchKernel");
  next_address_ = first_address;
}

TensorId EagerSession::new_tensor(std::string_view name, DataType type, std::int64_t elements, TensorRole role) {
  SPILLWAY_ASSERT(elements >= 1 && !finished_);
  const TensorId id{static_cast<std::uint32_t>(trace_.tensors.size())};
  trace_.tensors.name.push_back(trace_.strings.intern(name));
  trace_.tensors.bytes.emplace_back(bytes_of(type, elements));
  trace_.tensors.storage.push_back(static_cast<std::uint32_t>(index_of(id)));
  trace_.tensors.role.push_back(role);
  trace_.tensors.dtype.push_back(name_of(type));
  history_.emplace_back();
  addresses_.emplace_back(next_address_);
  const auto bytes = static_cast<std::uint64_t>(bytes_of(type, elements));
  next_address_ += (bytes + address_step - 1) / address_step * address_step;
  return id;
}

Tensor EagerSession::empty(std::string_view name, DataType type, std::int64_t elements, TensorRole role,
                           TensorPlace place) {
  Tensor tensor;
  tensor.body_ = std::make_shared<Tensor::Body>(this, new_tensor(name, type, elements, role), type, elements, place);
  tensor.body_->is_beside = beside_memory_;
  tensor.body_->is_pooled = !beside_memory_ && has_graph_pool_ && is_captured_ && place == TensorPlace::device;
  if (tensor.body_->is_beside) memory_lane(memory_stream_, memory_stream_number, "exchange stream");
  if (tensor.body_->is_pooled) memory_lane(graph_stream_, traces::graph_pool_number, traces::graph_pool_name);
  memory_event(*tensor.body_, MemoryAction::allocate);
  return tensor;
}

LaneId EagerSession::memory_lane(LaneId& lane, std::int64_t number, std::string_view name) {
  if (lane == LaneId::none)
    lane = trace_.lane({.kind = LaneKind::stream, .device = 0, .number = number, .name = trace_.strings.intern(name)});
  return lane;
}

void EagerSession::discard(const Tensor& tensor) {
  free(*tensor.body_);
  tensor.body_->is_discarded = true;
}

void EagerSession::restore(const Tensor& tensor, std::string_view name) {
  Tensor::Body& body = *tensor.body_;
  SPILLWAY_ASSERT(body.is_discarded);
  body.is_discarded = false;
  body.id = new_tensor(name, body.type, body.elements, TensorRole::activation);
  memory_event(body, MemoryAction::allocate);
}

void EagerSession::free(const Tensor::Body& body) {
  if (finished_ || body.is_discarded) return;
  memory_event(body, MemoryAction::free_requested);
  if (!one_event_per_free_) memory_event(body, MemoryAction::free_completed);
}

void EagerSession::memory_event(const Tensor::Body& body, MemoryAction action) {
  if (body.place == TensorPlace::drives) return;
  trace_.memory_events.push_back({.time = host_clock_,
                                  .address = addresses_[index_of(body.id)],
                                  .bytes = trace_.tensors.bytes[index_of(body.id)],
                                  .anchor = last_launch_,
                                  .tensor = body.id,
                                  .action = action,
                                  .device = static_cast<std::int16_t>(body.place == TensorPlace::host ? -1 : 0),
                                  .stream = body.is_beside   ? memory_stream_
                                            : body.is_pooled ? graph_stream_
                                                             : stream_});
}

void EagerSession::copy_in(const Tensor& tensor) {
  kernel({.name = "Memcpy HtoD",
          .writes = {tensor},
          .cost = {.kind = KernelClass::copy_to_device, .type = tensor.type()},
          .kind = OpKind::copy_host_to_device});
}

void EagerSession::set_layer(std::int64_t layer) {
  layer_ = layer < 0 ? no_index16 : static_cast<std::uint16_t>(layer);
}

void EagerSession::set_micro_batch(std::int64_t micro_batch) {
  micro_batch_ = micro_batch < 0 ? no_index16 : static_cast<std::uint16_t>(micro_batch);
}

void EagerSession::begin_step(std::string_view name) {
  step_ = current_step_ = static_cast<std::uint16_t>(trace_.steps.size());
  trace_.steps.push_back({.name = trace_.strings.intern(name), .start = host_clock_});
}

StringId EagerSession::name_of(DataType type) {
  StringId& name = type_names_.at(static_cast<std::size_t>(type));
  if (name == StringId::empty) name = trace_.strings.intern(to_string(type));
  return name;
}

Duration EagerSession::duration_of(const KernelCost& cost) {
  if (cost.kind != KernelClass::gemm) return cost_.duration(cost);
  const GemmShape& shape = cost.gemm;
  // Sides are mostly multiples of 64, so the upper bits of a product tell them apart.
  const auto sum = static_cast<std::uint64_t>(shape.m * 31 + shape.n * 17 + shape.k * 7 + shape.batch);
  TimedProduct& timed = timed_[(sum * golden_gamma) >> 58U];
  static_assert(std::tuple_size_v<decltype(timed_)> == 1U << 6U);
  if (timed.duration.time <= Picos(0) || !is_same_product(timed.cost, cost)) timed = {cost, cost_.duration(cost)};
  return timed.duration;
}

void EagerSession::touch(const Tensor& tensor) {
  const std::size_t index = index_of(tensor.id());
  if (index >= touched_.size()) touched_.resize(index + 1, false);
  if (touched_[index]) return;
  touched_[index] = true;
  touches_.push_back(tensor.id());
}

void EagerSession::note_touches(OpId op) {
  for (const TensorId tensor : touches_) trace_.uses.push_back({.op = op, .tensor = tensor, .access = Access::read});
  touches_.clear();
}

OpId EagerSession::kernel(const Kernel& kernel) {
  check_stop();
  KernelCost cost = kernel.cost;
  if (kernel.bytes) {
    cost.bytes = *kernel.bytes;
  } else {
    for (const Tensor& tensor : kernel.reads) cost.bytes += tensor.bytes();
    for (const Tensor& tensor : kernel.writes) cost.bytes += tensor.bytes();
  }
  const bool only_moves =
      cost.kind == KernelClass::memory_bound && kernel.kind == OpKind::kernel && cost.flops_per_clock <= 0;
  HostWork host = kernel.host;
  if (row_pass_ != nullptr && only_moves) {
    host = row_pass_->host;
    cost.access = MemoryAccess::rows;
    cost.launches = row_pass_->launches;
  }
  if (crowding_ != 1 && cost.kind == KernelClass::memory_bound)
    cost.bytes = Bytes(std::llround(static_cast<double>(cost.bytes.count()) * crowding_));
  Duration duration = duration_of(cost);
  if (is_fused_ && only_moves) {
    duration.time = Picos(1000);
    host = {.calls = 0};
  }
  if (duration.source != CostSource::table) ++modelled_kernels_;
  shapes_.count(cost, duration);
  const OpId op = launch({.name = trace_.strings.intern(kernel.name),
                          .kind = kernel.kind,
                          .lane = kernel.beside ? beside_stream() : stream_,
                          .duration = duration.time,
                          .bytes = cost.bytes,
                          .flops = cost.flops},
                         kernel.beside ? beside_clock_ : stream_clock_, host, cost.launches);
  if (cost_.power() != nullptr && kernel.kind == OpKind::kernel)
    drawing_.push_back({op, duration.clocked, duration.chip_joules, duration.memory_joules});
  depend(op, kernel.reads, kernel.writes);
  note_touches(op);
  if (!kernel.beside) last_kernel_ = op;
  if (host.experts > 1 && !is_captured_) host_call("launch_experts", host_times().expert * (host.experts - 1));
  return op;
}

LaneId EagerSession::beside_stream() {
  if (beside_stream_ == LaneId::none)
    beside_stream_ = trace_.lane({.kind = LaneKind::stream,
                                  .device = 0,
                                  .number = beside_stream_number,
                                  .name = trace_.strings.intern("side stream")});
  return beside_stream_;
}

OpId EagerSession::launch(OpRow row, Picos& lane_clock, const HostWork& host, std::int64_t launches) {
  row.phase = phase_;
  row.layer = layer_;
  row.micro_batch = micro_batch_;
  row.step = step_;
  const HostTimes& times = host_times();
  const Picos taken =
      is_captured_ ? graph_node_time * launches
                   : from_seconds(to_seconds(times.call) * host.calls + to_seconds(times.plain) * host.operators +
                                  to_seconds(times.view) * host.views) +
                         (host.experts > 0 ? times.expert : Picos(0));
  host_clock_ += taken;
  OpRow call{.name = launch_name_,
             .kind = OpKind::launch,
             .phase = phase_,
             .lane = host_,
             .layer = layer_,
             .micro_batch = micro_batch_,
             .step = step_,
             .duration = std::min(taken, cost_.launch_call())};
  call.start = host_clock_ - call.duration;
  const bool blocks = launch_blocks_ && !is_captured_;  // a graph is one launch, its kernels are none
  if (blocks) call.flags = static_cast<std::uint8_t>(OpFlag::blocking);
  last_launch_ = trace_.append_op(call);
  row.launched_by = last_launch_;
  row.start = std::max(host_clock_ + cost_.gpu().launch_to_start.value, lane_clock + cost_.gpu().kernel_gap.value);
  lane_clock = row.start + row.duration;
  if (blocks) {
    host_clock_ = lane_clock + traces::sync_return;
    trace_.ops.duration[index_of(last_launch_)] = host_clock_ - call.start;
  }
  return trace_.append_op(row);
}

OpId EagerSession::host_call(std::string_view name, Picos time) {
  last_launch_ = trace_.append_op({.name = trace_.strings.intern(name),
                                   .kind = OpKind::host_work,
                                   .phase = phase_,
                                   .lane = host_,
                                   .layer = layer_,
                                   .micro_batch = micro_batch_,
                                   .step = step_,
                                   .start = host_clock_,
                                   .duration = time});
  host_clock_ += time;
  return last_launch_;
}

LaneId EagerSession::transfer_lane(const Transfer& transfer) {
  for (const auto& [name, lane] : transfer_lanes_)
    if (name == transfer.lane) return lane;
  Lane lane;
  lane.kind = is_storage(transfer.kind) ? LaneKind::storage : LaneKind::stream;
  lane.device = static_cast<std::int16_t>(is_copy(transfer.kind) || transfer.at_device ? 0 : -1);
  lane.number = first_transfer_lane + static_cast<std::int64_t>(transfer_lanes_.size());
  lane.name = trace_.strings.intern(transfer.lane);
  transfer_lanes_.emplace_back(transfer.lane, trace_.lane(lane));
  return transfer_lanes_.back().second;
}

OpId EagerSession::transfer(const Transfer& transfer) {
  const OpId call = host_call(is_copy(transfer.kind) ? "cudaMemcpyAsync" : "io_submit", cost_.launch_call());
  const OpId op = trace_.append_op({.name = trace_.strings.intern(transfer.name),
                                    .kind = transfer.kind,
                                    .phase = phase_,
                                    .lane = transfer_lane(transfer),
                                    .layer = layer_,
                                    .micro_batch = micro_batch_,
                                    .step = step_,
                                    .flags = static_cast<std::uint8_t>(OpFlag::by_bytes),
                                    .start = host_clock_,
                                    .duration = Picos{},
                                    .bytes = transfer.bytes});
  depend(op, transfer.reads, transfer.writes);
  add_edge(call, op, EdgeKind::control);
  if (transfer.after_kernels) add_edge(last_kernel_, op, EdgeKind::control);
  return op;
}

OpId EagerSession::host_work(std::string_view name, Picos time, const std::vector<Tensor>& reads,
                             const std::vector<Tensor>& writes, bool beside) {
  OpId op = OpId::none;
  if (beside) {
    if (beside_ == LaneId::none)
      beside_ =
          trace_.lane({.kind = LaneKind::host_thread, .number = 2, .name = trace_.strings.intern("optimizer thread")});
    op = trace_.append_op({.name = trace_.strings.intern(name),
                           .kind = OpKind::host_work,
                           .phase = phase_,
                           .lane = beside_,
                           .layer = layer_,
                           .step = step_,
                           .duration = time});
  } else {
    op = host_call(name, time);
  }
  depend(op, reads, writes);
  return op;
}

void EagerSession::host_wait(const std::vector<OpId>& ops) {
  const OpId op = host_call("cudaEventSynchronize", cost_.launch_call());
  edges_into_.clear();
  for (const OpId awaited : ops) add_edge(awaited, op, EdgeKind::control);
}

EagerSession::CommunicationLane& EagerSession::communication_lane(std::string_view group) {
  for (CommunicationLane& lane : communication_lanes_)
    if (lane.group == group) return lane;
  const auto number = static_cast<std::int64_t>(communication_lanes_.size());
  CommunicationLane& lane = communication_lanes_.emplace_back();
  lane.group = group;
  lane.id = trace_.lane(
      {.kind = LaneKind::communication, .device = 0, .number = 100 + number, .name = trace_.strings.intern(group)});
  return lane;
}

OpId EagerSession::last_collective(std::string_view group) const {
  for (const CommunicationLane& lane : communication_lanes_)
    if (lane.group == group) return lane.last;
  return OpId::none;
}

OpId EagerSession::collective(const Collection& c) {
  CommunicationLane& lane = communication_lane(c.group);
  const OpId op = launch({.name = trace_.strings.intern(c.name),
                          .kind = OpKind::collective,
                          .lane = lane.id,
                          .duration = c.time,
                          .bytes = c.buffer},
                         lane.clock, c.host);
  trace_.ops.phase[index_of(op)] = trace_.ops.phase[index_of(last_launch_)] = Phase::communication;
  if (const GpuPower* power = cost_.power(); power != nullptr && c.crossing > Bytes(0)) {
    const double bytes = 2.0 * static_cast<double>(c.crossing.count());
    drawing_.push_back({op, Picos{}, bytes * power->chip_byte_joules, bytes * power->memory_byte_joules});
  }
  lane.last = op;
  trace_.collectives.push_back({.op = op,
                                .kind = c.kind,
                                .bytes = c.input,
                                .group_size = static_cast<std::uint32_t>(c.group_size),
                                .group = trace_.strings.intern(c.group)});
  depend(op, c.reads, c.writes);
  note_touches(op);
  if (c.after_kernels) add_edge(last_kernel_, op, EdgeKind::control);
  return op;
}

void EagerSession::device_sync() {
  host_clock_ += cost_.launch_call();
  last_launch_ = trace_.append_op({.name = trace_.strings.intern("cudaDeviceSynchronize"),
                                   .kind = OpKind::device_sync,
                                   .phase = phase_,
                                   .lane = host_,
                                   .layer = layer_,
                                   .micro_batch = micro_batch_,
                                   .step = step_,
                                   .start = host_clock_ - cost_.launch_call(),
                                   .duration = cost_.launch_call()});
}

TraceMark EagerSession::mark() const {
  return {trace_.ops.size(),  trace_.tensors.size(), trace_.memory_events.size(),
          trace_.uses.size(), trace_.edges.size(),   trace_.collectives.size(),
          host_clock_,        stream_clock_};
}

void EagerSession::depend(OpId op, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes) {
  edges_into_.clear();
  for (const Tensor& tensor : reads) {
    trace_.uses.push_back({.op = op, .tensor = tensor.id(), .access = Access::read});
    add_edge(history_[index_of(tensor.id())].writer, op, EdgeKind::data);
  }
  for (const Tensor& tensor : writes) {
    trace_.uses.push_back({.op = op, .tensor = tensor.id(), .access = Access::write});
    const History& history = history_[index_of(tensor.id())];
    add_edge(history.writer, op, EdgeKind::data);
    for (const OpId reader : history.readers) add_edge(reader, op, EdgeKind::control);
  }
  for (const Tensor& tensor : reads) history_[index_of(tensor.id())].readers.push_back(op);
  for (const Tensor& tensor : writes) {
    History& history = history_[index_of(tensor.id())];
    history.writer = op;
    history.readers.clear();
  }
}

void EagerSession::add_edge(OpId from, OpId to, EdgeKind kind) {
  if (from == OpId::none || from == to) return;
  if (std::find(edges_into_.begin(), edges_into_.end(), from) != edges_into_.end()) return;
  edges_into_.push_back(from);
  trace_.edges.push_back({.from = from, .to = to, .kind = kind});
}

Trace EagerSession::finish() {
  finished_ = true;
  if (!trace_.steps.empty()) {
    Step& step = trace_.steps.back();
    step.duration = std::max(host_clock_, stream_clock_) - step.start;
  }
  trace_.source_events = trace_.ops.size();
  if (modelled_kernels_ > 0) {
    const std::string shapes = shapes_.text();
    trace_.note(
        "modelled_durations", "",
        "kernel times come from fitted or assumed curves, not from a table of this GPU; calibrate to replace them" +
            (shapes.empty() ? "" : "; " + shapes),
        false);
  }
  for (int i = 0; i < capability_count; ++i) trace_.set(static_cast<Capability>(i));
  return std::move(trace_);
}

}  // namespace spillway::models
