// Machines by a few letters.
#include <gtest/gtest.h>

#include "base/input_error.h"
#include "hwprofiles/machine_choice.h"

namespace spillway::hwprofiles {
namespace {

MachineChoice chosen(std::string_view text) { return choose_machine(ProfileLibrary::shared(), text); }

// The choice as the replay sees it.
HardwareProfile machine(const MachineChoice& choice) {
  HardwareProfile hardware = ProfileLibrary::shared().load_system(choice.profile);
  for (const auto& [path, text] : choice.overrides) apply_override(hardware, path, text);
  return hardware;
}

TEST(MachineChoice, FindsTheBundledMachine) {
  const struct {
    const char *text, *profile;
    std::int64_t gpus, machines;
  } cases[] = {
      {"dgx-h100", "dgx-h100", 8, 1},
      {"16xh100", "dgx-h100", 16, 2},
      {"8xh100", "dgx-h100", 8, 1},
      {"1xh100", "h100-80gb-1gpu", 1, 1},
      {"h100", "h100-80gb-1gpu", 1, 1},
      {"8xa100", "dgx-a100", 8, 1},
      {"8xa100-40gb", "dgx-a100-40gb", 8, 1},
      {"8xA100-80GB", "dgx-a100", 8, 1},
      {"dgx-h100x2", "dgx-h100", 16, 2},
      {"4xdgx-a100", "dgx-a100", 32, 4},
      {"dgx-h100-x4", "dgx-h100-x4", 32, 4},
      {"rtx4090", "workstation-4090", 1, 1},
      {"2xrtx-4090", "workstation-2x4090", 2, 1},
      {"NVIDIA GeForce RTX 4090", "workstation-4090", 1, 1},
      {"NVIDIA H100 80GB HBM3", "h100-80gb-1gpu", 1, 1},
      {"8x NVIDIA A100-SXM4-40GB", "dgx-a100-40gb", 8, 1},
      {"1xrtx3090", "workstation-3090", 1, 1},
      {"8xmi300x", "hgx-mi300x", 8, 1},
      {"h200x8", "dgx-h200", 8, 1},
      {"4xh100", "dgx-h100", 4, 1},
      {"12xh100", "dgx-h100", 12, 2},
      {"1024xh100-sxm", "dgx-h100", 1024, 128},
  };
  for (const auto& one : cases) {
    const MachineChoice choice = chosen(one.text);
    EXPECT_EQ(choice.profile, one.profile) << one.text;
    EXPECT_EQ(choice.gpus, one.gpus) << one.text;
    const HardwareProfile hardware = machine(choice);
    EXPECT_EQ(hardware.total_gpus(), one.gpus) << one.text;
    EXPECT_EQ(hardware.machines, one.machines) << one.text;
    EXPECT_FALSE(choice.words.empty());
  }
}

TEST(MachineChoice, TakesAGpuWithoutAMachineAndFiles) {
  EXPECT_EQ(chosen("a10").profile, "a10");
  EXPECT_EQ(machine(chosen("a10")).gpu.name, "a10");
  const std::string file = ProfileLibrary::shared().find("dgx-a100").path;
  EXPECT_EQ(chosen(file).profile, file);
  EXPECT_EQ(chosen(file).gpus, 8);
}

TEST(MachineChoice, RefusesWhatNobodyIsCalled) {
  const auto error_of = [](std::string_view text) {
    try {
      static_cast<void>(chosen(text));
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(error_of("8xh10").find("h100"), std::string::npos) << error_of("8xh10");
  EXPECT_NE(error_of("dgx-h101").find("dgx-h100"), std::string::npos) << error_of("dgx-h101");
  for (const char* text : {"rtx", "NVIDIA", "sxm"})
    EXPECT_NE(error_of(text).find("no machine and no GPU"), std::string::npos) << text;
  EXPECT_EQ(error_of("rtx 4091").find("mean rtx "), std::string::npos) << error_of("rtx 4091");
  EXPECT_NE(error_of("0xh100").find("out of range"), std::string::npos);
  EXPECT_NE(error_of("17xh100").find("multiple of 8"), std::string::npos);
  EXPECT_NE(error_of("2xa10").find("no machine with a10"), std::string::npos) << error_of("2xa10");
  for (const std::string text : {"8x4090", "workstation-2x4090x4", "8xl40s"}) {
    EXPECT_NE(error_of(text).find("no network between machines"), std::string::npos) << error_of(text);
    EXPECT_NE(error_of(text).find("scale_out"), std::string::npos) << error_of(text);
  }
  EXPECT_NE(error_of(""), "");
  EXPECT_NE(error_of("8x"), "");
}

}  // namespace
}  // namespace spillway::hwprofiles
