// Attention and norms by cuDNN's graph API as they are measured, over a stand-in of known rates (tests/virtual_gpu).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/calibrate/cudnn_cases.h"
#include "hwprofiles/calibrate/gpu_calibration.h"
#include "tests/virtual_gpu/virtual_gpu.h"

namespace spillway::hwprofiles {
namespace {

using virtual_gpu::Constants;

class CudnnMeasure : public testing::Test {
 protected:
  CudnnMeasure() {
    setenv("SPILLWAY_CUDA_MODULE", SPILLWAY_VIRTUAL_GPU, 1);
    setenv("SPILLWAY_CUDNN", SPILLWAY_VIRTUAL_GPU, 1);
  }
  ~CudnnMeasure() override {
    unsetenv("SPILLWAY_CUDA_MODULE");
    unsetenv("SPILLWAY_CUDNN");
  }
  // Little of all else.
  static GpuCalibrationOptions some(std::int64_t production) {
    return {.quick = true, .sustained_seconds = 1, .most_products = 4, .most_production = production};
  }
  static GpuMeasurement measure(const Constants& constants, const GpuCalibrationOptions& options) {
    virtual_gpu::power_on(constants);
    return measure_gpu(options, {});
  }
  static std::vector<GpuPoint> operations(const GpuMeasurement& measured) {
    std::vector<GpuPoint> found;
    for (const GpuPoint& point : measured.points)
      if (point.kind == PointKind::operation) found.push_back(point);
    return found;
  }
};

double law(const GpuPoint& point, const Constants& c) {
  if (point.batch == 0) return c.norm_fixed + static_cast<double>(point.bytes.count()) / c.memory_rate;
  const double pairs = static_cast<double>(point.sequence) * static_cast<double>(point.sequence);
  const double flops =
      4 * static_cast<double>(point.batch * point.heads * point.head_dim) * pairs * (point.causal ? 0.5 : 1);
  return c.attention_fixed + (point.what == "attention_forward" ? flops / c.attention_forward_rate
                                                                : 2.5 * flops / c.attention_backward_rate);
}

// Of every kind there is at least one, by the constants of the stand-in; the source says library and version.
TEST_F(CudnnMeasure, FindsEveryConstant) {
  Constants constants;
  for (const bool is_traced : {true, false}) {
    constants.allows_tracing = is_traced;
    const GpuMeasurement measured = measure(constants, some(0));
    ASSERT_TRUE(measured.is_whole && measured.failed.empty());
    std::set<std::tuple<std::string, bool, bool, std::int64_t>> kinds;
    for (const GpuPoint& point : operations(measured)) {
      EXPECT_EQ(point.source, "cudnn-graph 9.19.0");
      EXPECT_EQ(library_of(point), KernelLibrary::cudnn_graph);
      // Events see what lies between several kernels, too.
      const double between = is_traced ? 0 : 15e-6;
      EXPECT_NEAR(point.value.median, law(point, constants), 0.05 * law(point, constants) + between)
          << point.what << " " << point.batch << " " << point.heads << " " << point.sequence << " " << point.m;
      kinds.emplace(point.what, point.batch > 0 && point.causal, point.kv_heads != point.heads, point.head_dim);
    }
    EXPECT_EQ(kinds.size(), 2 * 2 * 2 * 2U + 2U);
    EXPECT_EQ(virtual_gpu::cudnn_alive(), 0U);
  }
}

// The points of other rates differ: what is found is measured, not computed.
TEST_F(CudnnMeasure, FindsOtherConstants) {
  Constants constants;
  constants.attention_forward_rate = 150e12;
  constants.attention_backward_rate = 90e12;
  constants.attention_fixed = 11e-6;
  constants.norm_fixed = 8e-6;
  constants.memory_rate = 0.9e12;
  const std::vector<GpuPoint> points = operations(measure(constants, some(60)));
  EXPECT_EQ(points.size(), 60U);
  for (const GpuPoint& point : points)
    EXPECT_NEAR(point.value.median, law(point, constants), 0.05 * law(point, constants));
}

// What cuDNN refuses costs these points and no others, and is told in one line.
TEST_F(CudnnMeasure, RefusedGraphsAreLeftOutAndTold) {
  Constants constants;
  const GpuMeasurement sound = measure(constants, some(80));
  constants.cudnn_refuses = "causal grouped";
  const GpuMeasurement measured = measure(constants, some(80));
  EXPECT_TRUE(measured.is_whole && measured.failed.empty());
  std::map<std::string, std::size_t> refused;
  for (const GpuPoint& point : operations(sound))
    if (point.causal && point.kv_heads != point.heads) ++refused[point.what];
  ASSERT_EQ(refused.size(), 2U);
  EXPECT_EQ(measured.points.size(), sound.points.size() - refused["attention_forward"] - refused["attention_backward"]);
  for (const auto& [what, count] : refused)
    EXPECT_EQ(std::count_if(measured.notes.begin(), measured.notes.end(),
                            [&, start = std::to_string(count) + " points of " + what +
                                        " by cuDNN are left out: asking for engines: no engine takes this graph"](
                                const std::string& note) { return note.starts_with(start); }),
              1)
        << testing::PrintToString(measured.notes);
}

// Without the library, or with one of another major version, all else is measured and the reason told.
TEST_F(CudnnMeasure, DoesWithoutCudnn) {
  Constants constants;
  constants.cudnn_version = 81200;
  GpuMeasurement measured = measure(constants, some(8));
  EXPECT_TRUE(measured.is_whole && measured.failed.empty() && operations(measured).empty());
  EXPECT_THAT(measured.notes, testing::Contains(testing::HasSubstr("is of version 8.12.0")));
  setenv("SPILLWAY_CUDNN", "/none/libcudnn.so.9", 1);
  measured = measure({}, some(8));
  EXPECT_TRUE(measured.is_whole && measured.failed.empty() && operations(measured).empty());
  EXPECT_THAT(measured.notes, testing::Contains(testing::HasSubstr("can't be loaded: /none/libcudnn.so.9")));
}

// Each of cuDNN's calls fails at its first, a middle and its last time, alone and with the device: no point is half a
// measurement, no other part loses one, no descriptor stays.
TEST_F(CudnnMeasure, KeepsWhatItHasWhereACallFails) {
  const GpuCalibrationOptions options = some(10);
  const GpuMeasurement sound = measure({}, options);
  const std::size_t others = sound.points.size() - operations(sound).size();
  const std::map<std::string, std::uint64_t> calls = virtual_gpu::calls();
  std::size_t kinds = 0;
  for (const auto& [name, count] : calls) {
    if (!name.starts_with("cudnn")) continue;
    ++kinds;
    for (const std::uint64_t number : {std::uint64_t{1}, count / 2 + 1, count})
      for (const bool lost : {false, true}) {
        SCOPED_TRACE(name + " " + std::to_string(number) + (lost ? ", lost" : ""));
        virtual_gpu::power_on({});
        virtual_gpu::fail_call(name, number, lost);
        const GpuMeasurement measured = measure_gpu(options, {});
        EXPECT_EQ(virtual_gpu::cudnn_alive(), 0U);
        EXPECT_EQ(measured.points.size() - operations(measured).size(), others);
        // To give back fails in silence, and a second engine stands in for the first; all else is told, and costs one
        // point, or all where nothing can start.
        const bool misses_some = operations(measured).size() < operations(sound).size();
        EXPECT_EQ(measured.is_whole, !(lost && misses_some));
        EXPECT_EQ(measured.notes.size() > sound.notes.size(), misses_some);
        if (!lost) {
          EXPECT_TRUE(measured.failed.empty());
          EXPECT_TRUE(operations(measured).size() + 1 >= operations(sound).size() || operations(measured).empty());
        }
        for (const GpuPoint& point : operations(measured))
          EXPECT_NEAR(point.value.median, law(point, {}), 0.05 * law(point, {}));
      }
  }
  EXPECT_EQ(kinds, 9U);
}

TEST(CudnnCases, CoverAllSizesWhereverTheyAreCut) {
  const std::vector<GpuPoint> cases = cudnn_cases(true);
  EXPECT_GT(cudnn_cases(false).size(), cases.size());
  std::map<std::string, std::size_t> all, early;
  for (const GpuPoint& point : cases) ++all[point.what];
  EXPECT_EQ(all.size(), 4U);
  std::size_t grouped = 0, full = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    ++early[cases[i].what];
    grouped += cases[i].kv_heads < cases[i].heads ? 1 : 0;
    full += cases[i].batch > 0 && !cases[i].causal ? 1 : 0;
  }
  EXPECT_GT(early["attention_forward"], 15U);
  EXPECT_GT(early["attention_backward"], 15U);
  EXPECT_GT(grouped, 5U);
  EXPECT_GT(full, 5U);
}

}  // namespace
}  // namespace spillway::hwprofiles
