#include "validation/campaign/calibration_verdict.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/input_error.h"
#include "base/quantile.h"
#include "base/splitmix64.h"
#include "hwprofiles/calibrate/product_shapes.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"
#include "models/cost/cost_model.h"
#include "models/fit/attention_fit.h"
#include "models/fit/gemm_rows.h"
#include "models/fit/memory_fit.h"
#include "models/fit/point_times.h"

namespace spillway::validation {
namespace {

using hwprofiles::ProfileLibrary;
using models::fit::GemmRow;
using models::fit::PointTimes;

constexpr double noise = 0.02;

std::string source_root() { return std::getenv("SPILLWAY_SOURCE_ROOT"); }
GpuProfile bundled(const std::string& name) {
  return ProfileLibrary({source_root() + "/hwprofiles/data"}).load_gpu(name);
}

// Close to normal, variance 1.
double bell(SplitMix64& random) { return std::sqrt(2.0) * static_cast<double>(random.bell()); }

GpuPoint product(std::int64_t m, std::int64_t n, std::int64_t k, double seconds) {
  return {.kind = PointKind::product, .what = "tn", .value = {seconds, 0.01}, .samples = 10, .m = m, .n = n, .k = k};
}

GpuMeasurement empty_measurement() {
  GpuMeasurement measured;
  measured.device.name = "NVIDIA H100 80GB HBM3";
  measured.device.memory = Bytes(85'000'000'000);
  measured.device.sm_count = 132;
  measured.device.l2_cache = Bytes(50 << 20);
  measured.is_whole = true;
  return measured;
}

// A quick calibration's products by a law: seconds(point, what the base's times say), with noise.
template <class Law>
GpuMeasurement measured_by(const GpuProfile& base, std::uint64_t seed, Law law) {
  GpuMeasurement measured = empty_measurement();
  const PointTimes times(base);
  SplitMix64 random(seed);
  for (const hwprofiles::ProductShape& shape : hwprofiles::calibration_shapes(Precision::bf16, true)) {
    if (hwprofiles::layout_name(shape) != "tn") continue;
    GpuPoint point = product(shape.m, shape.n, shape.k, 1);
    point.value.median = law(point, *times.seconds(point)) * std::exp(noise * bell(random));
    measured.points.push_back(point);
  }
  return measured;
}

double median_error(const GpuProfile& profile, const std::vector<GpuPoint>& points) {
  const PointTimes times(profile);
  std::vector<double> errors;
  for (const GpuPoint& point : points) errors.push_back(std::abs(*times.seconds(point) / point.value.median - 1));
  return quantile(errors, 0.5);
}

// A GPU that runs as its tables say: there is nothing to learn but noise, and nothing is learnt.
TEST(CalibrationVerdict, LeavesGoodTablesAlone) {
  const GpuProfile base = bundled("h100-sxm5-80gb");
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const GpuMeasurement measured = measured_by(base, seed, [](const GpuPoint&, double seconds) { return seconds; });
    const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
    const GpuMeasurement truth = measured_by(base, 99, [](const GpuPoint&, double seconds) { return seconds; });
    EXPECT_LE(median_error(verdict.profile, truth.points), 1.01 * median_error(base, truth.points));
    if (!verdict.helps) {
      EXPECT_TRUE(verdict.profile.operator_scales.empty());
    }
  }
}

// One whose multiprocessors are a tenth slower and whose kernels start two microseconds later: three factors find it,
// and held-out errors fall to the noise (median |normal| 0.67 sigma).
TEST(CalibrationVerdict, FindsASlowerGpu) {
  const GpuProfile base = bundled("h100-sxm5-80gb");
  GpuProfile slower = base;
  slower.operator_scales = {{ScaledOperator::product, Precision::bf16, {0.88, {}}, {0.95, {}}, {1.6, {}}}};
  const PointTimes truth(slower);
  const GpuMeasurement measured =
      measured_by(base, 5, [&](const GpuPoint& point, double) { return *truth.seconds(point); });
  const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
  EXPECT_TRUE(verdict.helps);
  ASSERT_EQ(verdict.profile.operator_scales.size(), 1U);
  const OperatorScale& scale = verdict.profile.operator_scales.front();
  EXPECT_NEAR(scale.compute.value, 0.88, 0.02);
  EXPECT_NEAR(scale.fixed.value, 1.6, 0.15);
  EXPECT_EQ(scale.compute.origin.provenance, OriginKind::measured);
  for (const CalibrationRow& row : verdict.rows) {
    EXPECT_GT(row.before, 2 * row.after) << row.what;
    EXPECT_LT(row.after, 0.02) << row.what;
  }
}

// A library that takes other tiles for some m and n, whatever k: lines find them, also for a k that was not measured.
TEST(CalibrationVerdict, FindsOtherTiles) {
  const GpuProfile base = bundled("h100-sxm5-80gb");
  const auto is_other = [](const GpuPoint& point) {
    return splitmix64(static_cast<std::uint64_t>(point.m * 31 + point.n)) % 3 == 0;
  };
  const auto law = [&](const GpuPoint& point, double seconds) { return seconds * (is_other(point) ? 1.15 : 1); };
  const CalibrationVerdict verdict = calibrated_profile(measured_by(base, 7, law), base, "2026-01-02");
  EXPECT_TRUE(verdict.helps);
  EXPECT_FALSE(verdict.profile.product_lines.empty());
  std::vector<GpuPoint> between;
  const PointTimes times(base);
  for (GpuPoint point : measured_by(base, 8, law).points) {
    point.k = point.k * 3 / 2;
    point.value.median = law(point, *times.seconds(point));
    if (is_other(point)) between.push_back(point);
  }
  EXPECT_LT(median_error(verdict.profile, between), 0.8 * median_error(base, between));
}

// What a calibrated profile says survives its file, under a name of its own, and the cost model uses it.
TEST(CalibrationVerdict, GivesASoundProfile) {
  const GpuProfile base = bundled("h100-sxm5-80gb");
  GpuMeasurement measured = measured_by(base, 5, [](const GpuPoint& point, double seconds) {
    return seconds * (splitmix64(static_cast<std::uint64_t>(point.m * 31 + point.n)) % 3 == 0 ? 1.4 : 1.2);
  });
  measured.points.push_back({.kind = PointKind::launch_call, .value = {2.5e-6, 0.05}, .samples = 20});
  measured.points.push_back(
      {.kind = PointKind::sustained_product, .value = {6.1e14, 0.01}, .clock_mhz = 1400, .watts = 690});
  const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
  EXPECT_EQ(verdict.profile.name, "h100-sxm5-80gb-measured");
  EXPECT_EQ(verdict.profile.operator_times_of, "h100-sxm5-80gb");
  const std::string path = testing::TempDir() + "/calibrated_gpu.json";
  {
    std::FILE* file = std::fopen(path.c_str(), "w");
    const std::string text =
        hwprofiles::profile_text(verdict.profile, {OriginKind::measured, "a test", "2026-01-02", 0});
    std::fputs(text.c_str(), file);
    std::fclose(file);
  }
  const ProfileLibrary library({});
  EXPECT_THAT(library.check(path), testing::IsEmpty());
  const GpuProfile read = library.load_gpu(path);
  EXPECT_NEAR(to_seconds(read.launch_call.value), 2.5e-6, 1e-9);
  EXPECT_NEAR(read.sustained_flops_per_second->value, 6.1e14, 1e9);
  EXPECT_EQ(read.product_lines.size(), verdict.profile.product_lines.size());
  EXPECT_FALSE(read.product_lines.empty());
  EXPECT_NEAR(median_error(read, measured.points), median_error(verdict.profile, measured.points), 1e-6);
  // The cost model: without the power's clock, in the ratio that points have.
  const auto seconds_of = [](const GpuProfile& gpu) {
    HardwareProfile machine;
    machine.gpu = gpu;
    machine.gpu.sustained_flops_per_second.reset();
    models::KernelCost kernel{.kind = models::KernelClass::gemm, .gemm = {48, 1024, 4096}};
    kernel.flops = Flops(2LL * 48 * 1024 * 4096);
    kernel.bytes = Bytes(2LL * (48 * 1024 + 48 * 4096 + 1024 * 4096));
    return to_seconds(models::CostModel(machine).duration(kernel).time);
  };
  EXPECT_GT(seconds_of(read), 1.1 * seconds_of(base));
  std::remove(path.c_str());
}

// Faster than the base's peak: another GPU's profile, said and not clipped.
TEST(CalibrationVerdict, RefusesAnEfficiencyOverOne) {
  const GpuProfile base = bundled("h100-pcie-80gb");
  GpuMeasurement measured = empty_measurement();
  measured.points.push_back(product(8192, 8192, 8192, 2.0 * 8192 * 8192 * 8192 / 800e12));
  EXPECT_THROW(
      {
        try {
          calibrated_profile(measured, base, "");
        } catch (const InputError& error) {
          EXPECT_EQ(error.file(), "--base");
          EXPECT_THAT(error.cause(), testing::HasSubstr("8192 x 8192 x 8192"));
          throw;
        }
      },
      InputError);
  measured.points = {
      {.kind = PointKind::memory_kernel, .what = "copy", .value = {1e-3, 0}, .bytes = Bytes(3'000'000'000)}};
  EXPECT_THROW(calibrated_profile(measured, base, ""), InputError);
  measured.points.clear();
  EXPECT_THROW(calibrated_profile(measured, base, ""), InputError);
}

// Points of training's own kernels, as the campaign's Python writes them: each predicted by the base, times a factor.
struct Operation {
  const char* what;
  const char* source;
  double factor;
};
void add_operations(GpuMeasurement& measured, const GpuProfile& base, const Operation& operation) {
  const PointTimes times(base);
  SplitMix64 random(11);
  const bool is_attention = std::string(operation.what).starts_with("attention");
  const auto add = [&](GpuPoint point) {
    point.kind = PointKind::operation;
    point.what = operation.what;
    point.source = is_attention ? "cudnn" : "pytorch";
    if (base.architecture == "Ampere" && is_attention) point.source = "flash-attention";
    point.value = {1, 0.01};
    point.value.median = times.seconds(point).value() * operation.factor * std::exp(0.01 * bell(random));
    point.source = operation.source;
    measured.points.push_back(point);
  };
  for (const std::int64_t rows : {1, 2, 3, 4, 6, 8, 12, 16})
    for (const std::int64_t width : {8, 12, 16, 20, 25, 32, 40, 64}) {
      if (is_attention)
        add({.batch = rows, .heads = width, .sequence = 1024 + 512 * (rows % 3), .head_dim = 64 + 64 * (width % 2)});
      else
        add({.bytes = Bytes(rows * width * (1 << 20))});
    }
}
const OperatorScale* scale_of(const GpuProfile& profile, ScaledOperator of) {
  for (const OperatorScale& scale : profile.operator_scales)
    if (scale.of == of) return &scale;
  return nullptr;
}

// Kernels an eighth slower than the tables say: one factor each finds it, also for kinds without times of their own.
TEST(ProductionKernels, FactorsAreFound) {
  const GpuProfile base = bundled("h100-sxm5-80gb");
  const std::pair<Operation, ScaledOperator> operations[] = {
      {{"attention_forward", "cudnn in PyTorch 2.11", 1.14}, ScaledOperator::attention_forward},
      {{"attention_backward", "cudnn in PyTorch 2.11", 1.14}, ScaledOperator::attention_backward},
      {{"norm_forward", "pytorch in PyTorch 2.11", 1.14}, ScaledOperator::norm_forward},
      {{"norm_backward", "pytorch in PyTorch 2.11", 1.14}, ScaledOperator::norm_backward},
      {{"cross_entropy", "pytorch in PyTorch 2.11", 1.14}, ScaledOperator::cross_entropy},
      {{"optimizer", "pytorch in PyTorch 2.11", 1.14}, ScaledOperator::optimizer}};
  GpuMeasurement measured = empty_measurement();
  for (const auto& [operation, of] : operations) add_operations(measured, base, operation);
  const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
  EXPECT_TRUE(verdict.helps);
  EXPECT_EQ(verdict.rows.size(), std::size(operations));
  for (const CalibrationRow& row : verdict.rows) {
    EXPECT_GT(row.before, 0.1) << row.what;
    EXPECT_LT(row.after, 0.05) << row.what;
  }
  for (const auto& [operation, of] : operations) {
    const OperatorScale* scale = scale_of(verdict.profile, of);
    ASSERT_NE(scale, nullptr) << operation.what;
    EXPECT_LT(scale->compute.value * scale->memory.value, 0.95) << operation.what;
  }
}

// What no training runs, and attention of another library than the tables are of, enters no profile and is told.
TEST(ProductionKernels, OthersAreNotUsed) {
  const GpuProfile hopper = bundled("h100-sxm5-80gb"), ampere = bundled("a100-sxm4-80gb");
  struct Case {
    const GpuProfile& base;
    Operation operation;
    bool is_used;
  };
  const Case cases[] = {{hopper, {"attention_forward", "spillway's trainer", 3}, false},
                        {hopper, {"attention_forward", "", 3}, false},
                        {hopper, {"attention_forward", "flash-attention in PyTorch 2.11", 1.5}, false},
                        {ampere, {"attention_forward", "flash-attention in PyTorch 2.11", 1.5}, true},
                        {ampere, {"attention_forward", "cudnn in PyTorch 2.11", 1.5}, false},
                        {hopper, {"norm_forward", "cudnn 9.19", 1.5}, false},
                        {hopper, {"optimizer", "spillway's trainer", 1.5}, false},
                        {hopper, {"optimizer", "pytorch 2.11", 1.5}, true}};
  for (const Case& one : cases) {
    SCOPED_TRACE(one.base.name + ": " + one.operation.what + " of " + one.operation.source);
    GpuMeasurement measured = empty_measurement();
    add_operations(measured, one.base, one.operation);
    const CalibrationVerdict verdict = calibrated_profile(measured, one.base, "2026-01-02");
    EXPECT_EQ(verdict.profile.operator_scales.empty(), !one.is_used);
    EXPECT_EQ(verdict.helps, one.is_used);
    EXPECT_EQ(std::any_of(verdict.notes.begin(), verdict.notes.end(),
                          [](const std::string& note) { return note.find("are not used") != std::string::npos; }),
              !one.is_used);
  }
}

// cuDNN's attention by its graph API counts where PyTorch's points of it are not there; its norms never do.
TEST(ProductionKernels, GraphsCountWherePyTorchIsNot) {
  const GpuProfile hopper = bundled("h100-sxm5-80gb");
  const Operation graphs[] = {{"attention_forward", "cudnn-graph 9.19.0", 1.14},
                              {"attention_backward", "cudnn-graph 9.19.0", 1.14},
                              {"norm_backward", "cudnn-graph 9.19.0", 1.14}};
  GpuMeasurement measured = empty_measurement();
  for (const Operation& operation : graphs) add_operations(measured, hopper, operation);
  CalibrationVerdict verdict = calibrated_profile(measured, hopper, "2026-01-02");
  EXPECT_TRUE(verdict.helps);
  EXPECT_NE(scale_of(verdict.profile, ScaledOperator::attention_forward), nullptr);
  EXPECT_NE(scale_of(verdict.profile, ScaledOperator::attention_backward), nullptr);
  EXPECT_EQ(scale_of(verdict.profile, ScaledOperator::norm_backward), nullptr);

  // PyTorch's forwards, 1.5 times as long as the tables say: the graph's forwards give way, its backwards stay.
  add_operations(measured, hopper, {"attention_forward", "cudnn in PyTorch 2.11", 1.5});
  verdict = calibrated_profile(measured, hopper, "2026-01-02");
  const OperatorScale* forward = scale_of(verdict.profile, ScaledOperator::attention_forward);
  ASSERT_NE(forward, nullptr);
  EXPECT_NEAR(forward->compute.value, 1 / 1.5, 0.06);
  const OperatorScale* backward = scale_of(verdict.profile, ScaledOperator::attention_backward);
  ASSERT_NE(backward, nullptr);
  EXPECT_GT(backward->compute.value, 0.8);
  EXPECT_THAT(verdict.notes, testing::Contains(testing::HasSubstr("of attention_forward of cudnn-graph 9.19.0 are not "
                                                                  "used: those of cuDNN in PyTorch count")));
  EXPECT_THAT(verdict.notes,
              testing::Not(testing::Contains(testing::HasSubstr("of attention_backward of cudnn-graph"))));

  // Ampere's attention times are FlashAttention's.
  GpuMeasurement other = empty_measurement();
  const GpuProfile ampere = bundled("a100-sxm4-80gb");
  add_operations(other, ampere, {"attention_forward", "cudnn-graph 9.19.0", 1.5});
  EXPECT_TRUE(calibrated_profile(other, ampere, "2026-01-02").profile.operator_scales.empty());
}

// A second file of points is of the same card, or refused.
TEST(ProductionKernels, ComeFromTheSameCard) {
  GpuMeasurement measured = empty_measurement(), added = empty_measurement();
  measured.points.push_back(product(64, 64, 64, 1e-5));
  add_operations(added, bundled("h100-sxm5-80gb"), {"optimizer", "pytorch", 1});
  const std::size_t count = added.points.size();
  add_points(measured, added, "b.jsonl");
  EXPECT_EQ(measured.points.size(), count + 1);
  added.is_whole = false;
  add_points(measured, added, "b.jsonl");
  EXPECT_FALSE(measured.is_whole);
  added.device.sm_count = 114;
  try {
    add_points(measured, added, "b.jsonl");
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "b.jsonl");
    EXPECT_THAT(error.cause(), testing::HasSubstr("114 multiprocessors"));
  }
}

// The products that were measured on a real H100, where they are at hand (CONTRIBUTING.md): a quick calibration
// emulated by the points that it would measure, with 2 % of noise. By class of sizes and over all.
std::string table_at(const std::string& name) {
  const char* folder = std::getenv("SPILLWAY_TABLES");
  for (const std::string& place : {std::string(folder != nullptr ? folder : ""), source_root() + "/../shared/data/ops",
                                   source_root() + "/shared/data/ops"})
    if (std::filesystem::exists(place + "/" + name)) return place + "/" + name;
  return "";
}

class MeasuredProducts : public testing::Test {
 protected:
  static std::string table() { return table_at("aiconfigurator/h100_sxm__gemm_perf__trtllm_1.3.0rc20.csv.gz"); }
  static std::array<double, 4> errors(const GpuProfile& profile, const std::vector<GemmRow>& rows) {
    const PointTimes times(profile);
    std::array<std::vector<double>, 4> all;
    for (const GemmRow& row : rows) {
      const GpuPoint point = product(row.m, row.n, row.k, row.seconds);
      const double error = std::abs(*times.seconds(point) / row.seconds - 1);
      all[models::fit::product_class(point)].push_back(error);
      all[3].push_back(error);
    }
    std::array<double, 4> medians{};
    for (std::size_t c = 0; c < all.size(); ++c) medians[c] = quantile(all[c], 0.5);
    return medians;
  }
};

TEST_F(MeasuredProducts, AreNotPredictedWorseByAQuickCalibration) {
  if (table().empty()) GTEST_SKIP() << "the measured tables are not beside the checkout";
  const GpuProfile base = bundled("h100-sxm5-80gb");
  const std::vector<GemmRow> rows = models::fit::read_gemm_rows(table(), "bfloat16");
  ASSERT_GT(rows.size(), 30'000U);
  std::set<std::array<std::int64_t, 3>> asked;
  for (const hwprofiles::ProductShape& shape : hwprofiles::calibration_shapes(Precision::bf16, true))
    if (hwprofiles::layout_name(shape) == "tn") asked.insert({shape.m, shape.n, shape.k});
  const std::array<double, 4> before = errors(base, rows);
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    SplitMix64 random(seed);
    GpuMeasurement measured = empty_measurement();
    for (const GemmRow& row : rows)
      if (asked.count({row.m, row.n, row.k}) != 0)
        measured.points.push_back(product(row.m, row.n, row.k, row.seconds * std::exp(noise * bell(random))));
    ASSERT_GT(measured.points.size(), 500U);
    const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
    const std::array<double, 4> after = errors(verdict.profile, rows);
    std::string told;
    for (std::size_t c = 0; c < 4; ++c) {
      EXPECT_LE(after[c], before[c]) << c;
      told += fmt::format(" {:.4f} to {:.4f} %,", 100 * before[c], 100 * after[c]);
    }
    EXPECT_LT(after[3], before[3]);
    std::printf("seed %d, %zu points, helps %d:%s\n", static_cast<int>(seed), measured.points.size(),
                static_cast<int>(verdict.helps), told.c_str());
  }
}

// cuDNN's attention and PyTorch's norms that NVIDIA measured on an H200, where they are at hand, as a file of
// production kernels' points would bring them: what is kept of them predicts no group of them worse.
TEST(MeasuredProduction, IsNotPredictedWorse) {
  const std::string norms = table_at("cudnn-frontend/norms_results_h200_all_models_20260227_035147.csv");
  if (norms.empty()) GTEST_SKIP() << "the measured tables are not beside the checkout";
  const std::string folder = std::filesystem::path(norms).parent_path();
  const GpuProfile base = bundled("h200-sxm-141gb");
  GpuMeasurement measured = empty_measurement();
  measured.device = {.name = "NVIDIA H200", .memory = Bytes(150'000'000'000), .sm_count = 132};
  for (const auto& [what, pass] : {std::pair("attention_forward", models::AttentionPass::forward),
                                   {"attention_backward", models::AttentionPass::backward}})
    for (const models::fit::AttentionRow& row : models::fit::read_training_rows(
             folder, "sdpa_benchmark_training_results_h200_919_only_cudnn_llama3.1", "bfloat16", pass)) {
      const auto whole = [](double side) { return static_cast<std::int64_t>(side); };
      measured.points.push_back({.kind = PointKind::operation,
                                 .what = what,
                                 .source = "cudnn 9.19",
                                 .value = {row.seconds, 0.01},
                                 .batch = whole(row.sides.batch),
                                 .heads = whole(row.sides.heads),
                                 .kv_heads = whole(row.sides.kv_heads),
                                 .sequence = whole(row.sides.queries),
                                 .head_dim = whole(row.sides.key_dim),
                                 .causal = row.sides.causal});
    }
  ASSERT_GT(measured.points.size(), 10U);
  for (const auto& [what, kind] : {std::pair("norm_forward", models::MemoryKind::norm_forward),
                                   {"norm_backward", models::MemoryKind::norm_backward}})
    for (const models::fit::MemoryRow& row : models::fit::read_norm_rows(norms, kind))
      measured.points.push_back({.kind = PointKind::operation,
                                 .what = what,
                                 .source = "pytorch",
                                 .value = {row.seconds, 0.01},
                                 .bytes = Bytes(std::llround(row.bytes))});
  ASSERT_GT(measured.points.size(), 30U);
  const std::vector<GpuPoint> rows = std::exchange(measured.points, {});
  SplitMix64 random(1);
  for (int i = 0; i < 6; ++i)
    for (GpuPoint point : rows) {
      point.value.median *= std::exp(noise * bell(random));
      measured.points.push_back(point);
    }
  const CalibrationVerdict verdict = calibrated_profile(measured, base, "2026-01-02");
  for (const char* what : {"attention_forward", "attention_backward", "norm_forward", "norm_backward"}) {
    std::vector<GpuPoint> group;
    for (const GpuPoint& point : rows)
      if (point.what == what) group.push_back(point);
    EXPECT_LE(median_error(verdict.profile, group), median_error(base, group)) << what;
    std::printf("%s: %zu points, %.2f to %.2f %%\n", what, group.size(), 100 * median_error(base, group),
                100 * median_error(verdict.profile, group));
  }
}

}  // namespace
}  // namespace spillway::validation
