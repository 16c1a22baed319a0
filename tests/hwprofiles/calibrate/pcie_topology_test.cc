#include "hwprofiles/calibrate/pcie_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/input_error.h"
#include "hwprofiles/calibrate/hwloc_locality.h"
#include "hwprofiles/calibrate/sysfs.h"
#include "hwprofiles/profile_library.h"
#include "hwprofiles/profile_writer.h"

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;

// A copy of what sysfs shows of a machine of two NUMA nodes:
//   pci0000:00 ─ 00:01.0 root port ─ 01:00.0 switch ─┬ 02:04.0 ─ 03:00.0 GPU, gen 5 x16, idle at gen 1
//                                                     └ 02:08.0 ─ 04:00.0 drive, gen 4 x4 of 4
//              ─ 00:02.0 virtual drive without a link;  00:1f.0 something else
//   pci0000:80 ─ 80:01.0 root port gen 4 ─ 81:00.0 network card, gen 5 x8 of 16
class FakeSysfs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            (std::string("sysfs_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(root_);
    fs::create_directories(root_ / "bus/pci/devices");
    const std::string port = "pci0000:00/0000:00:01.0", up = port + "/0000:01:00.0";
    function(port, "0x060400", "32.0 GT/s PCIe", "32.0 GT/s PCIe", 16, 16, 0);
    function(up, "0x060400", "32.0 GT/s PCIe", "32.0 GT/s PCIe", 16, 16, 0);
    function(up + "/0000:02:04.0", "0x060400", "2.5 GT/s PCIe", "32.0 GT/s PCIe", 16, 16, 0);
    function(up + "/0000:02:08.0", "0x060400", "16.0 GT/s PCIe", "32.0 GT/s PCIe", 4, 16, 0);
    function(up + "/0000:02:04.0/0000:03:00.0", "0x030200", "2.5 GT/s PCIe", "32.0 GT/s PCIe", 16, 16, 0);
    const fs::path drive =
        function(up + "/0000:02:08.0/0000:04:00.0", "0x010802", "16.0 GT/s PCIe", "16.0 GT/s PCIe", 4, 4, 0);
    fs::create_directories(drive / "nvme/nvme0");
    put(drive / "nvme/nvme0/model", "Maker Model 1T   ");
    const fs::path virtual_drive = function("pci0000:00/0000:00:02.0", "0x018000", "", "", 0, 0, -1);
    fs::create_directories(virtual_drive / "virtio1/block/vda");
    function("pci0000:00/0000:00:1f.0", "0x060100", "", "", 0, 0, -1);
    function("pci0000:80/0000:80:01.0", "0x060400", "16.0 GT/s PCIe", "16.0 GT/s PCIe", 8, 16, 1);
    const fs::path nic =
        function("pci0000:80/0000:80:01.0/0000:81:00.0", "0x020000", "16.0 GT/s PCIe", "32.0 GT/s PCIe", 8, 16, 1);
    fs::create_directories(nic / "net/eth0");
    for (const int cpu : {0, 1, 2, 3}) {
      const fs::path topology = root_ / "devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology";
      fs::create_directories(topology);
      put(topology / "core_id", std::to_string(cpu % 2 == 0 ? 0 : 5));
      put(topology / "physical_package_id", std::to_string(cpu / 2));
    }
    fs::create_directories(root_ / "devices/system/node/node0");
    put(root_ / "devices/system/node/node0/meminfo", "Node 0 MemTotal:       1048576 kB");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text << "\n"; }

  fs::path function(const std::string& place, const std::string& pci_class, const std::string& speed,
                    const std::string& most_speed, int lanes, int most_lanes, int numa) {
    const fs::path folder = root_ / "devices" / place;
    fs::create_directories(folder);
    put(folder / "class", pci_class);
    put(folder / "numa_node", std::to_string(numa));
    if (!speed.empty()) {
      put(folder / "current_link_speed", speed);
      put(folder / "max_link_speed", most_speed);
      put(folder / "current_link_width", std::to_string(lanes));
      put(folder / "max_link_width", std::to_string(most_lanes));
    }
    fs::create_directory_symlink(fs::path("../../../devices") / place, root_ / "bus/pci/devices" / folder.filename());
    return folder;
  }

  std::vector<PcieFunction> topology(bool all = false) const { return pcie_topology(root_.string(), all); }
  static const PcieFunction& at(const std::vector<PcieFunction>& functions, const std::string& address) {
    for (const PcieFunction& function : functions)
      if (function.address == address) return function;
    ADD_FAILURE() << "no " << address;
    return functions.front();
  }

  fs::path root_;
};

TEST_F(FakeSysfs, FindsTheTree) {
  const std::vector<PcieFunction> functions = topology();
  const PcieFunction& gpu = at(functions, "0000:03:00.0");
  EXPECT_EQ(gpu.kind, PcieFunctionKind::gpu);
  EXPECT_EQ(functions[*gpu.up].kind, PcieFunctionKind::switch_down);
  const PcieFunction& up = functions[*functions[*gpu.up].up];
  EXPECT_EQ(up.kind, PcieFunctionKind::switch_up);
  EXPECT_EQ(functions[*up.up].kind, PcieFunctionKind::port);
  EXPECT_FALSE(functions[*up.up].up.has_value());
  EXPECT_EQ(at(functions, "0000:04:00.0").name, "Maker Model 1T");
  EXPECT_EQ(at(functions, "0000:81:00.0").name, "eth0");
  EXPECT_EQ(at(functions, "0000:81:00.0").numa_node, 1);
}

// The GPU idles at 2.5 GT/s on a link of 32; the network card of generation 5 sits in a port of generation 4.
TEST_F(FakeSysfs, LinksAreAsFastAsTheirSlowerEnd) {
  const std::vector<PcieFunction> functions = topology();
  EXPECT_EQ(at(functions, "0000:03:00.0").generation, 5);
  EXPECT_EQ(at(functions, "0000:03:00.0").lanes, 16);
  EXPECT_EQ(at(functions, "0000:04:00.0").generation, 4);
  EXPECT_EQ(at(functions, "0000:81:00.0").generation, 4);
  EXPECT_EQ(at(functions, "0000:00:02.0").generation, 0);
}

TEST_F(FakeSysfs, LeavesOutWhatLeadsNowhere) {
  EXPECT_EQ(topology().size() + 1, topology(true).size());  // 00:1f.0
  fs::remove_all(root_ / "bus");
  EXPECT_THROW(topology(), InputError);
}

TEST_F(FakeSysfs, MakesAHostProfile) {
  const ProfileLibrary library({std::string(std::getenv("SPILLWAY_SOURCE_ROOT")) + "/hwprofiles/data"});
  const HostFit fit = fit_host(topology(), library.load_host("generic-pcie5-host"), "2026-01-02", root_.string());
  EXPECT_EQ(fit.profile.sockets.value, 2);
  EXPECT_EQ(fit.profile.cores.value, 4);  // two of equal number in two packages
  EXPECT_EQ(fit.profile.dram.value, Bytes(1 << 30));
  EXPECT_EQ(fit.profile.dram_bandwidth.origin.provenance, OriginKind::assumed);
  EXPECT_THAT(fit.notes, Contains(HasSubstr("0000:00:02.0")));
  EXPECT_THAT(fit.notes, Contains(HasSubstr("uses 8 of its 16 lanes")));

  const std::string path = testing::TempDir() + "/written_host.json";
  std::ofstream(path) << profile_text(fit.profile, {OriginKind::measured, "sysfs of the machine", "2026-01-02", 0});
  EXPECT_THAT(library.check(path), testing::IsEmpty());
  const HostProfile read = library.load_host(path);
  std::vector<std::string> lines;
  for (const PcieNode& node : read.pcie)
    lines.push_back(node.name + " " + std::string(pcie_node_kind_name(node.kind)) +
                    (node.up ? " under " + read.pcie[*node.up].name + " gen " + std::to_string(node.generation->value) +
                                   " x" + std::to_string(node.lanes->value)
                             : ""));
  EXPECT_THAT(lines, testing::UnorderedElementsAre("cpu0 root_complex", "switch0 switch under cpu0 gen 5 x16",
                                                   "gpu0 gpu_slot under switch0 gen 5 x16",
                                                   "drive0 drive_slot under switch0 gen 4 x4", "cpu1 root_complex",
                                                   "nic0 nic_slot under cpu1 gen 4 x8"));
  fs::remove(path);
}

TEST_F(FakeSysfs, NvmlNamesGpus) {
  std::vector<PcieFunction> functions = topology();
  add_nvml(functions, {{"NVIDIA Test", "0000:03:00.0", 5, 16}, {"elsewhere", "0000:99:00.0", 5, 16}});
  EXPECT_EQ(at(functions, "0000:03:00.0").name, "NVIDIA Test");
}

TEST(Nvml, IsAbsentWhereThereIsNone) { EXPECT_FALSE(Nvml::load("libno-such-library.so.1").has_value()); }

// A library that answers as NVML does (fake_nvml.cc).
TEST(Nvml, AsksTheLibrary) {
  const std::optional<Nvml> nvml = Nvml::load(SPILLWAY_FAKE_NVML);
  ASSERT_TRUE(nvml.has_value());
  const std::vector<NvmlGpu> gpus = nvml->gpus();
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].name, "Fake GPU 1");
  EXPECT_EQ(gpus[1].pci_address, "0000:1b:00.0");
  EXPECT_EQ(gpus[1].pcie_generation, 5U);
  EXPECT_EQ(gpus[1].pcie_lanes, 16U);
  EXPECT_EQ(nvml->state(0).sm_clock_mhz, 1980U);
  EXPECT_EQ(nvml->state(0).memory_clock_mhz, 2619U);
  EXPECT_EQ(nvml->state(0).milliwatts, 123'456U);
  EXPECT_FALSE(nvml->state(0).celsius.has_value());  // it lacks that one
}

TEST(PcieGeneration, OfLinkSpeeds) {
  EXPECT_EQ(pcie_generation_of("2.5 GT/s PCIe"), 1);
  EXPECT_EQ(pcie_generation_of("8.0 GT/s PCIe"), 3);
  EXPECT_EQ(pcie_generation_of("64.0 GT/s PCIe"), 6);
  EXPECT_EQ(pcie_generation_of("Unknown"), 0);
}

// hwloc's node where sysfs says nothing; where sysfs knows, it stays.
TEST(PcieNumaNodes, AreHwlocsWhereSysfsHasNone) {
  std::vector<PcieFunction> functions(3);
  functions[0].address = "0000:01:00.0";
  functions[1].address = "0000:02:00.0";
  functions[1].numa_node = 1;
  functions[1].knows_numa = true;
  functions[2].address = "0000:03:00.0";
  EXPECT_EQ(add_numa_nodes(functions, {{"0000:01:00.0", 3}, {"0000:02:00.0", 0}, {"0000:09:00.0", 2}}), 1U);
  EXPECT_EQ(functions[0].numa_node, 3);
  EXPECT_TRUE(functions[0].knows_numa);
  EXPECT_EQ(functions[1].numa_node, 1);
  EXPECT_FALSE(functions[2].knows_numa);
}

// What it says of this machine are addresses as sysfs writes them.
TEST(PcieNumaNodes, OfThisMachineAreNamedAsInSysfs) {
  if (!has_hwloc()) GTEST_SKIP() << "built without hwloc";
  for (const auto& [address, node] : hwloc_numa_nodes()) {
    EXPECT_TRUE(std::filesystem::exists("/sys/bus/pci/devices/" + address)) << address;
    EXPECT_GE(node, 0);
  }
}

}  // namespace
}  // namespace spillway::hwprofiles
