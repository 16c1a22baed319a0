// The measuring code as it is, over a virtual GPU whose constants are known (tests/virtual_gpu).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "base/byte_source.h"
#include "base/input_error.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "hwprofiles/calibrate/product_shapes.h"
#include "tests/virtual_gpu/virtual_gpu.h"

namespace spillway::hwprofiles {
namespace {

using virtual_gpu::Constants;

class GpuMeasure : public testing::Test {
 protected:
  GpuMeasure() {
    setenv("SPILLWAY_CUDA_MODULE", SPILLWAY_VIRTUAL_GPU, 1);
    setenv("SPILLWAY_CUDNN", SPILLWAY_VIRTUAL_GPU, 1);
  }
  ~GpuMeasure() override {
    unsetenv("SPILLWAY_CUDA_MODULE");
    unsetenv("SPILLWAY_CUDNN");
  }

  static GpuMeasurement measure(const Constants& constants, GpuCalibrationOptions options = quick()) {
    virtual_gpu::power_on(constants);
    return measured(options);
  }
  static GpuMeasurement measured(GpuCalibrationOptions options) {
    const std::optional<Nvml> nvml = Nvml::load(SPILLWAY_VIRTUAL_GPU);
    GpuCalibrationHooks hooks;
    if (nvml) hooks.load = [&] { return nvml->state(0); };
    return measure_gpu(options, hooks);
  }
  static GpuCalibrationOptions quick() { return {.quick = true}; }

  static double value(const GpuMeasurement& measured, PointKind kind) {
    const GpuPoint* point = find_point(measured, kind);
    return point == nullptr ? 0 : point->value.median;
  }
};

// What a calibration should find, within the 5 % that is asked of it.
void expect_constants(const GpuMeasurement& measured, const Constants& c) {
  const std::map<PointKind, double> wanted = {
      {PointKind::launch_call, c.launch_call},
      {PointKind::launch_to_start, c.launch_to_start},
      {PointKind::kernel_gap, c.kernel_gap},
      {PointKind::launch_queue, c.launch_queue},
      {PointKind::event_record_call, c.event_record_call},
      {PointKind::event_wait_call, c.event_wait_call},
      {PointKind::event_gap, c.event_gap},
      {PointKind::malloc_call, c.malloc_call},
      {PointKind::free_call, c.free_call},
      {PointKind::chunk_create, c.chunk_create},
      {PointKind::chunk_map, c.chunk_map + c.other_call},
      {PointKind::chunk_unmap, c.chunk_unmap + c.other_call},
      {PointKind::duplex_rate, c.duplex_rate},
      {PointKind::kernel_rate_alone, c.memory_rate},
      {PointKind::copy_rate_alone, c.duplex_rate},
      {PointKind::copy_rate_beside_kernels, c.duplex_rate * c.copies_beside_kernels},
      {PointKind::kernel_rate_beside_copies,
       c.memory_rate - c.hbm_contention * c.duplex_rate * c.copies_beside_kernels},
      {PointKind::two_stream_speedup, c.two_stream_speedup},
      {PointKind::sustained_product, c.bf16_rate * c.settled_clock}};
  for (const auto& [kind, constant] : wanted) {
    const GpuPoint* point = find_point(measured, kind);
    ASSERT_NE(point, nullptr) << point_kind_name(kind);
    EXPECT_NEAR(point->value.median, constant, 0.05 * constant) << point_kind_name(kind);
  }
  // Bytes charged for a byte that a copy moves.
  const auto rate = [&](PointKind kind) { return find_point(measured, kind)->value.median; };
  EXPECT_NEAR((rate(PointKind::kernel_rate_alone) - rate(PointKind::kernel_rate_beside_copies)) /
                  rate(PointKind::copy_rate_beside_kernels),
              c.hbm_contention, 0.05 * c.hbm_contention);
  const GpuPoint& load = *find_point(measured, PointKind::sustained_product);
  EXPECT_NEAR(load.clock_mhz, c.highest_clock_mhz * c.settled_clock, 0.05 * c.highest_clock_mhz * c.settled_clock);
  EXPECT_NEAR(load.watts, c.limit_watts, 0.05 * c.limit_watts);
}

void expect_laws(const GpuMeasurement& measured, const Constants& c) {
  std::size_t products = 0, copies = 0, kernels = 0;
  for (const GpuPoint& point : measured.points) {
    const auto bytes = static_cast<double>(point.bytes.count());
    if (point.kind == PointKind::copy_to_device || point.kind == PointKind::copy_to_host) {
      ++copies;
      const double rate = point.kind == PointKind::copy_to_device ? c.to_device_rate : c.to_host_rate;
      const double seconds =
          point.pinned ? c.copy_latency + bytes / rate : c.launch_to_start + bytes / (rate * c.pageable_fraction);
      // The host's clock sees calls and the start of pageable copies.
      if (point.pinned || point.bytes > Bytes(1 << 20)) {
        EXPECT_NEAR(point.value.median, seconds, 0.05 * seconds);
      }
    }
    if (point.kind == PointKind::memory_kernel) {
      ++kernels;
      const double seconds = c.memory_fixed + bytes / c.memory_rate;
      EXPECT_NEAR(point.value.median, seconds, 0.05 * seconds) << point.what << " " << point.bytes.count();
    }
    if (point.kind == PointKind::product) {
      ++products;
      const double m = static_cast<double>(point.m), n = static_cast<double>(point.n), k = static_cast<double>(point.k);
      const bool fp8 = point.precision == Precision::fp8, bf16 = point.precision == Precision::bf16;
      const double rate = fp8 ? c.fp8_rate : bf16 ? c.bf16_rate : c.fp32_rate;
      const double clocked = c.product_fixed + 2 * m * n * k / rate;
      const double moving = (fp8 ? 1 : bf16 ? 2 : 4) * (m * k + k * n) / c.memory_rate;
      // At a clock between the highest and the settled one.
      EXPECT_GE(point.value.median, 0.999 * (clocked + moving)) << m << "x" << n << "x" << k;
      EXPECT_LE(point.value.median, 1.001 * (clocked / c.settled_clock + moving)) << m << "x" << n << "x" << k;
    }
  }
  EXPECT_EQ(kernels, 24U);
  EXPECT_EQ(copies, 24U);
  EXPECT_GT(products, 1000U);
}

TEST_F(GpuMeasure, FindsEveryConstant) {
  const Constants constants;
  const GpuMeasurement measured = measure(constants);
  EXPECT_TRUE(measured.is_whole);
  EXPECT_TRUE(measured.failed.empty());
  EXPECT_EQ(measured.device.name, constants.name);
  EXPECT_EQ(measured.device.sm_count, constants.multiprocessors);
  EXPECT_EQ(measured.device.memory.count(), constants.memory_bytes);
  EXPECT_EQ(measured.device.context.count(), constants.context_bytes);
  EXPECT_EQ(measured.device.power_limit_watts, constants.limit_watts);
  expect_constants(measured, constants);
  expect_laws(measured, constants);
  // The clock is the GPU's own, so it tells what a user would wait.
  EXPECT_LT(virtual_gpu::now(), 120);
}

// A slower card with less of everything: nothing is found by chance or from a table.
TEST_F(GpuMeasure, FindsOthersOnAnotherCard) {
  Constants constants;
  constants.name = "NVIDIA GeForce RTX 4090";
  constants.memory_bytes = 25'300'000'000;
  constants.multiprocessors = 128;
  constants.major = 8;
  constants.minor = 9;
  constants.launch_call = 4.4e-6;
  constants.launch_to_start = 6.5e-6;
  constants.kernel_gap = 2.3e-6;
  constants.event_gap = 5.1e-6;
  constants.event_record_call = 1.6e-6;
  constants.malloc_call = 300e-6;
  constants.to_device_rate = 24e9;
  constants.to_host_rate = 25e9;
  constants.duplex_rate = 40e9;
  constants.copy_latency = 2.4e-6;
  constants.memory_rate = 0.92e12;
  constants.hbm_contention = 1.3;
  constants.copies_beside_kernels = 0.95;
  constants.two_stream_speedup = 1.1;
  constants.bf16_rate = 160e12;
  constants.fp8_rate = 300e12;
  constants.settled_clock = 0.93;
  constants.limit_watts = 450;
  const GpuMeasurement measured = measure(constants);
  EXPECT_TRUE(measured.is_whole);
  expect_constants(measured, constants);
}

// Where CUPTI may not trace, events time what they can, and the gaps are left to the profile at hand.
TEST_F(GpuMeasure, DoesWithoutTracing) {
  Constants constants;
  constants.allows_tracing = false;
  const GpuMeasurement measured = measure(constants);
  EXPECT_TRUE(measured.is_whole);
  EXPECT_THAT(measured.notes, testing::Contains(testing::HasSubstr("INSUFFICIENT_PRIVILEGES")));
  EXPECT_EQ(find_point(measured, PointKind::kernel_gap), nullptr);
  EXPECT_NEAR(value(measured, PointKind::launch_to_start), constants.launch_to_start + constants.write_over_link,
              0.2e-6);
  EXPECT_NEAR(value(measured, PointKind::kernel_rate_alone), constants.memory_rate, 0.05 * constants.memory_rate);
  EXPECT_NEAR(value(measured, PointKind::launch_call), constants.launch_call, 0.05 * constants.launch_call);
}

// Every point is told when it is there; ended by hand, what came before is all there.
TEST_F(GpuMeasure, TellsEachPointAtOnce) {
  virtual_gpu::power_on({});
  GpuCalibrationHooks hooks;
  std::size_t told = 0;
  hooks.added = [&](const GpuMeasurement& measured) {
    EXPECT_LE(measured.points.size() + measured.notes.size(), told + 1);
    told = measured.points.size() + measured.notes.size();
  };
  hooks.progress = [&](std::size_t part, std::size_t) { return part < 4; };
  EXPECT_THROW(measure_gpu(quick(), hooks), Cancelled);
  EXPECT_GT(told, 20U);
}

// Each kind of call fails once at its first, a middle and its last time, alone and with the device: the program goes
// on or ends, no part that was finished is lost, and what is there is as without the failure.
TEST_F(GpuMeasure, KeepsWhatItHasWhereACallFails) {
  GpuCalibrationOptions options = quick();
  options.sustained_seconds = 1;
  options.most_products = 20;
  options.most_production = 12;
  const GpuMeasurement sound = measure({}, options);
  ASSERT_TRUE(sound.is_whole);
  const std::map<std::string, std::uint64_t> calls = virtual_gpu::calls();
  EXPECT_GT(calls.size(), 30U);
  for (const auto& [name, count] : calls)
    for (const std::uint64_t number : {std::uint64_t{1}, count / 2 + 1, count})
      for (const bool lost : {false, true}) {
        SCOPED_TRACE(name + " " + std::to_string(number) + (lost ? ", lost" : ""));
        virtual_gpu::power_on({});
        virtual_gpu::fail_call(name, number, lost);
        GpuMeasurement measured;
        bool threw = false;
        try {
          measured = this->measured(options);
        } catch (const InputError& error) {
          threw = true;  // nothing had been measured
          EXPECT_FALSE(error.cause().empty());
        }
        EXPECT_EQ(virtual_gpu::cudnn_alive(), 0U);
        if (threw) continue;
        EXPECT_LE(measured.points.size(), sound.points.size() + 2);
        EXPECT_EQ(measured.is_whole && measured.failed.empty() && measured.notes.empty() &&
                      measured.points.size() < sound.points.size() - 40,
                  false);
        for (const FailedPart& failed : measured.failed) EXPECT_FALSE(failed.cause.empty());
      }
}

TEST(ProductShapes, CoverAllSizesWhereverTheyAreCut) {
  const std::vector<ProductShape> shapes = calibration_shapes(Precision::bf16, true);
  EXPECT_GT(shapes.size(), 1000U);
  std::size_t small = 0, large = 0;
  for (std::size_t i = 0; i < shapes.size() / 10; ++i) {
    const std::int64_t side = std::min({shapes[i].m, shapes[i].n, shapes[i].k});
    small += side < 64 ? 1 : 0;
    large += side >= 1024 ? 1 : 0;
  }
  EXPECT_GT(small, 15U);
  EXPECT_GT(large, 15U);
  for (const ProductShape& shape : calibration_shapes(Precision::fp8, false)) {
    EXPECT_EQ(shape.m % 16, 0);
    EXPECT_TRUE(shape.transpose_b && !shape.transpose_a);
  }
}

}  // namespace
}  // namespace spillway::hwprofiles
