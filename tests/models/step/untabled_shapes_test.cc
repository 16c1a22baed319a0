#include "models/session/untabled_shapes.h"

#include <gtest/gtest.h>

#include "hwprofiles/profile_library.h"
#include "tests/models/example_profile.h"

namespace spillway::models::untabled_shapes {
namespace {

KernelCost product(std::int64_t m, std::int64_t n, std::int64_t k, DataType type = DataType::bf16) {
  return {.kind = KernelClass::gemm, .type = type, .gemm = {.m = m, .n = n, .k = k}, .flops = Flops(2 * m * n * k)};
}

Duration lasting(std::int64_t us, CostSource source) { return {.time = microseconds(us), .source = source}; }

TEST(UntabledShapes, CountsShapesAndNamesTheLongest) {
  UntabledShapes shapes;
  EXPECT_EQ(shapes.text(), "");
  shapes.count(product(4096, 4096, 4096), lasting(600, CostSource::table));
  EXPECT_EQ(shapes.text(), "");
  for (int i = 0; i < 3; ++i) shapes.count(product(8, 512, 16), lasting(30, CostSource::fitted));
  KernelCost batch = product(64, 64, 128);
  batch.gemm.batch = 96;
  shapes.count(batch, lasting(110, CostSource::assumed));
  shapes.count({.kind = KernelClass::attention_backward,
                .attention = {.batch = 2, .heads = 12, .kv_heads = 12, .sequence = 1024, .head_dim = 64}},
               lasting(200, CostSource::fitted));
  shapes.count({.kind = KernelClass::memory_bound}, lasting(1000, CostSource::assumed));
  EXPECT_EQ(shapes.text(),
            "3 of 4 shapes of products and attention are near no table, 40 % of their time: "
            "attention backwards of 2 x 1024 tokens, 12 heads of 64; 64 x 64 x 128 bfloat16, 96 at once");
}

// By the tables of an H100; a GPU that follows its kin has none of its own to be near to.
TEST(UntabledShapes, OfAGpusOwnTables) {
  const auto text_of = [](const char* gpu, const KernelCost& kernel) {
    HardwareProfile profile = example_profile();
    profile.gpu = ProfileLibrary::standard().load_gpu(gpu);
    UntabledShapes shapes;
    shapes.count(kernel, CostModel(profile).duration(kernel));
    return shapes.text();
  };
  EXPECT_EQ(text_of("h100-sxm5-80gb", product(4096, 4096, 4096)), "");
  EXPECT_NE(text_of("h100-sxm5-80gb", product(4096, 200'000, 4096)), "");
  EXPECT_NE(text_of("h100-sxm5-80gb", product(4096, 4096, 4096, DataType::fp32)), "");
  EXPECT_EQ(text_of("rtx-4090", product(4096, 200'000, 4096)), "");
}

}  // namespace
}  // namespace spillway::models::untabled_shapes
