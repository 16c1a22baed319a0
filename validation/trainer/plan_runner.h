// Runs a planned step for real: kernels, transfers and memory in the order of the trace that planned_trace() made, so
// that what is measured is what was predicted.
//
//   column of the trace      what happens
//   host call                waits for transfers its edges name; memory events of earlier calls; launches its kernel
//   storage_write, copy out  a store is given to the tiers; a free that it gates waits for it
//   storage_read, copy in    memory is taken, a load is given to the tiers
//
// Memory events belong behind the call they are anchored to; blocks that a kernel itself first writes are taken before
// it. Weights and optimizer state stay from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/replay/plan.h"
#include "sim/replay/planned_trace.h"
#include "validation/trainer/device_memory.h"
#include "validation/trainer/tier_store.h"

namespace spillway::validation {

struct PlanRunOptions {
  MemoryPoolOptions allocator;  // of policy planned and arena: with Plan::memory
  std::string file;             // for what goes to drives
  // A free that waits for a store holds everything up until that has ended: memory is the same in every run. Else the
  // free comes when the store has ended, as in a framework, and where blocks lie depends on the drive.
  bool in_order = false;
  bool gpudirect = false;  // TierStoreOptions
  std::function<std::unique_ptr<IoQueue>(unsigned)> make_queue;
};

struct StepMeasure {
  float loss = 0;
  double seconds = 0;                   // of the host clock, everything done
  double forward_seconds = 0;           // from the beginning to the end of the last kernel of the forward pass,
  double backward_seconds = 0;          // from there to that of the backward pass, and
  double optimizer_seconds = 0;         // to the end of the step, transfers included
  Bytes peak_allocated, peak_reserved;  // since the runner was made
  std::vector<TransferRecord> transfers;
  std::vector<std::size_t> calls;        // of the graph, in the order run
  std::vector<KernelTime> kernel_times;  // as the calls, with timing on
};

class PlanRunner {
 public:
  // trace: step_trace(graph). Persistent tensors must be written before the first step: write(). Throws InputError for
  // a plan that does not fit, allocators that do not, and files, see TierStore. All but the plan must outlive it.
  PlanRunner(Backend& backend, const StepGraph& graph, const Trace& trace, const Plan& plan,
             const PlanRunOptions& options);

  // Contents of a persistent tensor, wherever it is before the step. Precondition: as many bytes as it has.
  void write(std::uint32_t tensor, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> read(std::uint32_t tensor);
  // Contents made on the device, and their digest to one number there. Large ones never cross to the host, except those
  // in host memory or on a drive.
  void fill(std::uint32_t tensor, const Filling& filling);
  [[nodiscard]] std::uint64_t digest(std::uint32_t tensor);

  // step: from 1. Throws InputError when memory runs out, with the allocator's words.
  StepMeasure run(std::int64_t step, bool time_kernels = false);

  [[nodiscard]] const PlannedTrace& planned() const { return planned_; }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] std::string file_access() const { return tiers_.access(); }

 private:
  struct Resident {
    Addr trace_address{};
    DeviceMemory::Block block;
  };
  struct PendingFree {
    Addr trace_address{};
    std::uint32_t tensor = 0;
    TierStore::Id store = 0;
  };
  static MemoryPoolOptions allocator_of(const Plan& plan, const Trace& trace, const PlanRunOptions& options);
  static TierStoreOptions tiers_of(const Plan& plan, const PlanRunOptions& options);
  [[nodiscard]] std::vector<Bytes> drive_bytes(const Plan& plan) const;

  void index_events();
  void index_waits();
  void index_phases();
  void visit(std::size_t column, StepMeasure& measure);
  void flush_events(std::size_t before_column);
  void apply(std::size_t event);
  void take(const MemoryEvent& event, bool before);
  void give(std::uint32_t tensor, Addr trace_address);
  void drain(bool everything);
  void take_own_blocks(std::size_t column, OpId kernel);
  void run_kernel(OpId kernel, StepMeasure& measure);
  void start_transfer(std::size_t column);
  [[nodiscard]] std::byte* memory_of(std::uint32_t tensor) const;
  [[nodiscard]] static std::uint32_t tensor_of(const MemoryEvent& event) {
    return static_cast<std::uint32_t>(event.tensor);
  }

  Backend& backend_;
  const StepGraph& graph_;
  PlannedTrace planned_;
  bool in_order_;
  DeviceMemory memory_;
  TierStore tiers_;
  std::vector<OpId> kernel_of_;                                  // by column: what a host call launches
  std::vector<std::vector<OpId>> waits_of_;                      // by column: transfers that a host call waits for
  OpId last_forward_ = OpId::none, last_backward_ = OpId::none;  // kernels
  std::vector<std::uint32_t> events_;                            // of the step, by anchor
  std::vector<std::uint32_t> initial_;                           // of what is there before
  std::vector<char> applied_;                                    // by event
  std::size_t next_event_ = 0;
  std::vector<std::vector<Resident>> resident_;     // by tensor, the latest life last
  std::map<OpId, TierStore::Id> transfer_;          // of this step
  std::map<std::uint32_t, TierStore::Id> loading_;  // by tensor: its last load of this step
  std::vector<PendingFree> pending_;
  std::vector<Tier> home_;  // by tensor: the tier it is in when the step begins; recompute: the device
  std::int64_t step_ = 0;
};

// The trace as a plan has it run: in its order, with its transfers. Throws InputError for plans of another trace.
PlannedTrace planned_step(const Trace& trace, const Plan& plan);
// The same with memory events in the order in which PlanRunner brings them about, each behind the call it is anchored
// to: what an allocation stream must be predicted from.
Trace in_program_order(const PlannedTrace& planned);

}  // namespace spillway::validation
