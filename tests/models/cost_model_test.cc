#include "models/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "models/cost_curves.h"
#include "tests/models/example_profile.h"
#include "traces/base/byte_source.h"

namespace spillway {
namespace {

KernelCost gemm(std::int64_t m, std::int64_t n, std::int64_t k, DataType type = DataType::bf16) {
  return {.kind = KernelClass::gemm,
          .type = type,
          .gemm = {m, n, k, 1},
          .flops = Flops(2 * m * n * k),
          .bytes = Bytes((m * k + k * n + m * n) * size_of(type))};
}

KernelCost attention(KernelClass kind, std::int64_t sequence, bool causal) {
  const std::int64_t products = kind == KernelClass::attention_forward ? 2 : 5;
  return {
      .kind = kind,
      .attention = {.batch = 1, .heads = 64, .kv_heads = 8, .sequence = sequence, .head_dim = 128, .causal = causal},
      .flops = Flops(products * 2 * 64 * sequence * sequence * 128 / (causal ? 2 : 1))};
}

double ms(const Duration& duration) { return to_seconds(duration.time) * 1e3; }

// Without curves or tables: max(flops / (0.8 peak), bytes / (0.75 bandwidth)) + 2 us.
TEST(CostModel, RooflineOfAnUnknownArchitecture) {
  const CostModel cost(example_profile());
  EXPECT_NEAR(to_seconds(cost.duration(gemm(4096, 4096, 4096)).time), 2 * std::pow(4096.0, 3) / 0.8e15 + 2e-6, 1e-11);
  EXPECT_NEAR(to_seconds(cost.duration(gemm(1, 4096, 4096)).time), 2 * (4096.0 * 4096 + 2 * 4096) / 2.25e12 + 2e-6,
              1e-11);
  EXPECT_NEAR(to_seconds(cost.duration(gemm(4096, 4096, 4096, DataType::fp32)).time),
              2 * std::pow(4096.0, 3) / 4e13 + 2e-6, 1e-11);
}

TEST(CostModel, MemoryBoundKernelsMoveTheirBytes) {
  const CostModel cost(example_profile());
  const Duration duration = cost.duration({.bytes = Bytes(2'400'000'000)});  // at 0.8 x 3 TB/s: 1 ms
  EXPECT_NEAR(ms(duration), 1.003, 1e-6);
  EXPECT_EQ(duration.source, CostSource::assumed);
}

TEST(CostModel, CopiesRunAtThePcieRate) {
  const CostModel cost(example_profile());
  const double rate = to_bytes_per_second(pcie_raw_rate(5, 16)) * 0.85;
  EXPECT_NEAR(to_seconds(cost.duration({.kind = KernelClass::copy_to_device, .bytes = Bytes(1 << 30)}).time),
              (1 << 30) / rate + 5e-6, 1e-9);
}

TEST(CostModel, AMeasuredTableGoesBeforeTheCurvesAFittedOneAfter) {
  HardwareProfile profile = example_profile();
  profile.gpu.architecture = "Hopper";
  const Duration by_curve = CostModel(profile).duration(gemm(4096, 4096, 4096));
  EXPECT_EQ(by_curve.source, CostSource::fitted);
  GemmEfficiency table{.precision = Precision::bf16, .curve = Curve({{1, 0.25}}, Curve::Scale::log)};
  table.origin.provenance = OriginKind::fitted;
  profile.gpu.gemm_efficiency = {table};
  EXPECT_EQ(CostModel(profile).duration(gemm(4096, 4096, 4096)).time, by_curve.time);
  profile.gpu.gemm_efficiency[0].origin.provenance = OriginKind::measured;
  const Duration by_table = CostModel(profile).duration(gemm(4096, 4096, 4096));
  EXPECT_EQ(by_table.source, CostSource::table);
  EXPECT_NEAR(to_seconds(by_table.time), 2 * std::pow(4096.0, 3) / 0.25e15, 1e-11);
}

// A GPU twice as fast in arithmetic and memory halves all but the fixed part.
TEST(CostModel, TwiceTheMachineHalvesTheVariablePart) {
  HardwareProfile profile = example_profile();
  profile.gpu.architecture = "Hopper";
  HardwareProfile twice = profile;
  twice.gpu.memory_bandwidth.value = profile.gpu.memory_bandwidth.value * 2;
  twice.gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)]->value *= 2;
  const double fixed = find_cost_curves("Hopper")->gemm.fixed_us * 1e-3;
  for (const auto& kernel : {gemm(8192, 4096, 4096), gemm(8, 4096, 4096), gemm(1000, 1000, 1000)})
    EXPECT_NEAR(ms(CostModel(twice).duration(kernel)) - fixed, (ms(CostModel(profile).duration(kernel)) - fixed) / 2,
                1e-6);
}

// One more row than fills the tiles costs at least as much; one more wave costs more.
TEST(CostModel, TimeDoesNotFallWithSize) {
  HardwareProfile profile = example_profile();
  for (const char* architecture : {"Ampere", "Hopper", "Blackwell", "Ada"}) {
    profile.gpu.architecture = architecture;
    const CostModel cost(profile);
    Picos last{};
    for (std::int64_t m = 64; m <= 16'384; m += 320) {
      const Picos time = cost.duration(gemm(m, 4096, 4096)).time;
      EXPECT_GE(time, last) << architecture << " " << m;
      last = time;
    }
  }
}

// cuDNN 9.19 on H200, bf16, 64 heads of 128, 8 key heads: milliseconds forwards and backwards. NVIDIA cudnn-frontend
// 3929da2, benchmark/sdpa_benchmark_training; these rows were used in the fit (mean error 2.1 % and 2.7 %, worst at the
// shortest sequence), so this pins it, it validates nothing.
TEST(CostModel, AttentionStaysWithinTheFit) {
  HardwareProfile profile = example_profile();
  profile.gpu.architecture = "Hopper";
  profile.gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)]->value = 989.4e12;
  const CostModel cost(profile);
  struct Row {
    std::int64_t sequence;
    bool causal;
    double forward, backward;
  };
  for (const Row& row :
       {Row{32'768, true, 25.566, 75.688}, Row{32'768, false, 50.769, 153.841}, Row{8192, true, 1.708, 5.083},
        Row{8192, false, 3.182, 9.262}, Row{2048, true, 0.142, 0.464}, Row{2048, false, 0.217, 0.681}}) {
    EXPECT_NEAR(ms(cost.duration(attention(KernelClass::attention_forward, row.sequence, row.causal))) / row.forward, 1,
                0.11);
    EXPECT_NEAR(ms(cost.duration(attention(KernelClass::attention_backward, row.sequence, row.causal))) / row.backward,
                1, 0.11);
  }
}

struct Measured {
  const char* file;
  const char* architecture;
  double peak, bandwidth, multiprocessors;
};

// Rows kept out of the fit: a fifth, by a hash of the shape.
bool held_out(std::uint64_t m, std::uint64_t n, std::uint64_t k) {
  std::uint64_t hash = (m * 1'000'003 + n) * 1'000'003 + k;
  hash ^= hash >> 29;
  hash *= 0xbf58476d1ce4e5b9U;
  hash ^= hash >> 32;
  return hash % 5 == 0;
}

std::filesystem::path measured_tables() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::filesystem::path(root == nullptr ? "." : root) / "../shared/data/ops/aiconfigurator";
}

// Absolute relative errors on the held-out bf16 rows, sorted.
std::vector<double> gemm_errors(const Measured& gpu, std::int64_t smallest_side) {
  const std::string path = (measured_tables() / gpu.file).string();
  std::istringstream text(ByteSource::open(path, 1U << 30).read_all(1U << 30));
  std::string line, cell;
  std::getline(text, line);
  std::map<std::string, std::size_t> column;
  for (std::istringstream header(line); std::getline(header, cell, ',');) column.emplace(cell, column.size());
  std::vector<double> errors;
  while (std::getline(text, line)) {
    std::vector<std::string> cells;
    for (std::istringstream row(line); std::getline(row, cell, ',');) cells.push_back(cell);
    if (cells.size() < column.size() || cells[column.at("gemm_dtype")] != "bfloat16") continue;
    const auto side = [&](const char* name) { return std::stoull(cells[column.at(name)]); };
    const std::uint64_t m = side("m"), n = side("n"), k = side("k");
    if (std::min({m, n, k}) < static_cast<std::uint64_t>(smallest_side) || !held_out(m, n, k)) continue;
    const double predicted =
        gemm_seconds(find_cost_curves(gpu.architecture)->gemm, static_cast<double>(m), static_cast<double>(n),
                     static_cast<double>(k), 1, 2, gpu.peak, gpu.bandwidth, gpu.multiprocessors);
    errors.push_back(std::abs(predicted / (std::stod(cells[column.at("latency")]) * 1e-3) - 1));
  }
  std::sort(errors.begin(), errors.end());
  return errors;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

// Two collections of the same framework on the same GPU type differ by 3.3 % in the median, 4.9 % in the mean.
TEST(CostModel, GemmErrorOnHeldOutShapes) {
  if (!std::filesystem::exists(measured_tables())) GTEST_SKIP() << "no ../shared/data/ops beside the source tree";
  for (const Measured& gpu :
       {Measured{"a100_sxm__gemm_perf__trtllm_1.0.0.csv.gz", "Ampere", 312e12, 2.039e12, 108},
        Measured{"h100_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz", "Hopper", 989.4e12, 3.35e12, 132},
        Measured{"h200_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz", "Hopper", 989.4e12, 4.8e12, 132},
        Measured{"b200_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz", "Blackwell", 2250e12, 8e12, 148}}) {
    const std::vector<double> large = gemm_errors(gpu, 1024), all = gemm_errors(gpu, 1);
    ASSERT_GT(large.size(), 100U);
    std::printf(
        "%.8s: %zu shapes with sides >= 1024: median %.1f %%, mean %.1f %%; %zu of all sizes: %.1f %%, %.1f %%\n",
        gpu.file, large.size(), 100 * large[large.size() / 2], 100 * mean_of(large), all.size(),
        100 * all[all.size() / 2], 100 * mean_of(all));
    EXPECT_LT(large[large.size() / 2], 0.055) << gpu.file;
    EXPECT_LT(mean_of(large), 0.07) << gpu.file;
    EXPECT_LT(mean_of(all), 0.10) << gpu.file;
  }
}

}  // namespace
}  // namespace spillway
