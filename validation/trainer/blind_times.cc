#include "validation/trainer/blind_times.h"

#include <cstddef>

#include "base/input_error.h"
#include "models/cost/cost_model.h"
#include "models/cost/gpu_power.h"

namespace spillway::validation {
namespace {

using models::GemmLayout;
using models::KernelClass;
using models::KernelCost;
using models::MemoryKind;

// A[m,k] B[k,n], row by row: which sides lie contiguous.
GemmLayout layout_of(const KernelCall& call) {
  if (call.transpose_a) return GemmLayout::nt;
  return call.transpose_b ? GemmLayout::tn : GemmLayout::nn;
}

MemoryKind memory_kind_of(TrainerKernel kernel) {
  if (kernel == TrainerKernel::embed) return MemoryKind::gather;
  if (kernel == TrainerKernel::layer_norm) return MemoryKind::norm_forward;
  if (kernel == TrainerKernel::layer_norm_backward) return MemoryKind::norm_backward;
  return kernel == TrainerKernel::adamw ? MemoryKind::optimizer : MemoryKind::elementwise;
}

// Each operand read once, each result written once; of an embedding's tables the rows that are asked for.
Bytes bytes_of_call(const StepGraph& graph, const KernelCall& call) {
  if (call.kernel == TrainerKernel::embed) {
    constexpr std::int64_t rows_per_token = 3;  // of the table and the positions, and the result's
    return Bytes(rows_per_token * call.m * call.n * bytes_of(graph.model.type)) + graph.tensors[graph.tokens].bytes();
  }
  Bytes bytes;
  for (const std::uint32_t t : call.reads) bytes += graph.tensors[t].bytes();
  for (const std::uint32_t t : call.writes) bytes += graph.tensors[t].bytes();
  return bytes;
}

KernelCost cost_of(const StepGraph& graph, const KernelCall& call) {
  KernelCost cost;
  cost.type = graph.model.type == ElementType::bf16 ? models::DataType::bf16 : models::DataType::fp32;
  cost.flops = Flops(call.flops);
  cost.bytes = bytes_of_call(graph, call);
  if (call.kernel == TrainerKernel::gemm) {
    cost.kind = KernelClass::gemm;
    cost.gemm = {.m = call.m, .n = call.n, .k = call.k, .layout = layout_of(call)};
  } else {
    cost.memory = memory_kind_of(call.kernel);
  }
  return cost;
}

}  // namespace

bool is_priced(TrainerKernel kernel) {
  switch (kernel) {
    case TrainerKernel::embed:
    case TrainerKernel::embed_position_gradient:
    case TrainerKernel::gemm:
    case TrainerKernel::layer_norm:
    case TrainerKernel::layer_norm_backward:
    case TrainerKernel::gelu:
    case TrainerKernel::gelu_backward:
    case TrainerKernel::add:
    case TrainerKernel::cross_entropy_backward:
    case TrainerKernel::adamw:
      return true;
    case TrainerKernel::embed_table_gradient:
    case TrainerKernel::bias_gradient:
    case TrainerKernel::layer_norm_gradient:
    case TrainerKernel::attention:
    case TrainerKernel::attention_backward:
    case TrainerKernel::cross_entropy:
      return false;
  }
  return false;
}

BlindTimes blind_times(const StepGraph& graph, const HardwareProfile& hardware, std::span<const Picos> measured) {
  SPILLWAY_ASSERT(measured.size() == graph.calls.size());
  const models::CostModel model(hardware);
  std::vector<models::Duration> priced(graph.calls.size());
  models::PowerLoad load;
  for (std::size_t c = 0; c < graph.calls.size(); ++c) {
    if (!is_priced(graph.calls[c].kernel)) continue;
    priced[c] = model.duration(cost_of(graph, graph.calls[c]));
    const double clocked = to_seconds(priced[c].clocked);
    load.chip_joules += priced[c].chip_joules;
    load.memory_joules += priced[c].memory_joules;
    load.clocked_seconds += clocked * model.clock_share();
    load.other_seconds += to_seconds(priced[c].time) - clocked;
  }
  double slower = 1;  // than at the clock that durations are at
  if (model.power() != nullptr)
    slower = model.clock_share() / models::settled_clock(*model.power(), load, model.clock_share());
  BlindTimes times;
  Picos all, kept;
  for (std::size_t c = 0; c < graph.calls.size(); ++c) {
    const bool is_by_profile = is_priced(graph.calls[c].kernel);
    const Picos duration =
        is_by_profile ? priced[c].time + from_seconds(to_seconds(priced[c].clocked) * (slower - 1)) : measured[c];
    times.durations.push_back(duration);
    all += duration;
    if (!is_by_profile) kept += duration;
  }
  if (all > Picos(0)) times.measured_share = to_seconds(kept) / to_seconds(all);
  return times;
}

}  // namespace spillway::validation
