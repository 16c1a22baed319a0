#include "hwprofiles/profile_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/input_error.h"

namespace spillway::hwprofiles {
namespace {

using testing::HasSubstr;

std::string source_root() {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return root != nullptr ? root : ".";
}

ProfileLibrary bundled() { return ProfileLibrary({source_root() + "/hwprofiles/data"}); }

class ProfileFiles : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::path(testing::TempDir()) /
                 (std::string("profiles_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path) << text;
    return path;
  }
  // A drive profile with one line of its own.
  std::string drive(const std::string& line) const {
    return write("drive.json", R"({"schema": "spillway-hardware-profile/1", "kind": "nvme", "name": "d", "title": "D",
      "provenance": "datasheet", "source": "a sheet", "vendor": "V", "pcie_generation": 4, "pcie_lanes": 4, )" +
                                   line + "}");
  }
  std::string host(const std::string& nodes) const {
    return write("host.json", R"({"schema": "spillway-hardware-profile/1", "kind": "host", "name": "h", "title": "H",
      "sockets": 1, "cores": 8, "dram": "64 GiB", "dram_bandwidth": "80 GB/s", "pcie_payload_efficiency": 0.8,
      "bounce_copies": 2, "memcpy_bandwidth": "10 GB/s", "dispatch_cost": "5 us", "pcie": [)" +
                                  nodes + "]}");
  }
  static std::string cause_of(const std::string& path) {
    const std::vector<std::string> problems = bundled().check(path);
    return problems.empty() ? "sound" : problems[0];
  }

  std::filesystem::path directory_;
};

// Every bundled file is sound, and there are as many as the project promises.
TEST(BundledProfiles, AreAllSound) {
  const ProfileLibrary library = bundled();
  std::map<ProfileKind, int> counts;
  for (const ProfileEntry& entry : library.list()) {
    ++counts[entry.kind];
    EXPECT_THAT(library.check(entry.path), testing::IsEmpty()) << entry.path;
  }
  std::size_t files = 0;
  for (const auto& item : std::filesystem::recursive_directory_iterator(source_root() + "/hwprofiles/data")) {
    files += item.path().extension() == ".json" ? 1 : 0;
  }
  EXPECT_EQ(library.list().size(), files) << "a name is used twice, or a file is no profile";
  EXPECT_GE(counts[ProfileKind::gpu], 20);
  EXPECT_GE(counts[ProfileKind::nvme], 25);
  EXPECT_GE(counts[ProfileKind::host], 10);
  EXPECT_GE(counts[ProfileKind::system], 10);
}

// Every number tells its source.
TEST(BundledProfiles, EveryNumberHasASource) {
  const ProfileLibrary library = bundled();
  for (const ProfileEntry& entry : library.list()) {
    for (const ProfileLeaf& leaf : library.show(entry.path)) {
      if (!leaf.unit.empty()) {
        EXPECT_THAT(leaf.origin.source, testing::Not(testing::AnyOf("", "not stated in the file")))
            << entry.name << " " << leaf.path;
      }
    }
  }
}

// 3350 GB/s and 80 GiB in the file arrive as such; eight GPUs take eight slots, two to a switch.
TEST(ProfileLibrary, ComposesASystem) {
  const HardwareProfile dgx = bundled().load_system("dgx-h100");
  EXPECT_EQ(dgx.gpu.memory.value, Bytes(std::int64_t{80} << 30));
  EXPECT_NEAR(to_bytes_per_second(dgx.gpu.memory_bandwidth.value), 3.35e12, 1e4);
  EXPECT_EQ(dgx.gpu.memory.origin.provenance, OriginKind::datasheet);
  ASSERT_EQ(dgx.gpu_slots.size(), 8U);
  EXPECT_EQ(dgx.host.pcie[dgx.gpu_slots[0]].up, dgx.host.pcie[dgx.gpu_slots[1]].up);
  EXPECT_NE(dgx.host.pcie[dgx.gpu_slots[1]].up, dgx.host.pcie[dgx.gpu_slots[2]].up);
  ASSERT_EQ(dgx.drives.size(), 1U);
  EXPECT_EQ(dgx.drives[0].slots.size(), 8U);
  ASSERT_TRUE(dgx.scale_up && dgx.scale_out);
  for (std::size_t i = 0; i < dgx.host.pcie.size(); ++i) {
    EXPECT_LT(dgx.host.pcie[i].up.value_or(0), std::max<std::size_t>(i, 1)) << "parents come first";
  }
}

TEST(ProfileLibrary, TakesALoneGpuForASystem) {
  const HardwareProfile one = bundled().load_system("l40s");
  EXPECT_EQ(one.gpu_count, 1);
  EXPECT_EQ(one.host.name, "generic-pcie5-host");
}

TEST(ProfileLibrary, OffersNearNames) {
  try {
    static_cast<void>(bundled().load_system("dgx-h10"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("dgx-h100"));
  }
  EXPECT_THROW(static_cast<void>(bundled().load_nvme("dgx-h100")), InputError);
}

TEST_F(ProfileFiles, UnitsAreChecked) {
  EXPECT_EQ(cause_of(drive(R"("read_bandwidth": "7 GB/s")")), "sound");
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": "7 GB")")), HasSubstr("/read_bandwidth: unit 'GB' does not fit"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": 7})")), HasSubstr("the unit is missing"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": 7, "unit": "furlong"})")), HasSubstr("furlong"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": -7, "unit": "GB/s"})")), HasSubstr("out of range"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": 7e30, "unit": "GB/s"})")), HasSubstr("out of range"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": NaN, "unit": "GB/s"})")), HasSubstr("not valid JSON"));
  EXPECT_THAT(cause_of(drive(R"("read_bandwidth": {"value": 1e999, "unit": "GB/s"})")), HasSubstr("too large"));
  EXPECT_THAT(cause_of(drive(R"("queue_depth": 1.5)")), HasSubstr("not a whole number"));
}

TEST_F(ProfileFiles, KeysAreChecked) {
  EXPECT_THAT(cause_of(drive(R"("read_bandwith": "7 GB/s")")),
              testing::AllOf(HasSubstr("unknown key"), HasSubstr("did you mean read_bandwidth")));
  EXPECT_THAT(cause_of(drive(R"("vendor": "W")")), HasSubstr("appears twice"));
  EXPECT_THAT(cause_of(drive(R"("capacity": {"value": 1, "unit": "TB", "provenance": "heard"})")),
              HasSubstr("unknown provenance"));
  EXPECT_THAT(cause_of(drive(R"("write_cache": "1 GB")")), HasSubstr("steady_write_bandwidth"));
  EXPECT_THAT(cause_of(write("empty.json", "{}")), HasSubstr("/schema: not a hardware profile"));
  EXPECT_THAT(cause_of(write("newer.json", R"({"schema": "spillway-hardware-profile/9"})")),
              HasSubstr("hardware-profile/9"));
  EXPECT_THAT(cause_of(write("cut.json", R"({"schema": "spill)")), HasSubstr("not valid JSON"));
  EXPECT_THAT(cause_of(write("nest.json", std::string(100000, '['))), HasSubstr("nested deeper"));
  EXPECT_THAT(cause_of(directory_.string()), HasSubstr("is a directory"));
  EXPECT_THAT(cause_of((directory_ / "absent.json").string()), HasSubstr("No such file"));
}

// All problems are told, not just the first.
TEST_F(ProfileFiles, CheckTellsEveryProblem) {
  EXPECT_EQ(bundled().check(drive(R"("colour": 1, "capacity": "1 GB/s", "price": "-1 USD")")).size(), 3U);
}

TEST_F(ProfileFiles, TreeReferencesAreChecked) {
  const std::string root = R"({"name": "cpu0", "kind": "root_complex"})";
  EXPECT_EQ(
      cause_of(host(R"({"name": "gpu0", "kind": "gpu_slot", "up": "cpu0", "generation": 4, "lanes": 16}, )" + root)),
      "sound");
  EXPECT_THAT(
      cause_of(host(root + R"(, {"name": "g", "kind": "gpu_slot", "up": "cpu1", "generation": 4, "lanes": 16})")),
      testing::AllOf(HasSubstr("no node 'cpu1'"), HasSubstr("did you mean cpu0")));
  EXPECT_THAT(cause_of(host(root + R"(, {"name": "g", "kind": "gpu_slot", "generation": 4, "lanes": 16})")),
              HasSubstr("/pcie/1/up: missing"));
  EXPECT_THAT(cause_of(host(root + R"(, {"name": "g", "kind": "gpu_slot", "up": "cpu0"})")), HasSubstr("has no rate"));
  EXPECT_THAT(cause_of(host(R"({"name": "a", "kind": "switch", "up": "b", "generation": 4, "lanes": 16},
                               {"name": "b", "kind": "switch", "up": "a", "generation": 4, "lanes": 16})")),
              HasSubstr("cycle"));
}

TEST_F(ProfileFiles, SystemReferencesAreChecked) {
  const auto system = [this](const std::string& gpu, const std::string& host_name) {
    return write("system.json",
                 R"({"schema": "spillway-hardware-profile/1", "kind": "system", "name": "s", "title": "S",
      "gpu": {"profile": ")" +
                     gpu + R"(", "count": 2}, "host": ")" + host_name + "\"}");
  };
  EXPECT_EQ(cause_of(system("l40s", "dgx-a100-host")), "sound");
  EXPECT_THAT(cause_of(system("l41", "dgx-a100-host")), HasSubstr("no hardware profile 'l41'"));
  EXPECT_THAT(cause_of(system("dgx-a100", "dgx-a100-host")), HasSubstr("is a system profile, not a gpu"));
  EXPECT_THAT(cause_of(system("l40s", "generic-pcie5-host")), HasSubstr("has 1 gpu_slot nodes for 2"));
}

// An earlier directory hides a later one; a path beside the system file is a reference too.
TEST_F(ProfileFiles, SearchPathOrder) {
  write("l40s.json", R"({"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "l40s", "title": "Mine"})");
  const ProfileLibrary library({directory_.string(), source_root() + "/hwprofiles/data"});
  EXPECT_EQ(library.find("l40s").title, "Mine");
  EXPECT_EQ(library.find("l4").title, "NVIDIA L4");
}

// A profile on a base: what it states is its own, with its own origin; all else is the base's with the base's.
// One name, several files: the earlier directory's, there the one that is called after the profile, then the first
// path.
TEST_F(ProfileFiles, OneNameIsOneFileForAll) {
  const auto gpu = [&](const std::string& name, const std::string& title) {
    std::filesystem::create_directories((directory_ / name).parent_path());
    return write(
        name, R"({"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "l4", "title": ")" + title + "\"}");
  };
  gpu("early/zzz.json", "early");
  gpu("late/aaa.json", "not called after it");
  gpu("late/l4.json", "called after it");
  write("early/unread.json", "{");
  const std::string early = (directory_ / "early").string(), late = (directory_ / "late").string();
  const auto found = [](const std::vector<std::string>& directories) {
    const ProfileLibrary library(directories);
    const std::string title = library.find("l4").title;
    EXPECT_EQ(library.list().size(), 1U);
    EXPECT_EQ(library.list().front().title, title);
    EXPECT_EQ(library.find("l4").title, title);  // listed or not
    return title;
  };
  EXPECT_EQ(found({early, late}), "early");
  EXPECT_EQ(found({late, early}), "called after it");
  std::filesystem::remove(directory_ / "late/l4.json");
  EXPECT_EQ(found({late, early}), "not called after it");
  EXPECT_THROW(ProfileLibrary({early}).find("l40"), InputError);
}

TEST_F(ProfileFiles, BasesAreLaidUnder) {
  const auto leaf_of = [](const std::string& path, const char* leaf) {
    for (const ProfileLeaf& each : bundled().show(path))
      if (each.path == leaf) return each;
    return ProfileLeaf{};
  };
  const auto gpu = [this](const char* name, const std::string& rest) {
    return write(std::string(name) + ".json",
                 std::string(R"({"schema": "spillway-hardware-profile/1", "kind": "gpu", "title": "T", "name": ")") +
                     name + "\", " + rest + "}");
  };
  const std::string one = gpu("one", R"("base": "h100-sxm5-80gb", "source": "mine", "provenance": "measured",
      "memory": "96 GiB", "peak_flops": {"bf16": "500 TFLOPS"}, "gemm_efficiency": [])");
  EXPECT_EQ(leaf_of(one, "memory").value, "96");
  EXPECT_EQ(leaf_of(one, "memory").origin.source, "mine");
  EXPECT_EQ(leaf_of(one, "memory").origin.provenance, OriginKind::measured);
  EXPECT_EQ(leaf_of(one, "peak_flops.bf16").origin.source, "mine");
  const ProfileLeaf fp8 = leaf_of(one, "peak_flops.fp8"), of_base = leaf_of("h100-sxm5-80gb", "peak_flops.fp8");
  EXPECT_EQ(fp8.value, of_base.value);
  EXPECT_EQ(fp8.origin.source, of_base.origin.source);
  EXPECT_EQ(fp8.origin.provenance, OriginKind::datasheet);
  EXPECT_EQ(leaf_of(one, "tdp").origin.source, leaf_of("h100-sxm5-80gb", "tdp").origin.source);
  EXPECT_TRUE(bundled().load_gpu(one).gemm_efficiency.empty());
  EXPECT_FALSE(bundled().load_gpu("h100-sxm5-80gb").gemm_efficiency.empty());
  // On a base that has one itself, by its path; what the nearer one states counts.
  const std::string two =
      gpu("two", R"("base": "one.json", "memory": {"value": 48, "unit": "GiB", "source": "sheet"})");
  EXPECT_EQ(leaf_of(two, "memory").value, "48");
  EXPECT_EQ(leaf_of(two, "memory").origin.source, "sheet");
  EXPECT_EQ(leaf_of(two, "peak_flops.bf16").origin.source, "mine");
  EXPECT_EQ(bundled().load_gpu(two).name, "two");
  // As for any profile: keys, units, and a base that exists, is of the kind and doesn't come back to itself.
  EXPECT_THAT(cause_of(gpu("a", R"("base": "h100-sxm5-80gb", "memry": "1 GiB")")), HasSubstr("did you mean memory"));
  EXPECT_THAT(cause_of(gpu("a", R"("base": "h100-sxm5-80gb", "memory": "1 GB/s")")), HasSubstr("/memory"));
  EXPECT_THAT(cause_of(gpu("a", R"("base": "h100-sxm5-81gb")")),
              testing::AllOf(HasSubstr("/base"), HasSubstr("did you mean h100-sxm5-80gb")));
  EXPECT_THAT(cause_of(gpu("a", R"("base": "dgx-h100")")), HasSubstr("/base: 'dgx-h100' is a system profile"));
  EXPECT_THAT(cause_of(gpu("a", R"("base": "./a.json")")), HasSubstr("is based on this profile itself"));
  gpu("b", R"("base": "./c.json")");
  EXPECT_THAT(cause_of(gpu("c", R"("base": "./b.json")")), HasSubstr("is based on this profile itself"));
  EXPECT_THAT(cause_of(gpu("a", R"("memory": "80 GiB")")), HasSubstr("missing"));  // without a base
  // A base's own mistakes are told with its own file.
  gpu("broken", R"("base": "l40s", "tdp": "5 GiB")");
  EXPECT_THAT(cause_of(gpu("a", R"("base": "broken.json")")), HasSubstr("broken.json"));
}

// A system's components may be named by its base; files are seen from the folder of the one that names them.
TEST_F(ProfileFiles, SystemsHaveBasesToo) {
  std::filesystem::create_directories(directory_ / "below");
  write("below/own.json", R"({"schema": "spillway-hardware-profile/1", "kind": "gpu", "name": "own", "title": "O",
      "base": "h100-sxm5-80gb"})");
  write("below/base.json", R"({"schema": "spillway-hardware-profile/1", "kind": "system", "name": "base", "title": "B",
      "base": "dgx-h100", "gpu": {"profile": "./own.json"}})");
  const std::string mine = write("mine.json", R"({"schema": "spillway-hardware-profile/1", "kind": "system",
      "name": "mine", "title": "M", "base": "below/base.json", "gpu": {"count": 4}})");
  const HardwareProfile system = bundled().load_system(mine);
  EXPECT_EQ(system.gpu.name, "own");
  EXPECT_EQ(system.gpu_count, 4);
  EXPECT_EQ(system.host.name, "dgx-h100-host");
  EXPECT_EQ(system.name, "mine");
}

// 400 GB/s of NVLink both ways together, everything else as the H100.
TEST(BundledProfiles, H800DiffersFromH100InItsLinks) {
  const ProfileLibrary library = bundled();
  std::vector<std::string> paths;
  for (const ProfileDifference& row : library.diff("h100-sxm5-80gb", "h800-sxm5-80gb")) paths.push_back(row.path);
  EXPECT_THAT(paths, testing::UnorderedElementsAre("note", "nvlink_bandwidth", "peak_flops.fp64"));
  const HardwareProfile node = library.load_system("hgx-h800");
  EXPECT_EQ(node.gpu_count, 8);
  EXPECT_EQ(to_bytes_per_second(node.scale_up->bandwidth.value), 200e9);
  EXPECT_TRUE(node.scale_up->collectives.empty());
  EXPECT_EQ(to_bytes_per_second(node.scale_out->bandwidth.value), 50e9);
}

// Only the values that differ are rows.
TEST(ProfileLibrary, DiffTellsWhatDiffers) {
  const ProfileLibrary library = bundled();
  EXPECT_THAT(library.diff("h100-sxm5-80gb", "h100-sxm5-80gb"), testing::IsEmpty());
  std::map<std::string, ProfileDifference> rows;
  for (const ProfileDifference& row : library.diff("h100-sxm5-80gb", "h200-sxm-141gb")) rows[row.path] = row;
  EXPECT_EQ(rows["memory"].left, "80 GiB");
  EXPECT_EQ(rows["memory"].right, "141 GiB");
  EXPECT_EQ(rows.count("pcie_lanes"), 0U);
  EXPECT_THROW(static_cast<void>(library.diff("l40s", "dgx-a100")), InputError);
}

// Measured on the base's links.
TEST_F(ProfileFiles, TablesOfABaseAreOfItsLinks) {
  const auto network = [this](const std::string& own) {
    return write("network.json",
                 R"({"schema": "spillway-hardware-profile/1", "kind": "network", "name": "n", "title": "N",
      "base": "nvlink4-h100", "source": "mine", )" +
                     own + "}");
  };
  EXPECT_THAT(cause_of(network(R"("bandwidth": "200 GB/s")")), HasSubstr("/bandwidth"));
  EXPECT_THAT(cause_of(network(R"("efficiency": {"value": 0.5})")), HasSubstr("\"collectives\": []"));
  EXPECT_EQ(cause_of(network(R"("bandwidth": "200 GB/s", "collectives": [])")), "sound");
  EXPECT_EQ(cause_of(network(R"("latency": "3 us", "max_group": {"value": 72})")), "sound");
}

double bandwidth(const HardwareProfile& profile) { return to_bytes_per_second(profile.gpu.memory_bandwidth.value); }

TEST(Override, FactorsAndAbsoluteValues) {
  HardwareProfile dgx = bundled().load_system("dgx-h100");
  const double before = bandwidth(dgx);
  apply_override(dgx, "gpu.memory_bandwidth", "x0.5");
  EXPECT_NEAR(bandwidth(dgx), before / 2, 1e4);
  EXPECT_EQ(dgx.gpu.memory_bandwidth.origin.provenance, OriginKind::assumed);
  EXPECT_THAT(dgx.gpu.memory_bandwidth.origin.source, HasSubstr("x0.5"));
  apply_override(dgx, "gpu.memory", "24GiB");
  EXPECT_EQ(dgx.gpu.memory.value, Bytes(std::int64_t{24} << 30));
  apply_override(dgx, "drives.0.drive.write_bandwidth", "1 GB/s");
  EXPECT_NEAR(to_bytes_per_second(dgx.drives[0].drive.write_bandwidth->value), 1e9, 1e3);
}

// Twice the speed: every peak and the memory bandwidth doubles, the launch path stays.
TEST(Override, SpeedScalesPeaksAndBandwidthTogether) {
  HardwareProfile dgx = bundled().load_system("dgx-h100");
  const HardwareProfile before = dgx;
  apply_override(dgx, "gpu.speed", "x2");
  for (std::size_t i = 0; i < precision_count; ++i) {
    ASSERT_EQ(dgx.gpu.peak_flops_per_second[i].has_value(), before.gpu.peak_flops_per_second[i].has_value());
    if (before.gpu.peak_flops_per_second[i]) {
      EXPECT_DOUBLE_EQ(dgx.gpu.peak_flops_per_second[i]->value, 2 * before.gpu.peak_flops_per_second[i]->value);
    }
  }
  EXPECT_NEAR(bandwidth(dgx), 2 * bandwidth(before), 2e3);
  EXPECT_EQ(dgx.gpu.launch_call.value, before.gpu.launch_call.value);
}

// A copy rate measured over one link says nothing about another one.
TEST(Override, AnotherPcieLinkDropsTheMeasuredCopyRates) {
  HardwareProfile a100 = bundled().load_system("a100-40gb-1gpu");
  ASSERT_TRUE(a100.gpu.host_to_device_bandwidth && a100.gpu.duplex_bandwidth);
  apply_override(a100, "gpu.pcie_generation", "3");
  EXPECT_FALSE(a100.gpu.host_to_device_bandwidth || a100.gpu.device_to_host_bandwidth || a100.gpu.duplex_bandwidth);
}

// Seconds of a message as a group's table has them, but for the group's factor.
double table_seconds(const HardwareProfile& profile, std::size_t table, double bytes) {
  return bytes / profile.scale_up->collectives.at(table).bus_bandwidth.at(8, bytes).value;
}

// Measured tables follow what they were measured under: large messages the rate, small ones the latency, and what is
// set to what it was changes no bit.
TEST(Override, MeasuredCollectivesFollowTheirNetwork) {
  const HardwareProfile dgx = bundled().load_system("dgx-h100");
  ASSERT_GE(dgx.scale_up->collectives.size(), 2U);
  ASSERT_EQ(dgx.scale_up->collectives[0].kind, NetworkCollective::all_reduce);
  const auto edited = [&](const char* path, const char* text) {
    HardwareProfile profile = dgx;
    apply_override(profile, path, text);
    return profile;
  };
  const double small = 512, large = 1 << 29;
  for (const auto& [path, same] : {std::pair("scale_up.bandwidth", "450 GB/s"),
                                   {"scale_up.latency", "2.5 us"},
                                   {"scale_up.efficiency", "x1"},
                                   {"scale_up.switch_reduction", "1.33"}})
    for (std::size_t table = 0; table < dgx.scale_up->collectives.size(); ++table)
      for (double bytes = small; bytes <= large; bytes *= 3)
        EXPECT_EQ(table_seconds(edited(path, same), table, bytes), table_seconds(dgx, table, bytes)) << path;
  struct Row {
    const char *path, *text;
    double of_small, of_large;  // times the former time; a large message's fixed part is below 2 %
  };
  for (const Row& row : {Row{"scale_up.bandwidth", "x0.25", 1, 4}, Row{"scale_up.bandwidth", "x4", 1, 0.25},
                         Row{"scale_up.efficiency", "x0.5", 1, 2}, Row{"scale_up.latency", "x10", 10, 1},
                         Row{"scale_up.latency", "0 us", 0, 1}, Row{"scale_up.switch_reduction", "1", 1, 1.33}}) {
    const HardwareProfile profile = edited(row.path, row.text);
    EXPECT_NEAR(table_seconds(profile, 0, small) / table_seconds(dgx, 0, small), row.of_small, 0.01) << row.path;
    EXPECT_NEAR(table_seconds(profile, 0, large) / table_seconds(dgx, 0, large), row.of_large, 0.06) << row.path;
    EXPECT_EQ(profile.scale_up->collectives[0].origin.provenance, OriginKind::assumed);
    EXPECT_THAT(profile.scale_up->collectives[0].origin.source, HasSubstr(row.path));
    for (double bytes = small; bytes < large; bytes *= 2)  // a larger message takes as long at least
      EXPECT_LT(table_seconds(profile, 0, bytes), 1.2 * table_seconds(profile, 0, 2 * bytes))
          << row.path << " " << bytes;
  }
  // An all-gather is not what switches add up.
  EXPECT_EQ(table_seconds(edited("scale_up.switch_reduction", "1"), 1, large), table_seconds(dgx, 1, large));
  HardwareProfile none = edited("scale_up.latency", "0 us");
  EXPECT_THROW(apply_override(none, "scale_up.latency", "1 us"), InputError);
}

TEST(Override, MeasuredCopiesFollowTheLinksPayload) {
  const HardwareProfile a100 = bundled().load_system("a100-40gb-1gpu");
  HardwareProfile half = a100;
  apply_override(half, "host.pcie_payload_efficiency", "x0.5");
  for (const auto rate :
       {&GpuProfile::host_to_device_bandwidth, &GpuProfile::device_to_host_bandwidth, &GpuProfile::duplex_bandwidth})
    EXPECT_NEAR(to_bytes_per_second((half.gpu.*rate)->value), to_bytes_per_second((a100.gpu.*rate)->value) / 2, 1e3);
}

// More drives than the host has slots: slots like the existing ones are added, in turn over their parents.
TEST(Override, DrivesBeyondTheSlotsGetSlots) {
  HardwareProfile dgx = bundled().load_system("dgx-h100");
  apply_override(dgx, "drives.0.count", "16");
  ASSERT_EQ(dgx.drives[0].slots.size(), 16U);
  const PcieNode& extra = dgx.host.pcie[dgx.drives[0].slots[8]];
  EXPECT_EQ(extra.up, dgx.host.pcie[dgx.drives[0].slots[0]].up);
  EXPECT_EQ(extra.generation->origin.provenance, OriginKind::assumed);
}

TEST(Override, BadPathsAndValuesLeaveTheProfileAlone) {
  HardwareProfile dgx = bundled().load_system("dgx-h100");
  const double before = bandwidth(dgx);
  EXPECT_THROW(apply_override(dgx, "gpu.memory_bandwith", "x2"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu.memory_bandwidth", "2 GiB"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu.memory_bandwidth", "x0"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu.memory_bandwidth", "x-1"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu.speed", "3 TB/s"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu_count", "0"), InputError);
  EXPECT_THROW(apply_override(dgx, "gpu_count", "x0.3"), InputError);
  EXPECT_DOUBLE_EQ(bandwidth(dgx), before);
  try {
    apply_override(dgx, "gpu.memory_bandwith", "x2");
  } catch (const InputError& error) {
    EXPECT_THAT(error.remedy(), HasSubstr("gpu.memory_bandwidth"));
  }
}

// The class of the smallest side chooses the curve: a 4096^3 product on H100 is near its plateau, a skinny one far
// from it, and a precision without a table says that it was extrapolated.
TEST(GemmEfficiency, FollowsTheShape) {
  const GpuProfile gpu = bundled().load_gpu("h100-sxm5-80gb");
  const CurveValue square = gemm_efficiency(gpu, Precision::bf16, 4096, 4096, 4096);
  EXPECT_GT(square.value, 0.7);
  EXPECT_LT(square.value, 0.85);
  EXPECT_FALSE(square.extrapolated);
  EXPECT_LT(gemm_efficiency(gpu, Precision::bf16, 1, 4096, 4096).value, 0.02);
  EXPECT_TRUE(gemm_efficiency(gpu, Precision::fp16, 4096, 4096, 4096).extrapolated);
}

// x16 of generations 3, 4, 5: 15.75, 31.5, 63 GB/s.
TEST(PcieRawRate, MatchesTheStandards) {
  EXPECT_NEAR(to_bytes_per_second(pcie_raw_rate(3, 16)), 15.754e9, 1e6);
  EXPECT_NEAR(to_bytes_per_second(pcie_raw_rate(4, 16)), 31.508e9, 1e6);
  EXPECT_NEAR(to_bytes_per_second(pcie_raw_rate(5, 16)), 63.015e9, 1e6);
  EXPECT_NEAR(to_bytes_per_second(pcie_raw_rate(6, 16)), 121e9, 1e6);
}

}  // namespace
}  // namespace spillway::hwprofiles
