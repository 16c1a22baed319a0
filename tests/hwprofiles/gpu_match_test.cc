#include "hwprofiles/gpu_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

ProfileLibrary library() {
  return ProfileLibrary({std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/hwprofiles/data"});
}

GpuIdentity device(const char* name, double gibibytes, std::int64_t multiprocessors) {
  GpuIdentity identity;
  identity.name = name;
  identity.memory = Bytes(static_cast<std::int64_t>(gibibytes * (1 << 30)));
  identity.sm_count = multiprocessors;
  return identity;
}

struct Card {
  const char* name;
  double gibibytes;  // as cudaMemGetInfo tells them
  std::int64_t multiprocessors;
  const char* profile;
};
class GpuMatch : public testing::TestWithParam<Card> {};

TEST_P(GpuMatch, FindsTheVeryCard) {
  const Card& card = GetParam();
  EXPECT_EQ(matching_gpu(library(), device(card.name, card.gibibytes, card.multiprocessors)), card.profile);
}

INSTANTIATE_TEST_SUITE_P(Cards, GpuMatch,
                         testing::Values(Card{"NVIDIA H100 80GB HBM3", 79.2, 132, "h100-sxm5-80gb"},
                                         Card{"NVIDIA H100 NVL", 93.1, 132, "h100-nvl-94gb"},
                                         Card{"NVIDIA H100 PCIe", 79.2, 114, "h100-pcie-80gb"},
                                         Card{"NVIDIA H200", 139.8, 132, "h200-sxm-141gb"},
                                         Card{"NVIDIA A100-SXM4-80GB", 79.2, 108, "a100-sxm4-80gb"},
                                         Card{"NVIDIA A100-SXM4-40GB", 39.4, 108, "a100-sxm4-40gb"},
                                         Card{"NVIDIA A100 80GB PCIe", 79.2, 108, "a100-pcie-80gb"},
                                         Card{"NVIDIA GeForce RTX 4090", 23.6, 128, "rtx-4090"},
                                         Card{"NVIDIA L40S", 44.4, 142, "l40s"}, Card{"NVIDIA L4", 22.0, 58, "l4"},
                                         Card{"NVIDIA GeForce RTX 2080 Ti", 10.8, 68, "rtx-2080-ti"},
                                         Card{"NVIDIA RTX 6000 Ada Generation", 47.4, 142, "rtx-6000-ada"}));

std::string refusal(const GpuIdentity& identity) {
  try {
    return "found " + matching_gpu(library(), identity);
  } catch (const InputError& error) {
    return error.cause() + ": " + error.remedy();
  }
}

// Another size, fewer multiprocessors, another model of the same digits, a card nobody made.
TEST(GpuMatch, TakesNoOther) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal(device("NVIDIA H100 80GB HBM3", 60, 132)), HasSubstr("h100-sxm5-80gb"));
  EXPECT_THAT(refusal(device("NVIDIA H100 80GB HBM3", 79.2, 114)), HasSubstr("no bundled profile"));
  EXPECT_THAT(refusal(device("NVIDIA H200 NVL", 139.8, 132)), HasSubstr("no bundled profile"));
  EXPECT_THAT(refusal(device("NVIDIA GeForce RTX 4090 D", 23.6, 114)), HasSubstr("no bundled profile"));
  EXPECT_THAT(refusal(device("NVIDIA Z9000", 80, 132)), HasSubstr("write one first"));
}

}  // namespace
}  // namespace spillway::hwprofiles
