// Machines by a few letters.
#include "hwprofiles/machine_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "hwprofiles/card_box.h"
#include "hwprofiles/cloud_instances.h"

namespace spillway::hwprofiles {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

HardwareProfile machine(std::string_view text) { return ProfileLibrary::shared().load_system(text); }

std::string error_of(std::string_view text) {
  try {
    static_cast<void>(machine(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::vector<std::string> values(const HardwareProfile& hardware) {
  std::vector<std::string> all;
  for (const ProfileLeaf& leaf : leaves_of(hardware)) all.push_back(leaf.path + "=" + leaf.value + leaf.unit);
  return all;
}

struct Spelling {
  const char *text, *gpu, *profile;
  std::int64_t gpus, machines;
};

// What people type.
TEST(MachineChoice, FindsTheMachine) {
  const Spelling spellings[] = {
      {"8xh100", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"h100x8", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"8 x H100", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"8\u00d7H100", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"H100:8", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"H100:80GB:8", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"gpu:h100:8", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"16xh100", "h100-sxm5-80gb", "dgx-h100", 16, 2},
      {"2x8xh100", "h100-sxm5-80gb", "dgx-h100", 16, 2},
      {"4x4xh100", "h100-sxm5-80gb", "dgx-h100", 16, 4},
      {"12xh100", "h100-sxm5-80gb", "dgx-h100", 12, 2},
      {"3xh100", "h100-sxm5-80gb", "dgx-h100", 3, 1},
      {"1024xh100-sxm", "h100-sxm5-80gb", "dgx-h100", 1024, 128},
      {"1xh100", "h100-sxm5-80gb", "h100-80gb-1gpu", 1, 1},
      {"h100", "h100-sxm5-80gb", "h100-80gb-1gpu", 1, 1},
      {"dgx-h100", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"DGX H100", "h100-sxm5-80gb", "dgx-h100", 8, 1},
      {"dgx-h100x2", "h100-sxm5-80gb", "dgx-h100", 16, 2},
      {"DGX_H100 x 2", "h100-sxm5-80gb", "dgx-h100", 16, 2},
      {"2xdgx-h100", "h100-sxm5-80gb", "dgx-h100", 16, 2},
      {"dgx-h100-x4", "h100-sxm5-80gb", "dgx-h100-x4", 32, 4},
      {"NVIDIA H100 80GB HBM3", "h100-sxm5-80gb", "h100-80gb-1gpu", 1, 1},
      {"H100-SXM", "h100-sxm5-80gb", "h100-80gb-1gpu", 1, 1},
      {"NVIDIA H100 PCIe", "h100-pcie-80gb", "h100-pcie-80gb", 1, 1},
      {"NVIDIA H100 NVL", "h100-nvl-94gb", "h100-nvl-94gb", 1, 1},
      {"8xh100-pcie", "h100-pcie-80gb", "8xh100-pcie-80gb", 8, 1},
      {"8xa100", "a100-sxm4-80gb", "dgx-a100", 8, 1},
      {"A100 80GB", "a100-sxm4-80gb", "a100-80gb-1gpu", 1, 1},
      {"A100 80 GB", "a100-sxm4-80gb", "a100-80gb-1gpu", 1, 1},
      {"8xA100-40GB", "a100-sxm4-40gb", "dgx-a100-40gb", 8, 1},
      {"8x NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb", "dgx-a100-40gb", 8, 1},
      {"NVIDIA A100 80GB PCIe", "a100-pcie-80gb", "a100-pcie-80gb", 1, 1},
      {"2xa100-pcie-40gb", "a100-pcie-40gb", "2xa100-pcie-40gb", 2, 1},
      {"8xh200", "h200-sxm-141gb", "dgx-h200", 8, 1},
      {"8xb200", "b200-sxm-180gb", "hgx-b200", 8, 1},
      {"gb200", "gb200-186gb", "gb200-nvl4", 1, 1},
      {"8xgb200", "gb200-186gb", "gb200-nvl72", 8, 2},
      {"72xgb200", "gb200-186gb", "gb200-nvl72", 72, 18},
      {"4090", "rtx-4090", "workstation-4090", 1, 1},
      {"rtx4090", "rtx-4090", "workstation-4090", 1, 1},
      {"NVIDIA GeForce RTX 4090", "rtx-4090", "workstation-4090", 1, 1},
      {"rtx-4090", "rtx-4090", "rtx-4090", 1, 1},
      {"2xrtx4090", "rtx-4090", "2xrtx-4090", 2, 1},
      {"rtx 4090 x2", "rtx-4090", "2xrtx-4090", 2, 1},
      {"4xrtx4090", "rtx-4090", "4xrtx-4090", 4, 1},
      {"8x4090", "rtx-4090", "8xrtx-4090", 8, 1},
      {"1x10x4090", "rtx-4090", "10xrtx-4090", 10, 1},
      {"16x4090+roce-100", "rtx-4090", "8xrtx-4090", 16, 2},
      {"2x4x4090+ethernet-25", "rtx-4090", "4xrtx-4090", 8, 2},
      {"8x3090", "rtx-3090", "8xrtx-3090", 8, 1},
      {"1xrtx3090", "rtx-3090", "workstation-3090", 1, 1},
      {"rtx5090", "rtx-5090", "workstation-5090", 1, 1},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada", "rtx-6000-ada", 1, 1},
      {"6000 ada", "rtx-6000-ada", "rtx-6000-ada", 1, 1},
      {"a6000", "rtx-a6000", "a6000-1gpu", 1, 1},
      {"4xa6000", "rtx-a6000", "4xrtx-a6000", 4, 1},
      {"RTX PRO 6000", "rtx-pro-6000-server", "rtx-pro-6000-server", 1, 1},
      {"4xa10", "a10", "4xa10", 4, 1},
      {"4xt4", "t4", "4xt4", 4, 1},
      {"T4", "t4", "t4", 1, 1},
      {"4xl40s", "l40s", "cloud-4xl40s", 4, 1},
      {"8xl40s", "l40s", "8xl40s", 8, 1},
      {"8xv100", "v100-sxm2-32gb", "dgx-1-v100", 8, 1},
      {"8xmi300x", "mi300x-192gb", "hgx-mi300x", 8, 1},
      {"AMD Instinct MI300X", "mi300x-192gb", "mi300x-192gb-1gpu", 1, 1},
      {"p5.48xlarge", "h100-sxm5-80gb", "p5.48xlarge", 8, 1},
      {"4xp5", "h100-sxm5-80gb", "p5.48xlarge", 32, 4},
      {"p5en", "h200-sxm-141gb", "p5en.48xlarge", 8, 1},
      {"a3-mega", "h100-sxm5-80gb", "a3-megagpu-8g", 8, 1},
      {"nd-h100-v5", "h100-sxm5-80gb", "ND96isr_H100_v5", 8, 1},
      {"ND96isr H100 v5", "h100-sxm5-80gb", "ND96isr_H100_v5", 8, 1},
      {"2xbm.gpu.h100.8", "h100-sxm5-80gb", "BM.GPU.H100.8", 16, 2},
      {"a800", "a800-sxm4-80gb", "hgx-a800", 1, 1},
      {"NVIDIA A800-SXM4-80GB", "a800-sxm4-80gb", "hgx-a800", 1, 1},
      {"8xA800", "a800-sxm4-80gb", "hgx-a800", 8, 1},
      {"H20", "h20-96gb", "hgx-h20", 1, 1},
      {"8xH20", "h20-96gb", "hgx-h20", 8, 1},
      {"8xL20", "l20", "8xl20", 8, 1},
      {"8xa10g", "a10g", "8xa10g", 8, 1},
      {"NVIDIA GeForce RTX 3080", "rtx-3080", "rtx-3080", 1, 1},
      {"4xrtx3080", "rtx-3080", "4xrtx-3080", 4, 1},
      {"3080 12GB", "rtx-3080-12gb", "rtx-3080-12gb", 1, 1},
      {"2xa5000", "rtx-a5000", "2xrtx-a5000", 2, 1},
      {"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "rtx-pro-6000-workstation", "rtx-pro-6000-workstation", 1,
       1},
      {"8xmi325x", "mi325x-256gb", "hgx-mi325x", 8, 1},
      {"8xmi250x", "mi250x-128gb", "mi250x-x8", 8, 1},
      {"DGX Spark", "gb10", "dgx-spark", 1, 1},
      {"NVIDIA GB10", "gb10", "dgx-spark", 1, 1},
      {"8xh100+roce-400", "h100-sxm5-80gb", "dgx-h100", 8, 1},
  };
  for (const Spelling& one : spellings) {
    ASSERT_EQ(error_of(one.text), "") << one.text;
    const HardwareProfile found = machine(one.text);
    EXPECT_EQ(found.gpu.name, one.gpu) << one.text;
    EXPECT_EQ(found.name, one.profile) << one.text;
    EXPECT_EQ(found.total_gpus(), one.gpus) << one.text;
    EXPECT_EQ(found.machines, one.machines) << one.text;
    EXPECT_EQ(std::ssize(found.gpu_slots), found.gpu_count) << one.text;
    EXPECT_FALSE(found.title.empty()) << one.text;
  }
}

TEST(MachineChoice, ANamedProfileIsItself) {
  for (const ProfileEntry& entry : ProfileLibrary::shared().list()) {
    if (entry.kind != ProfileKind::system && entry.kind != ProfileKind::gpu) continue;
    const HardwareProfile named = ProfileLibrary::shared().load_named_system(entry.name);
    EXPECT_EQ(values(machine(entry.name)), values(named)) << entry.name;
    EXPECT_EQ(machine(entry.name).assumed.empty(), entry.kind == ProfileKind::system) << entry.name;
    if (entry.kind != ProfileKind::gpu || !is_card(named.gpu)) continue;
    for (const char* count : {"1x", "2x", "4x", "8x"}) EXPECT_EQ(machine(count + entry.name).gpu.name, entry.name);
  }
}

TEST(MachineChoice, IsThatOfTheLibrary) {
  EXPECT_EQ(values(machine("8xh100")), values(machine("dgx-h100")));
  EXPECT_EQ(values(machine("h100x8")), values(machine("8xh100")));
  EXPECT_EQ(values(machine("16xh100")), values(machine("2xdgx-h100")));
  EXPECT_EQ(values(machine("16xh100")), values(machine("2x8xh100")));
}

TEST(MachineChoice, TellsWhatItAssumes) {
  EXPECT_THAT(assumed_words(machine("8xh100")),
              AllOf(HasSubstr("GPU: NVIDIA H100 SXM5 80GB, 700 W; host: DGX H100"), HasSubstr("2 TiB"),
                    HasSubstr("; links: NVLink 4"), Not(HasSubstr("network"))));
  EXPECT_THAT(assumed_words(machine("16xh100")), HasSubstr("; network: InfiniBand NDR"));
  EXPECT_THAT(assumed_words(machine("16xh100+roce-400+ram=1 TiB")),
              AllOf(Not(HasSubstr("network")), Not(HasSubstr("host"))));
  EXPECT_EQ(assumed_words(machine("2xdgx-h100")), "");
  EXPECT_EQ(machine("16xh100").title, "2 x DGX H100: 8x H100 SXM5 80 GB");
}

TEST(MachineChoice, TakesWhatIsSaidBeside) {
  EXPECT_EQ(machine("8xh100+roce-400").scale_out->name, "roce-400");
  EXPECT_EQ(machine("8xh100 + ram=1 TiB").host.dram.value, Bytes(std::int64_t{1} << 40));
  const HardwareProfile drives = machine("4xrtx4090+drives=2xsamsung-990-pro-2tb");
  ASSERT_EQ(drives.drives.size(), 1U);
  EXPECT_EQ(drives.drives.front().count, 2);
  EXPECT_TRUE(machine("8xh100+drives=none").drives.empty());
  EXPECT_EQ(machine("4x4090+host=generic-pcie4-host").host.name, "generic-pcie4-host");
  EXPECT_GT(machine("4x4090+p2p").scale_up->efficiency.value, machine("4x4090").scale_up->efficiency.value);
  EXPECT_EQ(values(machine("4xa6000+no-p2p+p2p")), values(machine("4xa6000")));
}

// card_box.h has the formula, and where its two shares are from.
TEST(MachineChoice, CardsWithoutReachCopyThroughTheHost) {
  const auto ring = [](std::string_view text) {
    const NetworkProfile links = *machine(text).scale_up;
    return to_bytes_per_second(links.bandwidth.value) * links.efficiency.value / 1e9;
  };
  EXPECT_NEAR(ring("2x4090"), 0.55 * 15.75, 0.05);           // slots x8
  EXPECT_NEAR(ring("4x4090"), 0.55 * 31.5, 0.05);            // eight channels bear more
  EXPECT_NEAR(ring("8x4090"), 0.55 * 31.5, 0.05);            // sixteen, too
  EXPECT_NEAR(ring("4x5090"), 0.73 * 307.2 / 8, 0.3);        // eight channels bear less than the link
  EXPECT_NEAR(ring("8x5090"), 0.73 * 614.4 / 16, 0.3);       // measured: 28
  EXPECT_NEAR(ring("1x10x3090"), 0.73 * 409.6 / 20, 0.3);    // more cards at the same memory
  EXPECT_EQ(machine("8xl40s").scale_up->name, "pcie4-p2p");  // was measured
  EXPECT_NEAR(ring("4xa6000"), 0.84 * 31.5, 0.3);            // these reach each other
}

TEST(MachineChoice, KnowsWhatCloudsRent) {
  for (const CloudInstance& instance : cloud_instances()) {
    const std::string type(instance.type), short_name(instance.short_name);
    ASSERT_EQ(error_of(type), "");
    const HardwareProfile rented = machine(type);
    EXPECT_EQ(values(machine(short_name)), values(rented)) << type;
    EXPECT_EQ(rented.name, type);
    EXPECT_EQ(rented.scale_out.has_value(), !instance.fabric.empty()) << type;
    EXPECT_EQ(error_of("2x" + type).empty(), rented.scale_out.has_value()) << type;
  }
  const auto gigabytes = [](std::string_view text) {
    return to_bytes_per_second(machine(text).scale_out->bandwidth.value) / 1e9;
  };
  EXPECT_NEAR(gigabytes("a3-high"), 12.5, 1e-3);
  EXPECT_NEAR(gigabytes("a3-mega"), 25, 1e-3);
  EXPECT_NEAR(gigabytes("a3-ultra"), 50, 1e-3);
  EXPECT_THAT(assumed_words(machine("a3-mega")), HasSubstr("network: TCPXO, 8 x 200 Gbit/s, taken as Cloud network"));
}

TEST(MachineChoice, TakesFiles) {
  const std::string file = ProfileLibrary::shared().find("dgx-a100").path;
  EXPECT_EQ(machine(file).total_gpus(), 8);
  EXPECT_EQ(machine("4x" + file).total_gpus(), 32);
  const std::string folder = testing::TempDir() + "machine_choice";
  std::filesystem::create_directories(folder);
  const std::string mine = folder + "/mine.json";
  std::ofstream(mine) << R"({"schema": "spillway-hardware-profile/1", "kind": "system", "name": "mine", "title": "Mine",
                             "base": "dgx-a100"})";
  EXPECT_EQ(machine(folder + "/3xmine.json").machines, 3);
  std::ofstream(folder + "/2xmine.json") << std::ifstream(mine).rdbuf();
  EXPECT_EQ(machine(folder + "/2xmine.json").machines, 1);  // a file's own name
  EXPECT_THAT(error_of(folder + "/nobodys.json"), HasSubstr("nobodys.json"));
  const std::string gpu = folder + "/gpu.json";
  std::ofstream(gpu) << R"({"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "my-gpu", "title": "My GPU",
                            "base": "h100-sxm5-80gb"})";
  const HardwareProfile put_in = machine("dgx-h100x2+gpu=" + gpu);
  EXPECT_EQ(put_in.gpu.name, "my-gpu");
  EXPECT_EQ(put_in.total_gpus(), 16);
  EXPECT_THAT(put_in.title, HasSubstr("GPU: My GPU"));
  EXPECT_EQ(machine("dgx-h100+gpu=h200-sxm-141gb").gpu.name, "h200-sxm-141gb");
}

TEST(MachineChoice, RefusesWhatNobodyIsCalled) {
  EXPECT_THAT(error_of("8xh10"), HasSubstr("h100"));
  EXPECT_THAT(error_of("dgx-h101"), HasSubstr("dgx-h100"));
  for (const char* text : {"rtx", "NVIDIA", "sxm", "m3-max", "9xq100", "", "8x", "x8", "a5", "+", "8xh100x"})
    EXPECT_NE(error_of(text), "") << text;
  EXPECT_THAT(error_of("rtx 4091"), Not(HasSubstr("mean rtx ")));
  EXPECT_THAT(error_of("0xh100"), HasSubstr("out of range"));
  EXPECT_THAT(error_of("99999999999999999999xh100"), HasSubstr("out of range"));
  EXPECT_THAT(error_of("1048576x1048576xh100"), HasSubstr("out of range"));
  EXPECT_THAT(error_of("17xh100"), HasSubstr("multiple of 8: 16 or 24"));
  EXPECT_THAT(error_of("100xh100"), HasSubstr("96 or 104"));
  EXPECT_THAT(error_of("2x16xh100"), HasSubstr("at most 8"));
  for (const std::string text : {"16x4090", "workstation-2x4090x4", "2x4xa10"})
    EXPECT_THAT(error_of(text), AllOf(HasSubstr("network"), HasSubstr(text + "+roce-100"))) << text;
  EXPECT_THAT(error_of("8xh100+roce-40"), HasSubstr("roce-400"));
  EXPECT_THAT(error_of("2xdgx-h100+nvlink4-h800"), HasSubstr("roce-400"));
  EXPECT_THAT(error_of("M3 Max"), HasSubstr("Apple"));
  EXPECT_THAT(error_of("8xh100+p2p"), HasSubstr("cards"));
  EXPECT_NE(error_of("8xh100+ram=lots"), "");
}

}  // namespace
}  // namespace spillway::hwprofiles
