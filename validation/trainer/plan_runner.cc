#include "validation/trainer/plan_runner.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/input_error.h"
#include "sim/replay/order_plan.h"
#include "validation/trainer/step_trace.h"

namespace spillway::validation {
namespace {

// How many columns must have been visited before the event: none of those without an anchor.
std::size_t columns_before(const MemoryEvent& event) {
  return event.anchor == OpId::none ? 0 : index_of(event.anchor) + 1;
}

// Events by the column they are anchored to, those before the step first.
std::vector<std::uint32_t> by_anchor(const Trace& trace) {
  std::vector<std::uint32_t> order(trace.memory_events.size());
  for (std::uint32_t e = 0; e < order.size(); ++e) order[e] = e;
  std::stable_sort(order.begin(), order.end(), [&trace](std::uint32_t a, std::uint32_t b) {
    return columns_before(trace.memory_events[a]) < columns_before(trace.memory_events[b]);
  });
  return order;
}

// Memory to bring a tensor in or out by: of the host where it comes from there or goes there, and of the device where
// the tensor is not there.
class Staging {
 public:
  Staging(Backend& backend, Bytes bytes, bool on_host, bool on_device) : backend_(backend) {
    if (on_host) host_ = backend.take_host(bytes);
    if (on_device) device_ = backend.take_segment(bytes);
    if ((host_ != nullptr || !on_host) && (device_ != nullptr || !on_device)) return;
    give_back();
    throw InputError("", "", "no memory to bring tensors in and out by", "train a smaller model");
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  ~Staging() { give_back(); }
  [[nodiscard]] std::byte* host() const { return host_; }
  [[nodiscard]] std::byte* device() const { return device_; }

 private:
  void give_back() {
    if (device_ != nullptr) backend_.give_segment(device_);
    if (host_ != nullptr) backend_.give_host(host_);
  }
  Backend& backend_;
  std::byte *host_ = nullptr, *device_ = nullptr;
};

}  // namespace

PlannedTrace planned_step(const Trace& trace, const Plan& plan) {
  const OffloadPlan nothing;
  const OffloadPlan& offload = plan.fates ? *plan.fates : nothing;
  if (!plan.order) return planned_trace(trace, offload);
  const bool of_program = offload.digest == digest_of_works(trace);  // else of the new order
  const Reordered ordered = reorder(trace, *plan.order, of_program ? &offload : nullptr);
  return planned_trace(ordered.trace, of_program ? moved_fates(trace, ordered, offload) : offload);
}

Trace in_program_order(const PlannedTrace& planned) {
  Trace trace = planned.trace;
  std::vector<MemoryEvent> events;
  for (const std::uint32_t e : by_anchor(planned.trace)) events.push_back(planned.trace.memory_events[e]);
  trace.memory_events = std::move(events);
  return trace;
}

// A plan covers one step; the second begins behind what stays.
MemoryPoolOptions PlanRunner::allocator_of(const Plan& plan, const Trace& trace, const PlanRunOptions& options) {
  MemoryPoolOptions allocator = options.allocator;
  if (plan.memory.empty()) return allocator;
  auto memory = std::make_shared<MemoryPlan>(plan.memory.begin()->second);  // the trainer has one GPU
  constexpr std::int64_t smallest_planned = 512;
  std::uint64_t ordinal = 0;
  std::size_t places = 0;
  for (const MemoryEvent& event : trace.memory_events) {
    if (event.anchor != OpId::none || event.action != MemoryAction::allocate) continue;
    const bool any = memory->kind == PlanKind::layout;
    if (!any && event.bytes.count() <= smallest_planned) continue;
    if (any || !std::binary_search(memory->cached.begin(), memory->cached.end(), ordinal)) ++places;
    ++ordinal;
  }
  memory->period_begin = std::min(places, memory->places.size());
  allocator.plan = std::move(memory);
  return allocator;
}

TierStoreOptions PlanRunner::tiers_of(const Plan& plan, const PlanRunOptions& options) {
  TierStoreOptions tiers;
  tiers.file = options.file;
  tiers.gpudirect = options.gpudirect;
  tiers.make_queue = options.make_queue;
  if (!plan.fates) return tiers;
  tiers.store_workers = std::max<std::int64_t>(1, plan.fates->store_workers);
  tiers.load_workers = std::max<std::int64_t>(1, plan.fates->load_workers);
  return tiers;
}

std::vector<Bytes> PlanRunner::drive_bytes(const Plan& plan) const {
  std::vector<Bytes> bytes(graph_.tensors.size());
  if (!plan.fates) return bytes;
  for (const Absence& absence : plan.fates->absences)
    if (absence.tier == Tier::drive) bytes[index_of(absence.tensor)] = graph_.tensors[index_of(absence.tensor)].bytes();
  return bytes;
}

PlanRunner::PlanRunner(Backend& backend, const StepGraph& graph, const Trace& trace, const Plan& plan,
                       const PlanRunOptions& options)
    : backend_(backend),
      graph_(graph),
      planned_(planned_step(trace, plan)),
      in_order_(options.in_order),
      memory_(backend, allocator_of(plan, trace, options)),
      tiers_(backend, drive_bytes(plan), tiers_of(plan, options)),
      resident_(graph.tensors.size()),
      home_(graph.tensors.size(), Tier::recompute) {
  if (plan.fates)
    for (const Absence& absence : plan.fates->absences)
      if (absence.leave_after == OpId::none) home_[index_of(absence.tensor)] = absence.tier;
  index_events();
  index_waits();
  index_phases();
  for (const std::uint32_t e : initial_) apply(e);
}

// What lives beyond the step is taken once; anything else without an anchor when each step begins.
void PlanRunner::index_events() {
  for (const std::uint32_t e : by_anchor(planned_.trace)) {
    const MemoryEvent& event = planned_.trace.memory_events[e];
    const bool stays = event.anchor == OpId::none && graph_.tensors[tensor_of(event)].persistent;
    (stays ? initial_ : events_).push_back(e);
  }
}

void PlanRunner::index_waits() {
  const Trace& trace = planned_.trace;
  kernel_of_.assign(trace.ops.size(), OpId::none);
  waits_of_.resize(trace.ops.size());
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const OpId by = trace.ops.launched_by[i];
    if (by != OpId::none) kernel_of_[index_of(by)] = OpId(static_cast<std::uint32_t>(i));
  }
  for (const Edge& edge : trace.edges)
    if (is_host_call(trace.ops.kind[index_of(edge.to)]) &&
        planned_.lane_of(trace.ops.lane[index_of(edge.from)]) != nullptr)
      waits_of_[index_of(edge.to)].push_back(edge.from);
}

void PlanRunner::index_phases() {
  const Trace& trace = planned_.trace;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.kind[i] != OpKind::kernel) continue;
    const auto op = OpId(static_cast<std::uint32_t>(i));
    if (trace.ops.phase[i] == Phase::forward) last_forward_ = op;
    if (trace.ops.phase[i] == Phase::backward) last_backward_ = op;
  }
}

std::byte* PlanRunner::memory_of(std::uint32_t tensor) const {
  SPILLWAY_ASSERT(!resident_[tensor].empty());
  return resident_[tensor].back().block.memory;
}

void PlanRunner::write(std::uint32_t tensor, std::span<const std::byte> bytes) {
  const Bytes size = graph_.tensors[tensor].bytes();
  SPILLWAY_ASSERT(static_cast<std::int64_t>(bytes.size()) == size.count());
  const bool away = home_[tensor] != Tier::recompute;
  const Staging staging(backend_, size, true, away);
  std::byte* device = away ? staging.device() : memory_of(tensor);
  std::memcpy(staging.host(), bytes.data(), bytes.size());
  backend_.wait(backend_.copy(Backend::CopyTo::device, device, staging.host(), size, backend_.mark()));
  if (!away) return;
  tiers_.wait(tiers_.store(tensor, home_[tensor], device, size));
  tiers_.clear();
}

std::vector<std::byte> PlanRunner::read(std::uint32_t tensor) {
  const Bytes size = graph_.tensors[tensor].bytes();
  const bool away = home_[tensor] != Tier::recompute;
  const Staging staging(backend_, size, true, away);
  std::byte* device = away ? staging.device() : memory_of(tensor);
  if (away) {
    tiers_.wait(tiers_.load(tensor, home_[tensor], device, size));
    tiers_.clear();
  }
  backend_.wait(backend_.copy(Backend::CopyTo::host, device, staging.host(), size, backend_.mark()));
  return {staging.host(), staging.host() + size.count()};
}

void PlanRunner::fill(std::uint32_t tensor, const Filling& filling) {
  const GraphTensor& what = graph_.tensors[tensor];
  const bool away = home_[tensor] != Tier::recompute;
  const Staging staging(backend_, what.bytes(), false, away);
  std::byte* device = away ? staging.device() : memory_of(tensor);
  backend_.fill(device, what.type, what.elements, filling);
  if (!away) return;
  tiers_.wait(tiers_.store(tensor, home_[tensor], device, what.bytes()));
  tiers_.clear();
}

std::uint64_t PlanRunner::digest(std::uint32_t tensor) {
  const Bytes size = graph_.tensors[tensor].bytes();
  const bool away = home_[tensor] != Tier::recompute;
  const Staging staging(backend_, size, false, away);
  std::byte* device = away ? staging.device() : memory_of(tensor);
  if (away) {
    tiers_.wait(tiers_.load(tensor, home_[tensor], device, size));
    tiers_.clear();
  }
  return backend_.digest(device, size);
}

void PlanRunner::take(const MemoryEvent& event, bool before) {
  std::optional<DeviceMemory::Block> block = memory_.allocate(event.bytes, before);
  if (!block && !pending_.empty()) {
    drain(true);
    block = memory_.allocate(event.bytes, before);
  }
  if (!block)
    throw InputError("", "", "step " + std::to_string(step_) + ": " + memory_.refusal(),
                     "offload or recompute more, or give the allocator more memory");
  resident_[tensor_of(event)].push_back({event.address, *block});
}

void PlanRunner::give(std::uint32_t tensor, Addr trace_address) {
  std::vector<Resident>& lives = resident_[tensor];
  const auto found = std::find_if(lives.begin(), lives.end(),
                                  [&](const Resident& life) { return life.trace_address == trace_address; });
  SPILLWAY_ASSERT(found != lives.end());
  memory_.free(found->block.id);
  lives.erase(found);
}

// Frees whose stores have ended; with `everything`, waits for them.
void PlanRunner::drain(bool everything) {
  for (std::size_t p = 0; p < pending_.size();) {
    const PendingFree pending = pending_[p];
    if (everything) tiers_.wait(pending.store);
    if (!tiers_.done(pending.store)) {
      ++p;
      continue;
    }
    give(pending.tensor, pending.trace_address);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(p));
  }
}

void PlanRunner::apply(std::size_t e) {
  const MemoryEvent& event = planned_.trace.memory_events[e];
  SPILLWAY_ASSERT(event.tensor != TensorId::none);
  if (event.action == MemoryAction::allocate) return take(event, false);
  if (event.action != MemoryAction::free_requested) return;
  const OpId gate = e < planned_.gate.size() ? planned_.gate[e] : OpId::none;
  if (gate == OpId::none) return give(tensor_of(event), event.address);
  const TierStore::Id store = transfer_.at(gate);
  if (in_order_) tiers_.wait(store);
  if (tiers_.done(store)) return give(tensor_of(event), event.address);
  pending_.push_back({event.address, tensor_of(event), store});
}

// Those anchored to columns before this one.
void PlanRunner::flush_events(std::size_t before_column) {
  for (; next_event_ < events_.size(); ++next_event_) {
    const std::uint32_t e = events_[next_event_];
    if (columns_before(planned_.trace.memory_events[e]) > before_column) return;
    if (applied_[e] == 0) apply(e);
  }
}

// What the kernel itself is the first to write, where its blocks are taken with its own launch (repeated ops).
void PlanRunner::take_own_blocks(std::size_t column, OpId kernel) {
  const std::vector<std::uint32_t>& writes = graph_.calls[call_of(graph_, planned_.trace, kernel)].writes;
  for (std::size_t i = next_event_; i < events_.size(); ++i) {
    const MemoryEvent& event = planned_.trace.memory_events[events_[i]];
    if (columns_before(event) != column + 1) return;
    if (event.action != MemoryAction::allocate ||
        std::find(writes.begin(), writes.end(), tensor_of(event)) == writes.end())
      continue;
    apply(events_[i]);
    applied_[events_[i]] = 1;
  }
}

void PlanRunner::run_kernel(OpId kernel, StepMeasure& measure) {
  const std::size_t at = call_of(graph_, planned_.trace, kernel);
  const KernelCall& call = graph_.calls[at];
  // A repeated kernel may read what comes back for a later one.
  for (const std::uint32_t t : call.reads)
    if (const auto load = loading_.find(t); load != loading_.end()) tiers_.wait(load->second);
  std::vector<const std::byte*> reads;
  std::vector<std::byte*> writes;
  for (const std::uint32_t t : call.reads) reads.push_back(memory_of(t));
  for (const std::uint32_t t : call.writes) writes.push_back(memory_of(t));
  backend_.run(graph_, call, {reads, writes, step_});
  measure.calls.push_back(at);
  if (kernel == last_forward_ || kernel == last_backward_) backend_.stamp();
}

void PlanRunner::start_transfer(std::size_t column) {
  const auto op = OpId(static_cast<std::uint32_t>(column));
  const TransferLane& lane = *planned_.lane_of(planned_.trace.ops.lane[column]);
  const auto use = std::lower_bound(planned_.trace.uses.begin(), planned_.trace.uses.end(), op,
                                    [](const Use& row, OpId wanted) { return row.op < wanted; });
  SPILLWAY_ASSERT(use != planned_.trace.uses.end() && use->op == op);
  const auto tensor = static_cast<std::uint32_t>(use->tensor);
  const Bytes bytes = graph_.tensors[tensor].bytes();
  if (lane.inbound)
    transfer_[op] = loading_[tensor] = tiers_.load(tensor, lane.tier, memory_of(tensor), bytes);
  else
    transfer_[op] = tiers_.store(tensor, lane.tier, memory_of(tensor), bytes);
}

void PlanRunner::visit(std::size_t column, StepMeasure& measure) {
  const OpKind kind = planned_.trace.ops.kind[column];
  const TransferLane* lane = planned_.lane_of(planned_.trace.ops.lane[column]);
  if (lane != nullptr) {
    if (lane->inbound) flush_events(column + 1);
    start_transfer(column);
  } else if (is_host_call(kind)) {
    for (const OpId transfer : waits_of_[column]) tiers_.wait(transfer_.at(transfer));
    flush_events(column);
    if (kernel_of_[column] == OpId::none) return;
    take_own_blocks(column, kernel_of_[column]);
    run_kernel(kernel_of_[column], measure);
  }
  tiers_.progress();
  drain(false);
}

StepMeasure PlanRunner::run(std::int64_t step, bool time_kernels) {
  StepMeasure measure;
  step_ = step;
  next_event_ = 0;
  applied_.assign(planned_.trace.memory_events.size(), 0);
  transfer_.clear();
  loading_.clear();
  tiers_.clear();  // its clock begins with the step
  backend_.time_kernels(time_kernels);
  backend_.stamp();
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t column = 0; column < planned_.trace.ops.size(); ++column) visit(column, measure);
  flush_events(planned_.trace.ops.size() + 1);
  for (const auto& [op, transfer] : transfer_) tiers_.wait(transfer);
  drain(true);
  backend_.wait(backend_.mark());
  measure.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (time_kernels) measure.kernel_times = backend_.take_times();
  const std::vector<double> stamps = backend_.take_stamps();
  measure.forward_seconds = stamps[1];
  measure.backward_seconds = stamps.back() - stamps[1];
  measure.optimizer_seconds = measure.seconds - stamps.back();
  measure.transfers = tiers_.records();
  tiers_.clear();
  const PoolStatistics& statistics = memory_.pool().statistics().all();
  measure.peak_allocated = Bytes(statistics.allocated_bytes.peak);
  measure.peak_reserved = Bytes(statistics.reserved_bytes.peak);
  const std::vector<std::byte> loss = read(graph_.loss);
  std::memcpy(&measure.loss, loss.data(), sizeof measure.loss);
  return measure;
}

}  // namespace spillway::validation
