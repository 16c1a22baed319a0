// EagerSession: writes a trace the way an eager framework runs a program. Tensors appear when an operator allocates its
// result and go when the last handle to them goes. Every kernel is launched from one host lane onto one stream.
//
//   Tensor y = session.empty("y", DataType::bf16, n, TensorRole::activation);   // allocation event
//   session.kernel({.name = "gelu", .reads = {x}, .writes = {y}, .cost = ...}); // launch op, kernel op, uses, edges
//   y = {};                                                                     // free event
//
// Collectives run on a separate lane per communicator, beside the stream. Like kernels they wait for what they read and
// write, and are waited for by what uses it.
//
// Bytes of a kernel are the sum over its operands unless the caller states them (a gather reads less).
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cost/cost_model.h"
#include "models/session/untabled_shapes.h"
#include "models/spec/training_setup.h"
#include "traces/trace.h"

namespace spillway::models {

class EagerSession;

// Host time of a kernel in a CUDA graph that is replayed: the GPU's front end takes it up in so long (assumed).
inline constexpr Picos graph_node_time{500'000};

// The place of a tensor's memory; on drives it takes none.
enum class TensorPlace : std::uint8_t { device, host, drives };
constexpr TensorPlace place_of(StateDevice device) {
  return device == StateDevice::gpu   ? TensorPlace::device
         : device == StateDevice::cpu ? TensorPlace::host
                                      : TensorPlace::drives;
}

// A counted handle to a tensor of the trace, as a framework's tensor object is. Empty when default-made.
class Tensor {
 public:
  Tensor() = default;
  [[nodiscard]] explicit operator bool() const { return body_ != nullptr; }
  [[nodiscard]] TensorId id() const { return body_->id; }
  [[nodiscard]] std::int64_t elements() const { return body_->elements; }
  [[nodiscard]] DataType type() const { return body_->type; }
  [[nodiscard]] Bytes bytes() const { return Bytes(bytes_of(body_->type, body_->elements)); }
  // Autograd node that made it, a property of the handle; 0: a leaf or made outside the graph.
  [[nodiscard]] std::uint32_t node() const { return node_; }
  [[nodiscard]] Tensor with_node(std::uint32_t node) const {
    Tensor result = *this;
    result.node_ = node;
    return result;
  }
  [[nodiscard]] bool is_only_handle() const { return body_.use_count() == 1; }

 private:
  friend class EagerSession;
  struct Body {
    EagerSession* session;
    TensorId id;
    DataType type;
    std::int64_t elements;
    TensorPlace place;
    bool is_beside = false, is_pooled = false, is_discarded = false;
    Body(EagerSession* owner, TensorId tensor, DataType data_type, std::int64_t count, TensorPlace where)
        : session(owner), id(tensor), type(data_type), elements(count), place(where) {}
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;
    ~Body();
  };
  std::shared_ptr<Body> body_;
  std::uint32_t node_ = 0;
};

// Host work of an operator.
struct HostWork {
  double calls = 1;      // of the framework: autograd functions, modules, collectives
  double operators = 0;  // plain ones of PyTorch
  double views = 0;      // of PyTorch: operators that launch nothing
  std::int64_t experts =
      0;  // of a library for an expert each: the first before the kernel begins, the others beside it
};
// Times of each.
struct HostTimes {
  Picos call{}, plain{}, expert{}, view{};
};
// How kernels go over the rows of experts (MemoryAccess::rows).
struct RowPass {
  HostWork host{};
  std::int64_t launches = 1;
};

struct Kernel {
  std::string_view name;
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;
  KernelCost cost{};
  std::optional<Bytes> bytes{};  // traffic, when not the sum over the operands
  OpKind kind = OpKind::kernel;
  bool beside = false;  // on a second stream: waits for what makes its operands alone
  HostWork host{};
};

// A collective as the communicator's stream runs it.
struct Collection {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::unknown;
  std::string_view group;  // also names the lane
  std::int64_t group_size = 1;
  Bytes input{};     // of one rank
  Bytes buffer{};    // the larger of input and result, as nccl-tests counts
  Bytes crossing{};  // a rank's link, each way
  Picos time{};
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;
  // Waits for every kernel launched so far, not only for those that make what it reads (PyTorch's collectives do,
  // unless called from a stream of their own).
  bool after_kernels = false;
  HostWork host{};
};

// Bytes between the GPU, host memory and drives, on a separate lane beside the stream; the replay finds its time.
struct Transfer {
  std::string_view name;
  OpKind kind = OpKind::copy_host_to_device;  // or copy_device_to_host, storage_read, storage_write
  std::string_view lane;
  bool at_device = true;  // of storage: to or from the GPU; false: host memory
  Bytes bytes{};
  std::vector<Tensor> reads;
  std::vector<Tensor> writes;
  bool after_kernels = false;  // waits for every kernel launched so far
};

// How much of a trace is there already; two of them bound a section.
struct TraceMark {
  std::size_t ops = 0, tensors = 0, memory_events = 0, uses = 0, edges = 0, collectives = 0;
  Picos host{}, stream{};  // clocks
};

// A kernel with a time that depends on the clock, or that draws power (models/cost/gpu_power.h). A collective's kernel
// reads or writes every byte that crosses a link, on both sides of it.
struct DrawingOp {
  OpId op = OpId::none;
  Picos clocked{};  // of its duration, as recorded
  double chip_joules = 0, memory_joules = 0;
};

class EagerSession {
 public:
  // `cost` must outlive the session.
  EagerSession(const CostModel& cost, std::string_view device_name);
  EagerSession(const EagerSession&) = delete;
  EagerSession& operator=(const EagerSession&) = delete;

  // Uninitialised memory, allocated now. Precondition: elements >= 1.
  Tensor empty(std::string_view name, DataType type, std::int64_t elements, TensorRole role,
               TensorPlace place = TensorPlace::device);
  OpId kernel(const Kernel& kernel);
  // Frees a tensor's memory while handles to it live; a restored one is a new tensor of the trace behind them all.
  void discard(const Tensor& tensor);
  void restore(const Tensor& tensor, std::string_view name);
  // The next kernel or collective is the first to use what is there for good (a workspace): once per tensor, later
  // calls do nothing.
  void touch(const Tensor& tensor);
  // Tensors made while this is on belong to a stream beside the program's; the allocator keeps its memory apart.
  void set_beside_memory(bool is_beside) { beside_memory_ = is_beside; }
  // Copies from the host, on the stream, what the program reads (tokens, images).
  void copy_in(const Tensor& tensor);
  OpId transfer(const Transfer& transfer);
  // The host computes for so long. `beside`: on a separate thread, from the step's start on.
  OpId host_work(std::string_view name, Picos time, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes,
                 bool beside = false);
  // The host waits until these are done.
  void host_wait(const std::vector<OpId>& ops);
  OpId collective(const Collection& collection);
  // Collectives that wait for all kernels (Collection::after_kernels) wait for those from here on.
  void forget_kernels() { last_kernel_ = OpId::none; }
  // The latest on that communicator's lane; OpId::none when there was none.
  [[nodiscard]] OpId last_collective(std::string_view group) const;
  // The host waits until everything launched so far is done.
  void device_sync();

  // Stamped onto the following ops.
  void set_phase(Phase phase) { phase_ = phase; }
  [[nodiscard]] Phase phase() const { return phase_; }
  void set_layer(std::int64_t layer);  // -1: outside the layers
  [[nodiscard]] std::int64_t layer() const { return layer_ == no_index16 ? -1 : layer_; }
  void set_micro_batch(std::int64_t micro_batch);  // -1: none
  // Work that belongs to no step, since the next one may begin before it ends; back again with false.
  void set_beside_step(bool is_beside) { step_ = is_beside ? no_index16 : current_step_; }
  // Memory events before this call are before the step.
  void begin_step(std::string_view name);

  // Of all kernels so far.
  [[nodiscard]] std::vector<DrawingOp> take_drawing() { return std::move(drawing_); }
  [[nodiscard]] TraceMark mark() const;
  [[nodiscard]] const std::vector<MemoryEvent>& memory_events() const { return trace_.memory_events; }
  [[nodiscard]] OpKind kind_of(OpId op) const { return trace_.ops.kind[index_of(op)]; }
  [[nodiscard]] const CostModel& cost() const { return cost_; }
  // Times of the host: of what the program itself calls (forward, recompute, optimizer), and of what autograd's engine
  // calls in the backward. Default: CostModel's for all.
  void set_host_times(const HostTimes& program, const HostTimes& engine) {
    program_times_ = program;
    engine_times_ = engine;
  }
  // Later work is replayed as a CUDA graph: an operator takes the host no time but graph_node_time.
  void set_captured(bool is_captured) { is_captured_ = is_captured; }
  [[nodiscard]] bool is_captured() const { return is_captured_; }
  // From now on tensors made while captured belong to the graphs' pool; the allocator keeps its memory apart.
  void set_graph_pool(bool has_pool) { has_graph_pool_ = has_pool; }
  // Rows of the fullest rank over this rank's, in uneven work. Kernels that only move bytes take as long as for so many
  // times their bytes; callers of products apply it themselves.
  void set_crowding(double crowding) { crowding_ = crowding; }
  [[nodiscard]] double crowding() const { return crowding_; }
  // Kernels that only move bytes go over rows of experts like this; null: as they say themselves.
  void set_row_pass(const RowPass* pass) { row_pass_ = pass; }
  [[nodiscard]] const RowPass* row_pass() const { return row_pass_; }
  [[nodiscard]] OpId last_kernel() const { return last_kernel_; }
  // Every launch waits for its kernel's end (CUDA_LAUNCH_BLOCKING=1).
  void set_launch_blocking(bool blocks) {
    launch_blocks_ = blocks;
    if (blocks) trace_.capture_fit.unblocked_launch = cost_.launch_call();
  }
  // Kernels that only move bytes are, from here on, part of the products beside them and take no time of their own.
  void set_fused(bool is_fused) { is_fused_ = is_fused; }
  [[nodiscard]] bool is_fused() const { return is_fused_; }
  // Frees are one event from now on, not a request and a completion.
  void merge_free_events() { one_event_per_free_ = true; }

  // Ends the step. Tensors still held stay allocated at the end of the trace.
  Trace finish();

 private:
  friend struct Tensor::Body;
  LaneId memory_lane(LaneId& lane, std::int64_t number, std::string_view name);
  TensorId new_tensor(std::string_view name, DataType type, std::int64_t elements, TensorRole role);
  void free(const Tensor::Body& body);
  void memory_event(const Tensor::Body& body, MemoryAction action);
  void note_touches(OpId op);
  void depend(OpId op, const std::vector<Tensor>& reads, const std::vector<Tensor>& writes);
  // The launch call and the work it starts. `row` has name, kind, lane, duration, bytes, flops.
  OpId launch(OpRow row, Picos& lane_clock, const HostWork& host, std::int64_t launches = 1);
  [[nodiscard]] const HostTimes& host_times() const {
    return phase_ == Phase::backward ? engine_times_ : program_times_;
  }
  struct CommunicationLane {
    LaneId id = LaneId::none;
    Picos clock{};
    std::string group;
    OpId last = OpId::none;
  };
  CommunicationLane& communication_lane(std::string_view group);
  OpId host_call(std::string_view name, Picos time);
  LaneId transfer_lane(const Transfer& transfer);
  LaneId beside_stream();
  void add_edge(OpId from, OpId to, EdgeKind kind);

  struct History {  // of one tensor, to find dependencies
    OpId writer = OpId::none;
    boost::container::small_vector<OpId, 2> readers;  // since the last write
  };

  // Products of the same shape come back in every layer and micro-batch.
  struct TimedProduct {
    KernelCost cost;
    Duration duration;
  };

  [[nodiscard]] Duration duration_of(const KernelCost& cost);
  [[nodiscard]] StringId name_of(DataType type);

  const CostModel& cost_;
  std::array<TimedProduct, 64> timed_{};  // by shape
  std::vector<DrawingOp> drawing_;
  std::array<StringId, data_type_count> type_names_{};
  Trace trace_;
  std::vector<History> history_;
  std::vector<OpId> edges_into_;  // of the op at hand
  LaneId host_ = LaneId::none, stream_ = LaneId::none;
  Phase phase_ = Phase::unknown;
  std::uint16_t layer_ = no_index16, micro_batch_ = no_index16, step_ = no_index16, current_step_ = no_index16;
  Picos host_clock_{}, stream_clock_{};
  HostTimes program_times_{}, engine_times_{};
  OpId last_kernel_ = OpId::none;
  OpId last_launch_ = OpId::none;  // the host call; anchors the memory events that follow it
  std::vector<Addr> addresses_;    // by tensor
  std::uint64_t next_address_ = 0;
  std::uint64_t modelled_kernels_ = 0;  // timed by a fitted or assumed curve
  UntabledShapes shapes_;
  StringId launch_name_{};
  std::vector<CommunicationLane> communication_lanes_;
  std::vector<std::pair<std::string, LaneId>> transfer_lanes_;
  LaneId beside_ = LaneId::none;  // thread of work beside the program
  LaneId beside_stream_ = LaneId::none;
  Picos beside_clock_{};
  std::vector<bool> touched_;      // by tensor
  std::vector<TensorId> touches_;  // by the next kernel
  LaneId memory_stream_ = LaneId::none, graph_stream_ = LaneId::none;
  bool beside_memory_ = false, has_graph_pool_ = false;
  double crowding_ = 1;
  const RowPass* row_pass_ = nullptr;
  bool one_event_per_free_ = false;
  bool is_captured_ = false, is_fused_ = false, launch_blocks_ = false;
  bool finished_ = false;
};

// Scope with one of a session's switches on, or as before where it is not wanted.
template <bool (EagerSession::*is_on)() const, void (EagerSession::*turn)(bool)>
class SwitchScope {
 public:
  SwitchScope(EagerSession& session, bool is_wanted) : session_(session), outer_((session.*is_on)()) {
    (session_.*turn)(outer_ || is_wanted);
  }
  ~SwitchScope() { (session_.*turn)(outer_); }
  SwitchScope(const SwitchScope&) = delete;
  SwitchScope& operator=(const SwitchScope&) = delete;

 private:
  EagerSession& session_;
  bool outer_;
};
// Scope of a session's crowding.
class CrowdedScope {
 public:
  CrowdedScope(EagerSession& session, double crowding) : session_(session), outer_(session.crowding()) {
    session_.set_crowding(crowding);
  }
  ~CrowdedScope() { session_.set_crowding(outer_); }
  CrowdedScope(const CrowdedScope&) = delete;
  CrowdedScope& operator=(const CrowdedScope&) = delete;

 private:
  EagerSession& session_;
  double outer_;
};
// Scope of a session's row pass.
class RowPassScope {
 public:
  RowPassScope(EagerSession& session, const RowPass* pass) : session_(session), outer_(session.row_pass()) {
    session_.set_row_pass(pass);
  }
  ~RowPassScope() { session_.set_row_pass(outer_); }
  RowPassScope(const RowPassScope&) = delete;
  RowPassScope& operator=(const RowPassScope&) = delete;

 private:
  EagerSession& session_;
  const RowPass* outer_;
};
using CapturedScope = SwitchScope<&EagerSession::is_captured, &EagerSession::set_captured>;
using FusedScope = SwitchScope<&EagerSession::is_fused, &EagerSession::set_fused>;

}  // namespace spillway::models
