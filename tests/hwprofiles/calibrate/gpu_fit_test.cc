#include "hwprofiles/calibrate/gpu_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/input_error.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"

namespace spillway::hwprofiles {
namespace {

using testing::Contains;
using testing::HasSubstr;

GpuProfile base() {
  return ProfileLibrary({std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/hwprofiles/data"})
      .load_gpu("h200-sxm-141gb");
}

Spread exactly(double value) { return {value, 0}; }

// Products at a share of the peak that depends on their class; memory kernels and copies as latency + bytes / rate.
GpuMeasurement measured_like(const GpuProfile& gpu) {
  GpuMeasurement measured;
  measured.name = "NVIDIA Test";
  measured.memory = Bytes(150'000'000'000);
  measured.sm_count = 132;
  measured.launch_call = {3e-6, 0.1};
  measured.kernel_gap = exactly(1e-6);
  const double peak = gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)]->value;
  for (const std::int64_t side : {128, 1024, 4096}) {
    const double share = side >= 2048 ? 0.8 : side >= 512 ? 0.6 : 0.1;
    const double flops = 2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
    measured.products.push_back({Precision::bf16, side, side, side, exactly(flops / (share * peak))});
  }
  const double memory = to_bytes_per_second(gpu.memory_bandwidth.value);
  for (const std::int64_t bytes : {1 << 16, 1 << 24, 1 << 30})
    measured.memory_bound.push_back(
        {"copy", Bytes(bytes), true, exactly(2e-6 + static_cast<double>(bytes) / (0.9 * memory))});
  for (const char* direction : {"to device", "to host"})
    for (const bool pinned : {true, false})
      for (const std::int64_t bytes : {4 << 10, 1 << 20, 1 << 28})
        measured.copies.push_back(
            {direction, Bytes(bytes), pinned, exactly(8e-6 + static_cast<double>(bytes) / (pinned ? 50e9 : 10e9))});
  measured.duplex_bytes_per_second = exactly(80e9);
  measured.kernel_rate_alone = 4e12;
  measured.kernel_rate_beside_copies = 3.9e12;
  measured.copy_rate_beside_kernels = 50e9;
  return measured;
}

// Quick in less than 90 s, full in less than six minutes, whatever the parts have to do.
TEST(GpuTimeBudget, StaysWithinWhatIsPromised) {
  const GpuTimeBudget budget;
  const double quick = budget.launches + budget.driver_calls + budget.memory + budget.products + budget.copies +
                       budget.sharing + budget.step_kernels + budget.device_and_slack;
  EXPECT_LT(quick, 90);
  EXPECT_LT(GpuTimeBudget::full * quick, 360);
}

TEST(GpuFit, FindsTheModelBehindTheFigures) {
  const GpuProfile gpu = base();
  const GpuFit fit = fit_gpu(measured_like(gpu), gpu, "2026-01-02");
  const GpuProfile& profile = fit.profile;
  EXPECT_EQ(profile.name, "h200-sxm-141gb-measured");
  EXPECT_EQ(profile.memory.value, Bytes(150'000'000'000));
  EXPECT_EQ(profile.launch_call.value, microseconds(3));
  EXPECT_EQ(profile.launch_call.origin.spread, 0.1);
  EXPECT_EQ(profile.launch_call.origin.provenance, OriginKind::measured);
  EXPECT_NEAR(gemm_efficiency(profile, Precision::bf16, 4096, 4096, 4096).value, 0.8, 1e-9);
  EXPECT_NEAR(gemm_efficiency(profile, Precision::bf16, 1024, 1024, 1024).value, 0.6, 1e-9);
  EXPECT_NEAR(gemm_efficiency(profile, Precision::bf16, 128, 128, 128).value, 0.1, 1e-9);
  // Sides of 1024 and more: 0.6 and 0.8, median 0.7.
  EXPECT_NEAR(profile.roofline.compute_efficiency.value, 0.7, 1e-9);
  // 1 GiB: 2 us beside 249 us.
  EXPECT_NEAR(profile.roofline.memory_efficiency.value, 0.9, 0.01);
  EXPECT_NEAR(to_bytes_per_second(profile.host_to_device_bandwidth->value), 50e9, 0.1e9);
  EXPECT_NEAR(to_seconds(profile.copy_latency.value), 8e-6, 0.1e-6);
  // 256 MiB: 5.38 ms pinned, 26.85 ms pageable.
  EXPECT_NEAR(profile.pageable_copy_fraction.value, 0.2, 0.001);
  // (4 - 3.9) TB/s / 50 GB/s = 2.
  EXPECT_NEAR(profile.hbm_contention_factor.value, 2, 1e-9);
}

// Each kind of kernel by itself: 0.6 of the bandwidth for norms at 256 MiB, 0.3 of the bf16 peak for attention.
// Together (3.9 TB/s + 50 GB/s) over the datasheet's bandwidth; copies 50 of 60 GB/s beside kernels.
TEST(GpuFit, KeepsKindsApart) {
  const GpuProfile gpu = base();
  const double memory = to_bytes_per_second(gpu.memory_bandwidth.value);
  const double peak = gpu.peak_flops_per_second[static_cast<std::size_t>(Precision::bf16)]->value;
  GpuMeasurement measured = measured_like(gpu);
  measured.kernels = {{KernelKind::attention_forward, 1e12, exactly(1e12 / (0.3 * peak))},
                      {KernelKind::norm_forward, 1 << 28, exactly((1 << 28) / (0.6 * memory))},
                      {KernelKind::norm_forward, 1 << 20, exactly((1 << 20) / (0.2 * memory))}};
  measured.copy_rate_alone = 60e9;
  measured.two_stream_speedup = 1.8;
  measured.event_gap = exactly(2e-6);
  measured.sm_clock_mhz = 1755;
  measured.milliwatts = 650'000;
  const GpuProfile profile = fit_gpu(measured, gpu, "2026-01-02").profile;
  ASSERT_EQ(profile.kernel_efficiency.size(), 2U);
  EXPECT_EQ(profile.kernel_efficiency[0].kind, KernelKind::norm_forward);
  EXPECT_NEAR(profile.kernel_efficiency[0].curve.at(1 << 28).value, 0.6, 1e-9);
  EXPECT_NEAR(profile.kernel_efficiency[0].curve.at(1 << 20).value, 0.2, 1e-9);
  EXPECT_NEAR(profile.kernel_efficiency[1].curve.at(1e12).value, 0.3, 1e-9);
  EXPECT_NEAR(profile.shared_hbm_fraction->value, (3.9e12 + 50e9) / memory, 1e-9);
  EXPECT_NEAR(profile.copy_fraction_beside_kernels->value, 50.0 / 60, 1e-9);
  EXPECT_NEAR(profile.two_stream_speedup->value, 1.8, 1e-9);
  EXPECT_EQ(profile.event_gap->value, microseconds(2));
  EXPECT_NEAR(profile.loaded_clock_mhz->value, 1755, 1e-9);
  EXPECT_NEAR(profile.loaded_watts->value, 650, 1e-9);
  EXPECT_EQ(profile.loaded_watts->origin.provenance, OriginKind::measured);
}

// Counters that the system refuses, and parts that took too long, are told.
TEST(GpuFit, TellsWhatItCouldNotSee) {
  const GpuProfile gpu = base();
  GpuMeasurement measured = measured_like(gpu);
  measured.no_activity_records = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES";
  measured.left_out = {"products"};
  const GpuFit fit = fit_gpu(measured, gpu, "");
  EXPECT_THAT(fit.notes, Contains(HasSubstr("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES")));
  EXPECT_THAT(fit.notes, Contains(HasSubstr("products")));
}

// Prices, peaks and what was not measured stay with their own sources; other precisions keep their tables.
TEST(GpuFit, KeepsWhatItDidNotMeasure) {
  const GpuProfile gpu = base();
  const GpuFit fit = fit_gpu(measured_like(gpu), gpu, "2026-01-02");
  EXPECT_EQ(fit.profile.malloc_cost.value, gpu.malloc_cost.value);
  EXPECT_EQ(fit.profile.malloc_cost.origin.source, gpu.malloc_cost.origin.source);
  EXPECT_EQ(fit.profile.memory_bandwidth.value, gpu.memory_bandwidth.value);
  EXPECT_EQ(gemm_efficiency(fit.profile, Precision::fp8, 4096, 4096, 4096).value,
            gemm_efficiency(gpu, Precision::fp8, 4096, 4096, 4096).value);
  EXPECT_THROW(fit_gpu({}, gpu, ""), InputError);
}

TEST(GpuFit, TellsOfRatesAboveTheMemory) {
  const GpuProfile gpu = base();
  GpuMeasurement measured = measured_like(gpu);
  measured.memory_bound.push_back({"read", Bytes(1 << 22), true, exactly((1 << 22) / 8e12)});
  const GpuFit fit = fit_gpu(measured, gpu, "");
  EXPECT_THAT(fit.notes, Contains(HasSubstr("L2")));
  EXPECT_EQ(fit.profile.memory_bound_efficiency->value.at(1 << 22).value, 1);
}

TEST(GpuFit, IsASoundProfile) {
  const GpuProfile gpu = base();
  GpuMeasurement measured = measured_like(gpu);
  measured.kernels = {{KernelKind::softmax, 1 << 28, exactly((1 << 28) / 2e12)}};
  measured.event_gap = exactly(2e-6);
  const GpuFit fit = fit_gpu(measured, gpu, "2026-01-02");
  const std::string path = testing::TempDir() + "/written_gpu.json";
  std::ofstream(path) << profile_text(fit.profile, {OriginKind::measured, "spillway calibrate", "2026-01-02", 0});
  const ProfileLibrary library({});
  EXPECT_THAT(library.check(path), testing::IsEmpty());
  const GpuProfile read = library.load_gpu(path);
  EXPECT_NEAR(gemm_efficiency(read, Precision::bf16, 4096, 4096, 4096).value, 0.8, 1e-8);
  EXPECT_EQ(read.launch_call.origin.spread, 0.1);
  ASSERT_EQ(read.kernel_efficiency.size(), 1U);
  EXPECT_EQ(read.kernel_efficiency[0].kind, KernelKind::softmax);
  EXPECT_EQ(read.event_gap->value, microseconds(2));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace spillway::hwprofiles
