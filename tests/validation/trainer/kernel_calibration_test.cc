#include "validation/trainer/kernel_calibration.h"

#include <gtest/gtest.h>

#include <map>

#include "base/byte_source.h"

namespace spillway::validation {
namespace {

KernelCalibrationOptions small() {
  KernelCalibrationOptions options;
  options.tokens = {16, 64};
  options.hidden = 64;
  options.vocabulary = 128;
  options.sequence = 16;
  options.most_attention_tokens = 16;
  options.batches = 4;
  options.batch_seconds = 1e-4;
  return options;
}

// GeLU of t tokens reads and writes 4 x 64 values of two bytes each; a causal attention of t tokens in sequences of 16
// multiplies 2 t 16 64 pairs forwards; an embedding moves three rows of 64 and one word of 4 bytes a token.
TEST(KernelCalibration, MeasuresEveryKind) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  const KernelCalibration calibration = measure_kernels(*backend, small(), {});
  EXPECT_FALSE(calibration.is_cut);
  std::map<KernelKind, std::vector<double>> work;
  for (const KernelPoint& point : calibration.points) {
    EXPECT_GT(point.seconds.median, 0);
    work[point.kind].push_back(point.work);
  }
  EXPECT_EQ(work.size(), kernel_kind_count);
  EXPECT_EQ(work[KernelKind::elementwise], (std::vector<double>{2.0 * 16 * 256 * 2, 2.0 * 64 * 256 * 2}));
  EXPECT_EQ(work[KernelKind::gather], (std::vector<double>{16.0 * (3 * 64 * 2 + 4), 64.0 * (3 * 64 * 2 + 4)}));
  EXPECT_EQ(work[KernelKind::attention_forward], (std::vector<double>{2.0 * 16 * 16 * 64}));
  // The table has 64 and 128 words: gradient and weight of two bytes, a master and two moments of four, all but the
  // gradient read and written.
  EXPECT_EQ(work[KernelKind::optimizer], (std::vector<double>{64.0 * 64 * 30, 128.0 * 64 * 30}));
}

TEST(KernelCalibration, EndsWhenAskedOrOutOfTime) {
  const std::unique_ptr<Backend> backend = make_cpu_backend();
  EXPECT_THROW(measure_kernels(*backend, small(), [](std::size_t done, std::size_t) { return done < 3; }), Cancelled);
  KernelCalibrationOptions options = small();
  options.seconds = 1e-9;
  const KernelCalibration cut = measure_kernels(*backend, options, {});
  EXPECT_TRUE(cut.is_cut);
  EXPECT_LT(cut.points.size(), 2 * kernel_kind_count);
}

}  // namespace
}  // namespace spillway::validation
