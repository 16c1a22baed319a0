#include "models/cost/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/input_error.h"

namespace spillway::models {
namespace {

constexpr double least_seconds = 1e-9;
// For GPUs without operator times: NVIDIA's own constants in aiconfigurator's <system>.yaml.
constexpr double default_memory_efficiency = 0.8, default_memory_fixed_us = 3;
constexpr std::int64_t small_side = 64, medium_side = 1024;
constexpr std::int64_t small_sequence = 256, medium_sequence = 2048;
// Adam's bytes per parameter on the CPU: gradient, master weight and two moments read, the last three written, fp32.
constexpr double adam_bytes = 28, host_stream_efficiency = 0.6, core_bytes_per_second = 12e9;
// Of Hopper's fp8 rate with a scale per block, median of sides >= 8192 in the tables of H100 and H200 (1,103 over 1,286
// and 1,108 over 1,290 TFLOP/s); with a scale per row see docs/internals/operator-times.md.
constexpr double block_scaled_rate = 0.86, row_scaled_rate = 0.72;
constexpr double accumulated_bytes = 8;  // an fp32 element of C read and written
constexpr double misaligned_hopper =
    0.62;  // mma.sync's share of wgmma's peak, as FlashAttention 2's (attention_time.cc)
// Flops a clock and multiprocessor of Turing's kernels on an H100 (docs/internals/operator-times.md).
constexpr double narrowest_along_k = 400, narrowest = 600;
// Of the fp32 peak: cuBLAS's kernels of the vector unit, which load element by element, so that no alignment matters.
// With 64 lanes a multiprocessor loads take issue slots that are free anyway (GPT-2's step in fp32 on an A100 leaves
// 0.93 or more of the peak to its products); with 128 they take those of multiplications (our H100: 51.2 of 67
// TFLOP/s).
constexpr double narrow_vector_tile = 0.95, wide_vector_tile = 0.77;
constexpr double few_lanes = 96;     // of a multiprocessor, between the two kinds there are
constexpr double vector_rate = 0.5;  // of the fp32 peak: misaligned batched bf16 products before CUDA 12
// Of what large products draw at the highest clock: what busy multiprocessors draw whatever they do
// (docs/internals/operator-times.md).
constexpr double active_share = 0.6;
constexpr double launch_each_us = 8.9;    // of one product of a group launched one by one (Transformer Engine, B200)
constexpr std::int64_t long_side = 8192;  // of the product of GpuProfile::sustained_flops_per_second
// PyTorch's kernels without vectors, of the rate of those with them, and what a reduction over rows takes besides its
// bytes: an H100's (docs/internals/operator-times.md).
constexpr double strided_share = 0.58, column_sum_us = 10;
// MemoryAccess::rows: of the datasheet's bandwidth, and what a kernel takes at least.
constexpr double rows_share = 0.5, short_kernel_us = 2.5;
constexpr double published_error = 0.1;  // of what was read off published figures
constexpr double guessed_error = 0.2;    // of what nobody measured
// Flops a clock of Hopper's multiprocessors, whose share of the peak stands for that of a GPU of unknown clock.
constexpr double hopper_clock_flops = 4096;

Duration made(double seconds, CostSource source, double error = 0) {
  return {from_seconds(std::max(seconds, least_seconds)), source, error};
}

Precision precision_of(DataType type) {
  switch (type) {
    case DataType::bf16:
      return Precision::bf16;
    case DataType::fp16:
      return Precision::fp16;
    case DataType::fp8:
      return Precision::fp8;
    case DataType::fp4:
      return Precision::fp4;
    case DataType::tf32:
      return Precision::tf32;
    case DataType::fp32:
    case DataType::int64:
    case DataType::byte:
      return Precision::fp32;
  }
  return Precision::fp32;
}

double of_regime(const RegimeErrors& errors, std::int64_t size, std::int64_t small, std::int64_t medium) {
  return size < small ? errors.small : size < medium ? errors.medium : errors.large;
}

// The entry that serves a format: its own, bf16's for fp16, else null.
template <class Times>
const Times* entry_of(const std::vector<Times>& list, DataType type) {
  const Precision wanted = type == DataType::fp16 ? Precision::bf16 : precision_of(type);
  for (const Times& times : list)
    if (times.precision == wanted) return &times;
  return nullptr;
}

CostSource source_of(const Origin& origin) {
  switch (origin.provenance) {
    case OriginKind::measured:
    case OriginKind::datasheet:
      return CostSource::table;
    case OriginKind::fitted:
      return CostSource::fitted;
    case OriginKind::assumed:
      return CostSource::assumed;
  }
  return CostSource::assumed;
}

KernelKind kind_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::elementwise:
      return KernelKind::elementwise;
    case MemoryKind::norm_forward:
      return KernelKind::norm_forward;
    case MemoryKind::norm_backward:
      return KernelKind::norm_backward;
    case MemoryKind::softmax:
      return KernelKind::softmax;
    case MemoryKind::gather:
      return KernelKind::gather;
    case MemoryKind::optimizer:
      return KernelKind::optimizer;
  }
  return KernelKind::elementwise;
}

// flops/s = multiprocessors x a power of two a clock x the clock; which power follows from clocks being of this range.
double matrix_clock(double peak, double multiprocessors) {
  constexpr double least = 1.25e9;
  double clock = peak / multiprocessors;
  while (clock >= 2 * least) clock /= 2;
  return clock;
}

// Largest power of two that divides so many bytes, at most widest_load. Sides below `least_side` are of vectors and
// the like, which have kernels of their own.
double alignment_of(std::int64_t elements, double element_bytes) {
  constexpr std::int64_t least_side = 8;
  if (elements < least_side) return widest_load;
  double alignment = widest_load;
  while (alignment > 1 && std::fmod(static_cast<double>(elements) * element_bytes, alignment) != 0) alignment /= 2;
  return alignment;
}

std::int64_t contiguous_in_a(const GemmShape& shape) { return shape.layout == GemmLayout::nt ? shape.m : shape.k; }
std::int64_t contiguous_in_b(const GemmShape& shape) { return shape.layout == GemmLayout::tn ? shape.k : shape.n; }

GemmSides sides_of(const KernelCost& kernel) {
  const auto whole = [](std::int64_t side) { return static_cast<double>(side); };
  const GemmShape& shape = kernel.gemm;
  constexpr std::int64_t scaled_alike = 16;
  const double element = whole(bytes_of(kernel.type, scaled_alike)) / scaled_alike,
               result = is_narrow(kernel.type) ? 2.0 : element;
  return {.m = whole(shape.m),
          .n = whole(shape.n),
          .k = whole(shape.k),
          .batch = whole(shape.batch),
          .element_bytes = element,
          .result_bytes = kernel.accumulates ? accumulated_bytes : result,
          .accumulates = kernel.accumulates,
          .alignment =
              std::min(alignment_of(contiguous_in_a(shape), element), alignment_of(contiguous_in_b(shape), element)),
          .result_alignment = alignment_of(shape.n, result),
          .along_k = shape.layout == GemmLayout::tn};
}

}  // namespace

std::string_view to_string(DataType type) {
  switch (type) {
    case DataType::bf16:
      return "bfloat16";
    case DataType::fp32:
      return "float32";
    case DataType::int64:
      return "int64";
    case DataType::byte:
      return "uint8";
    case DataType::fp16:
      return "float16";
    case DataType::fp8:
      return "float8_e4m3";
    case DataType::fp4:
      return "float4_e2m1";
    case DataType::tf32:
      return "tfloat32";
  }
  return "";
}

std::string_view to_string(CostSource source) {
  switch (source) {
    case CostSource::table:
      return "table";
    case CostSource::fitted:
      return "fitted";
    case CostSource::kin:
      return "kin";
    case CostSource::assumed:
      return "assumed";
  }
  return "";
}

CostModel::CostModel(const HardwareProfile& profile) : gpu_(profile.gpu) {
  if (!peak_flops_or_wider(gpu_, Precision::bf16) || !peak_flops_or_wider(gpu_, Precision::fp32))
    throw InputError(profile.path, "/gpu/peak_flops", gpu_.name + " has no bf16 or fp32 peak",
                     "add it with its source");
  for (std::size_t i = 0; i < precision_count; ++i)
    if (const auto found = peak_flops_or_wider(gpu_, static_cast<Precision>(i))) peak_[i] = found->value;
  bytes_per_second_ = to_bytes_per_second(gpu_.memory_bandwidth.value);
  if (!gpu_.architecture.empty() && !measured_operator_times().empty())
    times_ = operator_times_for(measured_operator_times(), gpu_);
  if (gpu_.locked_clock_mhz && times_ && times_->facts.multiprocessors > 0)
    clock_share_ = std::min(
        1.0, gpu_.locked_clock_mhz->value * 1e6 / matrix_clock(peak(DataType::bf16), times_->facts.multiprocessors));
  set_power();
  host_time_ = std::max(profile.host.dispatch_cost.value, gpu_.launch_call.value);
  if (profile.host.framework_slowdown) host_slowdown_ = profile.host.framework_slowdown->value;
  if (profile.scale_out && profile.scale_out->technology == "EFA") proxied_beyond_ = profile.gpu_count;
  copy_bytes_per_second_ = gpu_.host_to_device_bandwidth
                               ? to_bytes_per_second(gpu_.host_to_device_bandwidth->value)
                               : to_bytes_per_second(pcie_raw_rate(gpu_.pcie_generation.value, gpu_.pcie_lanes.value)) *
                                     profile.host.pcie_payload_efficiency.value;
  set_host_update(profile.host);
}

void CostModel::set_host_update(const HostProfile& host) {
  if (host.cpu_adam_parameters_per_second) {
    host_update_bytes_per_second_ = host.cpu_adam_parameters_per_second->value * adam_bytes;
    host_update_source_ = source_of(host.cpu_adam_parameters_per_second->origin);
    return;
  }
  host_update_bytes_per_second_ = std::min(to_bytes_per_second(host.dram_bandwidth.value) * host_stream_efficiency,
                                           static_cast<double>(host.cores.value) * core_bytes_per_second);
}

Duration CostModel::host_update(Bytes bytes, std::int64_t sharers, double most_bytes_per_second) const {
  const double share = host_update_bytes_per_second_ / static_cast<double>(sharers);
  return made(static_cast<double>(bytes.count()) / std::min(share, most_bytes_per_second), host_update_source_);
}

double CostModel::peak(DataType type) const { return peak_[static_cast<std::size_t>(precision_of(type))]; }

void CostModel::set_power() {
  if (!times_ || times_->gemm.empty() || times_->facts.tdp_watts <= 0) return;
  power_ = power_of(*times_, gpu_);
  if (gpu_.sustained_flops_per_second) meet_sustained_rate(gpu_.sustained_flops_per_second->value);
}

// The limit at which long products run at this rate; where they don't reach it at the highest clock, all products are
// made that much faster, and the clock is free.
void CostModel::meet_sustained_rate(double flops_per_second) {
  KernelCost product{.kind = KernelClass::gemm, .gemm = {long_side, long_side, long_side}};
  product.flops = Flops(2 * long_side * long_side * long_side);
  product.bytes = Bytes(3 * long_side * long_side * size_of(product.type));
  const Duration highest = duration(product);
  const double seconds = static_cast<double>(product.flops.count()) / flops_per_second;
  const double other = to_seconds(highest.time - highest.clocked);
  const double clock = to_seconds(highest.clocked) / std::max(seconds - other, least_seconds);
  power_->limit_watts = watts(*power_,
                              {.chip_joules = highest.chip_joules,
                               .memory_joules = highest.memory_joules,
                               .clocked_seconds = to_seconds(highest.clocked) * clock_share_,
                               .other_seconds = other},
                              std::min(clock, 1.0) * clock_share_);
  if (clock <= 1) return;
  for (GemmTimes& gemm : times_->gemm) gemm.physics.large_tile = std::min(1.0, gemm.physics.large_tile * clock);
}

Duration CostModel::duration(const KernelCost& kernel) const {
  Duration duration = timed(kernel);
  if (!power_ || kernel.kind == KernelClass::copy_to_device) return duration;
  const auto bytes = static_cast<double>(kernel.bytes.count()), flops = static_cast<double>(kernel.flops.count());
  duration.memory_joules = bytes * power_->memory_byte_joules;
  const double flop_joules = power_->flop_joules[static_cast<std::size_t>(precision_of(kernel.type))];
  const GemmTimes& large = times_->gemm.front();
  const double full_watts = large.flop_joules * peak(DataType::bf16) * large.physics.large_tile;
  duration.chip_joules = bytes * power_->chip_byte_joules + active_share * full_watts * to_seconds(duration.time) +
                         (1 - active_share) * flops * flop_joules;
  // What no clock slows draws the limit at most: with more, its clock would be lower at the same time.
  if (duration.clocked <= Picos(0))
    duration.chip_joules =
        std::clamp((power_->limit_watts - power_->idle_watts) * to_seconds(duration.time) - duration.memory_joules, 0.0,
                   duration.chip_joules);
  return duration;
}

Duration CostModel::timed(const KernelCost& kernel) const {
  switch (kernel.kind) {
    case KernelClass::gemm:
      return gemm(kernel);
    case KernelClass::attention_forward:
    case KernelClass::attention_backward:
      return attention(kernel);
    case KernelClass::memory_bound:
      return memory_bound(kernel);
    case KernelClass::copy_to_device:
      return copy_to_device(kernel);
  }
  return {};
}

// Of the tensor unit's rate. Hopper's promotes sums of each block, or row, apart from the unit.
double CostModel::scaled_rate(const KernelCost& kernel) const {
  if (kernel.type != DataType::fp8 || times_->facts.path != MatrixPath::shared_memory) return 1;
  switch (kernel.scaling) {
    case ProductScaling::tensor:
    case ProductScaling::micro_block:
      return 1;
    case ProductScaling::block:
      return block_scaled_rate;
    case ProductScaling::row:
      return row_scaled_rate;
  }
  return 1;
}

Duration CostModel::gemm(const KernelCost& kernel) const {
  const Precision precision = precision_of(kernel.type);
  const GemmShape& shape = kernel.gemm;
  for (const GemmEfficiency& table : gpu_.gemm_efficiency)
    if (table.precision == precision && !table.curve.empty() && table.origin.provenance == OriginKind::measured) {
      const CurveValue efficiency = gemm_efficiency(gpu_, precision, shape.m, shape.n, shape.k);
      return made(static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * efficiency.value),
                  source_of(table.origin));
    }
  if (!times_ || times_->gemm.empty() || times_->facts.multiprocessors <= 0) return roofline(kernel);
  if (const GemmTimes* own = entry_of(times_->gemm, kernel.type)) return gemm_by_physics(kernel, *own);
  // Another format: the constants of bf16 with this format's peak and bytes. Filling and draining a pipeline is a
  // latency: in units of k it is the shorter the longer a k takes.
  GemmTimes other = times_->gemm.front();
  other.residual = {};
  other.lines.clear();
  other.physics.fill *= std::min(1.0, peak(kernel.type) / peak(DataType::bf16));
  if (kernel.type == DataType::fp32) {
    const DatasheetFacts& facts = times_->facts;
    const double of_one_lane = 2 * facts.multiprocessors * facts.clock_hz;  // flops/s
    const bool is_wide = facts.peak[static_cast<std::size_t>(Precision::fp32)] > few_lanes * of_one_lane;
    other.physics.large_tile = is_wide && of_one_lane > 0 ? wide_vector_tile : narrow_vector_tile;
    other.physics.medium_tile = other.physics.small_tile = 1;
  }
  Duration duration = gemm_by_physics(kernel, other);
  duration.source = CostSource::assumed;
  duration.relative_error = guessed_error;
  return duration;
}

Duration CostModel::gemm_by_physics(const KernelCost& kernel, const GemmTimes& times) const {
  GemmSides sides = sides_of(kernel);
  if (kernel.type == DataType::fp32) sides.alignment = sides.result_alignment = widest_load;
  GemmPhysics physics = times.physics;
  if (kernel.is_cast_before) physics.quantise_us = 0;
  physics.l2_gbps *= clock_share_;
  physics.throttle = 0;
  GemmMachine machine{.peak = peak(kernel.type) * clock_share_ * scaled_rate(kernel),
                      .bandwidth = bytes_per_second_,
                      .multiprocessors = times_->facts.multiprocessors,
                      .l2_bytes = times_->facts.l2_bytes,
                      .misaligned_share = times_->facts.path == MatrixPath::registers ? 1 : misaligned_hopper};
  if (times_->facts.path != MatrixPath::registers && bytes_of(kernel.type, 1) == 2) {
    const double clocks =
        matrix_clock(peak(DataType::bf16), machine.multiprocessors) * clock_share_ * machine.multiprocessors;
    machine.narrowest_along_k = narrowest_along_k * clocks;
    machine.narrowest = narrowest * clocks;
  }
  GemmSeconds seconds = gemm_time(physics, machine, sides);
  if (kernel.before_cuda_12 && kernel.type == DataType::bf16 && kernel.gemm.batch > 1 && sides.alignment < widest_load)
    seconds.total = seconds.clocked = std::max(
        seconds.total, static_cast<double>(kernel.flops.count()) / (vector_rate * clock_share_ * peak(DataType::fp32)));
  if (kernel.one_by_one) seconds.total = std::max(seconds.total, launch_each_us * 1e-6 * sides.batch);
  const std::int64_t smallest = std::min({kernel.gemm.m, kernel.gemm.n, kernel.gemm.k});
  const std::array<double, 3> point = {sides.m, sides.n, sides.k};
  const bool corrected = kernel.gemm.batch == 1 && !seconds.is_narrowest;
  const bool tabled = !times.residual.empty() && corrected;
  const double line = corrected ? line_factor(times, sides.m, sides.n, sides.k) : 1;
  const double residual = line * (tabled ? std::exp(times.residual.at(point)) : 1);
  const bool inside = tabled && times.residual.contains(point);
  Duration duration =
      made(seconds.total * residual,
           times_->carried_over ? CostSource::kin
           : inside             ? CostSource::table
                                : CostSource::fitted,
           of_regime(inside ? times.table_error : times.physics_error, smallest, small_side, medium_side));
  duration.clocked = from_seconds(std::min(seconds.clocked, seconds.total) * residual);
  if (kernel.flops_per_clock <= 0) return duration;
  const Duration older = chunks(kernel);
  return older.time > duration.time ? older : duration;
}

// max(flops / (efficiency peak), bytes / (efficiency bandwidth)) + latency, with the profile's constants.
Duration CostModel::roofline(const KernelCost& kernel) const {
  const RooflineFit& fit = gpu_.roofline;
  const double compute = static_cast<double>(kernel.flops.count()) / (peak(kernel.type) * fit.compute_efficiency.value);
  const double memory = static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * fit.memory_efficiency.value);
  return made(std::max(compute, memory) + to_seconds(fit.latency.value), source_of(fit.compute_efficiency.origin),
              guessed_error);
}

Duration CostModel::attention(const KernelCost& kernel) const {
  if (!times_) return roofline(kernel);
  const bool forward = kernel.kind == KernelClass::attention_forward;
  const std::vector<AttentionTimes>& list = !forward                   ? times_->attention_backward
                                            : kernel.attention.serving ? times_->attention_serving
                                                                       : times_->attention_forward;
  if (kernel.attention.kernel != AttentionKernel::best && times_->facts.multiprocessors > 0)
    return attention_by_physics(kernel, published_attention(kernel));
  if (list.empty() || times_->facts.multiprocessors <= 0) return roofline(kernel);
  if (const AttentionTimes* own = entry_of(list, kernel.type)) return attention_by_physics(kernel, *own);
  Duration duration = attention_by_physics(kernel, list.front());
  duration.source = CostSource::assumed;
  duration.relative_error = guessed_error;
  return duration;
}

AttentionTimes CostModel::published_attention(const KernelCost& kernel) const {
  const AttentionPass pass =
      kernel.kind == KernelClass::attention_forward ? AttentionPass::forward : AttentionPass::backward;
  const bool registers = times_->facts.path == MatrixPath::registers;
  AttentionTimes times;
  times.physics = kernel.attention.kernel == AttentionKernel::triton ? triton_physics(pass, registers)
                                                                     : flash2_physics(pass, registers);
  times.physics_error = times.table_error = {published_error, published_error, published_error};
  return times;
}

Duration CostModel::attention_by_physics(const KernelCost& kernel, const AttentionTimes& times) const {
  const AttentionShape& shape = kernel.attention;
  const auto whole = [](std::int64_t side) { return static_cast<double>(side); };
  AttentionSides sides{.batch = whole(shape.batch),
                       .heads = whole(shape.heads),
                       .kv_heads = whole(shape.kv_heads),
                       .queries = whole(shape.sequence),
                       .keys = whole(shape.key_count()),
                       .key_dim = whole(shape.head_dim),
                       .value_dim = whole(shape.value_dim > 0 ? shape.value_dim : shape.head_dim),
                       .element_bytes = whole(size_of(kernel.type)),
                       .causal = shape.causal,
                       .window = whole(shape.window),
                       .deterministic = shape.deterministic,
                       .dropout = shape.dropout};
  const AttentionPass pass =
      kernel.kind == KernelClass::attention_forward ? AttentionPass::forward : AttentionPass::backward;
  AttentionPhysics physics = times.physics;
  physics.throttle = 0;
  const double clock = matrix_clock(peak(DataType::bf16), times_->facts.multiprocessors) * clock_share_;
  const AttentionMachine machine{peak(kernel.type) * clock_share_, bytes_per_second_, times_->facts.multiprocessors,
                                 clock};
  double copies = 0;
  const bool is_flash2 = shape.kernel != AttentionKernel::best || times_->facts.path == MatrixPath::registers;
  if (is_flash2 && !shape.serving) {
    copies = padding_seconds(machine, sides, pass);
    sides.key_dim = padded_dimension(sides.key_dim);
    sides.value_dim = padded_dimension(sides.value_dim);
  }
  const AttentionSeconds seconds = attention_time(physics, machine, sides, pass);
  const LogGrid& table = shape.causal ? times.causal : times.full;
  const std::array<double, 4> point = attention_point(sides);
  const double residual = table.empty() ? 1 : std::exp(table.at(point));
  const bool inside = !table.empty() && table.contains(point);
  Duration duration = made(
      seconds.total * residual + copies,
      times_->carried_over || times.carried_over ? CostSource::kin
      : inside                                   ? CostSource::table
                                                 : CostSource::fitted,
      of_regime(inside ? times.table_error : times.physics_error, shape.sequence, small_sequence, medium_sequence));
  duration.clocked = from_seconds(seconds.clocked * residual);
  return duration;
}

Duration CostModel::memory_bound(const KernelCost& kernel) const {
  if (kernel.access == MemoryAccess::rows)
    return made(std::max(static_cast<double>(kernel.bytes.count()) / (bytes_per_second_ * rows_share),
                         static_cast<double>(kernel.launches) * short_kernel_us * 1e-6),
                CostSource::assumed, guessed_error);
  Duration duration = streamed(kernel, kernel.whole > Bytes(0) ? kernel.whole : kernel.bytes);
  if (kernel.whole > Bytes(0))
    duration.time = from_seconds(std::max(least_seconds, to_seconds(duration.time) * kernel.share));
  if (kernel.access == MemoryAccess::column_sum) duration.time += from_seconds(column_sum_us * 1e-6);
  if (kernel.access == MemoryAccess::strided) duration.time = from_seconds(to_seconds(duration.time) / strided_share);
  if (kernel.flops_per_clock <= 0) {
    duration.time = std::max(duration.time, kernel.least);
    return duration;
  }
  const Duration products = chunks(kernel);
  return products.time > duration.time ? products : duration;
}

// From published times of two GPUs (docs/internals/operator-times.md), so of kin everywhere.
Duration CostModel::chunks(const KernelCost& kernel) const {
  const double bf16 = peak(DataType::bf16);
  const bool knows_clock = times_ && times_->facts.multiprocessors > 0;
  const double clocks =
      knows_clock ? matrix_clock(bf16, times_->facts.multiprocessors) * clock_share_ * times_->facts.multiprocessors
                  : bf16 / hopper_clock_flops;
  const double seconds = static_cast<double>(kernel.flops.count()) / (kernel.flops_per_clock * clocks);
  Duration duration = made(std::max(seconds, to_seconds(kernel.least)), CostSource::kin, guessed_error);
  duration.clocked = duration.time;
  return duration;
}

// Of a kernel that loads and stores so many bytes 16 at a time.
Duration CostModel::streamed(const KernelCost& kernel, Bytes moved) const {
  const auto bytes = static_cast<double>(std::max<std::int64_t>(moved.count(), 1));
  for (const KernelEfficiency& known : gpu_.kernel_efficiency) {
    if (known.kind != kind_of(kernel.memory)) continue;
    // Less than the smallest that was measured takes as long as that: its fixed part.
    const double counted = std::max(bytes, known.curve.points().front().x);
    const double efficiency = known.curve.at(counted).value;
    if (efficiency > 0) return made(counted / (bytes_per_second_ * efficiency), source_of(known.origin));
  }
  const auto& curve = gpu_.memory_bound_efficiency;
  if (curve && !curve->value.empty() && (!times_ || curve->origin.provenance == OriginKind::measured)) {
    const double efficiency = curve->value.at(bytes).value;
    if (efficiency > 0) return made(bytes / (bytes_per_second_ * efficiency), source_of(curve->origin));
  }
  if (times_)
    for (const MemoryKind kind : {kernel.memory, MemoryKind::elementwise})
      for (const MemoryTimes& times : times_->memory)
        if (times.kind == kind)
          return made(bytes / (bytes_per_second_ * times.efficiency) + times.fixed_us * 1e-6,
                      kind != kernel.memory                        ? CostSource::assumed
                      : times_->carried_over || times.carried_over ? CostSource::kin
                                                                   : CostSource::fitted,
                      times.error);
  return made(bytes / (bytes_per_second_ * default_memory_efficiency) + default_memory_fixed_us * 1e-6,
              CostSource::assumed, guessed_error);
}

Duration CostModel::copy_to_device(const KernelCost& kernel) const {
  return made(static_cast<double>(kernel.bytes.count()) / copy_bytes_per_second_ + to_seconds(gpu_.copy_latency.value),
              CostSource::table);
}

}  // namespace spillway::models
