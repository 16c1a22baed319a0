#include "models/cost/operator_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "base/input_error.h"
#include "base/log.h"

namespace spillway::models {
namespace {

constexpr double wide_lanes = 128, narrow_lanes = 64;  // fp32 lanes of a multiprocessor
constexpr double least_clock = 1e9;                    // no GPU of interest runs slower at its peak
constexpr double whole_l2_share = 0.9;                 // of a cache of one partition that operands can live in
// What carrying over adds: B200 and L40S left out (docs/internals/operator-times.md).
constexpr double carried_error = 0.12;
constexpr double other_path_distance = 2, other_architecture_distance = 1;

// Power, docs/internals/operator-times.md.
constexpr double idle_share = 0.25;  // of the tdp, drawn with work there whatever it is
struct PowerClass {
  double voltage_slope;     // of voltage over clock
  double chip_byte_joules;  // between memory and registers
};
constexpr PowerClass ampere_and_before = {1, 100e-12}, hopper_and_later = {0.5, 60e-12};
constexpr double stacked_byte_joules = 35e-12, graphics_byte_joules = 60e-12;  // HBM, GDDR
constexpr double vector_draw = 0.7;  // of the vector unit at its peak, over the tensor unit's (assumed)
constexpr double fp8_flop_energy = 0.60, fp4_flop_energy = 0.35;  // over bf16's

// NVIDIA's PCIe cards other than the few with HBM.
bool has_graphics_memory(const GpuProfile& gpu) {
  const auto begins = [&](std::string_view text) { return gpu.name.starts_with(text); };
  return gpu.form_factor == "PCIe" && !begins("v100") && !begins("a100") && !begins("a30") && !begins("h100");
}

MatrixPath path_of(const GpuProfile& gpu, bool graphics_memory) {
  if (gpu.vendor != "NVIDIA" && !gpu.vendor.empty()) return MatrixPath::other;
  if (gpu.architecture == "Hopper") return MatrixPath::shared_memory;
  if (gpu.architecture == "Blackwell" && !graphics_memory) return MatrixPath::tensor_memory;
  return MatrixPath::registers;
}

// fp32 peak = multiprocessors x lanes x 2 x clock; 64 lanes where 128 would mean a clock below 1 GHz (Volta, Turing,
// A100).
double clock_of(double fp32_peak, double multiprocessors) {
  if (fp32_peak <= 0 || multiprocessors <= 0) return 0;
  const double clock = fp32_peak / (2 * wide_lanes * multiprocessors);
  return clock >= least_clock ? clock : clock * wide_lanes / narrow_lanes;
}

double log_ratio(double left, double right) { return left > 0 && right > 0 ? std::abs(std::log(left / right)) : 0; }

double dense(const DatasheetFacts& facts, Precision precision) {
  const double peak = facts.peak[static_cast<std::size_t>(precision)];
  return peak > 0 ? peak : facts.peak[static_cast<std::size_t>(Precision::fp32)];
}

// What the kin's sustained efficiency is multiplied by.
double sustained_ratio(const DatasheetFacts& kin, const DatasheetFacts& target) {
  const double kin_peak = dense(kin, Precision::bf16), peak = dense(target, Precision::bf16);
  const auto bf16 = static_cast<std::size_t>(Precision::bf16);
  if (kin.achieved[bf16] > 0 && target.achieved[bf16] > 0)
    return (target.achieved[bf16] / peak) / (kin.achieved[bf16] / kin_peak);
  if (kin.path != target.path || kin.tdp_watts <= 0 || target.tdp_watts <= 0) return 1;
  return std::min(1.0, (target.tdp_watts / peak) / (kin.tdp_watts / kin_peak));
}

double clock_ratio(const DatasheetFacts& kin, const DatasheetFacts& target) {
  return kin.clock_hz > 0 && target.clock_hz > 0 ? kin.clock_hz / target.clock_hz : 1;
}

// At its datasheet's limit.
GpuPower base_power(const DatasheetFacts& facts) {
  const PowerClass& own = facts.path == MatrixPath::registers ? ampere_and_before : hopper_and_later;
  return {.idle_watts = idle_share * facts.tdp_watts,
          .limit_watts = facts.tdp_watts,
          .chip_byte_joules = own.chip_byte_joules,
          .memory_byte_joules = facts.graphics_memory ? graphics_byte_joules : stacked_byte_joules,
          .voltage_slope = own.voltage_slope};
}

double large_rate(const GemmTimes& gemm, const DatasheetFacts& facts) {
  return dense(facts, gemm.precision) * gemm.physics.large_tile;
}

void set_flop_joules(GemmTimes& gemm, const DatasheetFacts& facts) {
  gemm.flop_joules = full_product_watts(base_power(facts), 1 / (1 + gemm.physics.throttle)) / large_rate(gemm, facts);
}

bool is_of_one_kind(const DatasheetFacts& one, const DatasheetFacts& other) {
  return one.path == other.path && one.architecture == other.architecture &&
         one.graphics_memory == other.graphics_memory;
}

double widened(double error) { return std::hypot(error, carried_error); }
RegimeErrors widened(const RegimeErrors& errors) {
  return {widened(errors.small), widened(errors.medium), widened(errors.large)};
}

}  // namespace

std::string_view to_string(MatrixPath path) {
  switch (path) {
    case MatrixPath::registers:
      return "registers";
    case MatrixPath::shared_memory:
      return "shared_memory";
    case MatrixPath::tensor_memory:
      return "tensor_memory";
    case MatrixPath::other:
      return "other";
  }
  return "";
}

DatasheetFacts datasheet_facts(const GpuProfile& gpu) {
  DatasheetFacts facts;
  facts.architecture = gpu.architecture;
  facts.bandwidth = to_bytes_per_second(gpu.memory_bandwidth.value);
  facts.graphics_memory = has_graphics_memory(gpu);
  facts.path = path_of(gpu, facts.graphics_memory);
  for (std::size_t i = 0; i < precision_count; ++i) {
    if (gpu.peak_flops_per_second[i]) facts.peak[i] = gpu.peak_flops_per_second[i]->value;
    if (gpu.achieved_flops_per_second[i]) facts.achieved[i] = gpu.achieved_flops_per_second[i]->value;
  }
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    const auto own = static_cast<std::size_t>(precision);
    const auto twin = static_cast<std::size_t>(precision == Precision::bf16 ? Precision::fp16 : Precision::bf16);
    if (facts.peak[own] <= 0) facts.peak[own] = facts.peak[twin];
  }
  if (gpu.sm_count) facts.multiprocessors = static_cast<double>(gpu.sm_count->value);
  if (gpu.l2_cache) facts.l2_bytes = static_cast<double>(gpu.l2_cache->value.count());
  if (gpu.tdp_watts) facts.tdp_watts = gpu.tdp_watts->value;
  facts.clock_hz = clock_of(facts.peak[static_cast<std::size_t>(Precision::fp32)], facts.multiprocessors);
  return facts;
}

namespace {

double distance_of_kin(const DatasheetFacts& kin, const DatasheetFacts& target) {
  const double kin_peak = dense(kin, Precision::bf16), peak = dense(target, Precision::bf16);
  return (kin.path != target.path ? other_path_distance : 0) +
         (kin.architecture != target.architecture ? other_architecture_distance : 0) +
         log_ratio(kin_peak / kin.bandwidth, peak / target.bandwidth) +
         log_ratio(kin.tdp_watts / kin_peak, target.tdp_watts / peak);
}

}  // namespace

std::size_t nearest_kin(std::span<const OperatorTimes> measured, const DatasheetFacts& target) {
  SPILLWAY_ASSERT(!measured.empty());
  std::size_t nearest = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const double distance = distance_of_kin(measured[i].facts, target);
    if (distance < least) {
      least = distance;
      nearest = i;
    }
  }
  return nearest;
}

OperatorTimes carried_over(const OperatorTimes& kin, const DatasheetFacts& target) {
  OperatorTimes times = kin;
  times.carried_over = true;
  times.profiles.clear();
  times.facts = target;
  if (times.facts.multiprocessors <= 0) times.facts.multiprocessors = kin.facts.multiprocessors;
  if (times.facts.l2_bytes <= 0) times.facts.l2_bytes = kin.facts.l2_bytes;
  // Without a limit of its own it has the kin's for its peak.
  if (times.facts.tdp_watts <= 0)
    times.facts.tdp_watts = kin.facts.tdp_watts * dense(target, Precision::bf16) / dense(kin.facts, Precision::bf16);
  const bool alike = is_of_one_kind(kin.facts, target);
  const double sustained = alike ? 1 : sustained_ratio(kin.facts, target), slower = clock_ratio(kin.facts, target);
  for (GemmTimes& gemm : times.gemm) {
    if (alike && kin.facts.tdp_watts > 0) {
      set_flop_joules(gemm, kin.facts);
      const double full_watts = gemm.flop_joules * large_rate(gemm, times.facts);
      gemm.physics.throttle = 1 / product_clock(base_power(times.facts), full_watts) - 1;
    }
    gemm.physics.large_tile = std::min(1.0, gemm.physics.large_tile * sustained);
    gemm.physics.fixed_us *= slower;
    gemm.physics.split_us *= slower;
    gemm.physics.quantise_us *= slower;
    gemm.physics.fill *= slower;
    if (target.graphics_memory && !kin.facts.graphics_memory) gemm.physics.l2_share = whole_l2_share;
    if (!target.graphics_memory && kin.facts.graphics_memory) gemm.physics.l2_share = 1 - whole_l2_share;
    gemm.table_error = gemm.physics_error = widened(gemm.physics_error);
  }
  for (std::vector<AttentionTimes>* pass :
       {&times.attention_forward, &times.attention_backward, &times.attention_serving})
    for (AttentionTimes& attention : *pass) {
      attention.carried_over = true;
      attention.physics.efficiency = std::min(1.0, attention.physics.efficiency * sustained);
      attention.physics.fixed_us *= slower;
      attention.table_error = attention.physics_error = widened(attention.physics_error);
    }
  for (MemoryTimes& memory : times.memory) {
    memory.carried_over = true;
    memory.fixed_us *= slower;
    memory.error = widened(memory.error);
  }
  return times;
}

namespace {

constexpr std::array<std::vector<AttentionTimes> OperatorTimes::*, 3> attention_lists = {
    &OperatorTimes::attention_forward, &OperatorTimes::attention_backward, &OperatorTimes::attention_serving};

bool has_memory_kind(const OperatorTimes& times, MemoryKind kind) {
  return std::any_of(times.memory.begin(), times.memory.end(),
                     [&](const MemoryTimes& memory) { return memory.kind == kind; });
}

// Of the others, nearest first.
std::vector<std::size_t> others_by_nearness(std::span<const OperatorTimes> measured, const OperatorTimes& own) {
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < measured.size(); ++i)
    if (measured[i].name != own.name) others.push_back(i);
  std::stable_sort(others.begin(), others.end(), [&](std::size_t a, std::size_t b) {
    return distance_of_kin(measured[a].facts, own.facts) < distance_of_kin(measured[b].facts, own.facts);
  });
  return others;
}

bool has_gaps(const OperatorTimes& times) {
  for (int kind = 0; kind < memory_kind_count; ++kind)
    if (!has_memory_kind(times, static_cast<MemoryKind>(kind))) return true;
  return std::any_of(attention_lists.begin(), attention_lists.end(),
                     [&](const auto list) { return (times.*list).empty(); });
}

void fill_gaps(OperatorTimes& own, const MeasuredTimes& measured) {
  for (const std::size_t other : others_by_nearness(measured.heads(), own)) {
    if (!has_gaps(own)) return;
    const OperatorTimes kin = carried_over(measured.whole(other), own.facts);
    for (const auto list : attention_lists)
      if ((own.*list).empty()) own.*list = kin.*list;
    for (const MemoryTimes& memory : kin.memory)
      if (!has_memory_kind(own, memory.kind)) own.memory.push_back(memory);
  }
}

// A kind without times of its own begins as the elementwise ones, by which it is priced otherwise.
void add_kind(OperatorTimes& times, MemoryKind kind) {
  const auto of = [](MemoryKind wanted) {
    return [wanted](const MemoryTimes& memory) { return memory.kind == wanted; };
  };
  if (std::any_of(times.memory.begin(), times.memory.end(), of(kind))) return;
  const auto plain = std::find_if(times.memory.begin(), times.memory.end(), of(MemoryKind::elementwise));
  if (plain == times.memory.end()) return;
  MemoryTimes own = *plain;
  own.kind = kind;
  times.memory.push_back(own);
}

void scale_memory(OperatorTimes& times, const OperatorScale& scale, std::optional<MemoryKind> kind) {
  if (kind) add_kind(times, *kind);
  for (MemoryTimes& memory : times.memory)
    if (!kind || memory.kind == *kind) {
      memory.efficiency = std::min(1.0, memory.efficiency * scale.memory.value);
      memory.fixed_us *= scale.fixed.value;
    }
}

void scale_attention(std::vector<AttentionTimes>& list, const OperatorScale& scale) {
  for (AttentionTimes& attention : list) {
    attention.physics.efficiency = std::min(1.0, attention.physics.efficiency * scale.compute.value);
    attention.physics.memory_efficiency = std::min(1.0, attention.physics.memory_efficiency * scale.memory.value);
    attention.physics.fixed_us *= scale.fixed.value;
  }
}

void scale_products(std::vector<GemmTimes>& list, const OperatorScale& scale) {
  for (GemmTimes& gemm : list) {
    if (gemm.precision != scale.precision) continue;
    gemm.physics.large_tile = std::min(1.0, gemm.physics.large_tile * scale.compute.value);
    gemm.physics.memory_efficiency = std::min(1.0, gemm.physics.memory_efficiency * scale.memory.value);
    gemm.physics.fixed_us *= scale.fixed.value;
    gemm.physics.split_us *= scale.fixed.value;
  }
}

}  // namespace

void apply_scale(OperatorTimes& times, const OperatorScale& scale) {
  switch (scale.of) {
    case ScaledOperator::product:
      return scale_products(times.gemm, scale);
    case ScaledOperator::memory_bound:
      return scale_memory(times, scale, std::nullopt);
    case ScaledOperator::attention_forward:
      return scale_attention(times.attention_forward, scale);
    case ScaledOperator::attention_backward:
      return scale_attention(times.attention_backward, scale);
    case ScaledOperator::norm_forward:
      return scale_memory(times, scale, MemoryKind::norm_forward);
    case ScaledOperator::norm_backward:
      return scale_memory(times, scale, MemoryKind::norm_backward);
    case ScaledOperator::cross_entropy:
      return scale_memory(times, scale, MemoryKind::softmax);
    case ScaledOperator::optimizer:
      return scale_memory(times, scale, MemoryKind::optimizer);
  }
}

double line_factor(const GemmTimes& gemm, double m, double n, double k) {
  if (gemm.lines.empty()) return 1;
  const auto line = gemm.lines.find({m, n});
  return line == gemm.lines.end() ? 1 : line->second.at(k).value;
}

const OperatorTimes* own_operator_times(std::span<const OperatorTimes> measured, const GpuProfile& gpu) {
  const std::string& model = gpu.operator_times_of.empty() ? gpu.name : gpu.operator_times_of;
  const auto own = std::find_if(measured.begin(), measured.end(), [&](const OperatorTimes& times) {
    return std::find(times.profiles.begin(), times.profiles.end(), model) != times.profiles.end();
  });
  return own == measured.end() ? nullptr : &*own;
}

OperatorTimes operator_times_for(const MeasuredTimes& measured, const GpuProfile& gpu) {
  const DatasheetFacts facts = datasheet_facts(gpu);
  const OperatorTimes* const own = own_operator_times(measured.heads(), gpu);
  const bool is_measured = own != nullptr;
  const OperatorTimes& taken = measured.whole(is_measured ? static_cast<std::size_t>(own - measured.heads().data())
                                                          : nearest_kin(measured.heads(), facts));
  if (is_verbose())
    log_choice("cost table",
               taken.name + (is_measured ? ", measured on " : ", the nearest measured GPU's, carried to ") + gpu.name);
  OperatorTimes times = is_measured ? taken : carried_over(taken, facts);
  fill_gaps(times, measured);
  for (GemmTimes& gemm : times.gemm)
    if (gemm.flop_joules <= 0) set_flop_joules(gemm, times.facts);
  for (const OperatorScale& scale : gpu.operator_scales) apply_scale(times, scale);
  for (const ProductLine& line : gpu.product_lines)
    for (GemmTimes& gemm : times.gemm)
      if (gemm.precision == line.precision)
        gemm.lines[{static_cast<double>(line.m), static_cast<double>(line.n)}] = line.curve;
  return times;
}

GpuPower power_of(const OperatorTimes& times, const GpuProfile& gpu) {
  GpuPower power = base_power(times.facts);
  if (gpu.power_limit_watts)
    power.limit_watts = gpu.power_limit_watts->value;
  else if (gpu.tdp_watts)
    power.limit_watts = gpu.tdp_watts->value;
  const double bf16 = times.gemm.empty() ? 0 : times.gemm.front().flop_joules;
  const double peak = dense(times.facts, Precision::bf16);
  for (std::size_t i = 0; i < precision_count; ++i) {
    // A unit of lower rate is taken to draw as much at its peak.
    const double own = times.facts.peak[i];
    power.flop_joules[i] = own > 0 && own < peak ? bf16 * peak / own : bf16;
  }
  power.flop_joules[static_cast<std::size_t>(Precision::fp32)] *= vector_draw;
  power.flop_joules[static_cast<std::size_t>(Precision::fp8)] = fp8_flop_energy * bf16;
  power.flop_joules[static_cast<std::size_t>(Precision::int8)] = fp8_flop_energy * bf16;
  power.flop_joules[static_cast<std::size_t>(Precision::fp4)] = fp4_flop_energy * bf16;
  for (const GemmTimes& gemm : times.gemm)
    power.flop_joules[static_cast<std::size_t>(gemm.precision)] = gemm.flop_joules;
  return power;
}

}  // namespace spillway::models
