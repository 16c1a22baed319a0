// Finding, loading, checking and comparing hardware profile files.
//
// Search order: every directory of $SPILLWAY_PROFILE_PATH (colon separated), then $SPILLWAY_DATA/hwprofiles (an
// installed program sets it to its own data). The source tree's hwprofiles/data follows when it is there (a build tree
// in use), and the share/spillway/hwprofiles of the configured prefix is last. A name found earlier hides a later one;
// in one directory the file that is called after the profile comes first, the others in the order of their paths. A
// name with a '/' or ending in ".json" is a file path.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/input_error.h"
#include "hwprofiles/hardware_profile.h"

namespace spillway::hwprofiles {

enum class ProfileKind { gpu, nvme, host, network, system };
std::string_view profile_kind_name(ProfileKind kind);

struct ProfileEntry {
  std::string name, title, path;
  ProfileKind kind = ProfileKind::gpu;
};

// One leaf for `profile show`: the value printed in its natural unit.
struct ProfileLeaf {
  std::string path;   // "gpu.memory_bandwidth"
  std::string value;  // "3.35"
  std::string unit;   // "TB/s"; empty for plain numbers and text
  Origin origin;      // empty source for structure and text
};

struct ProfileDifference {
  std::string path, left, right;  // printed with unit; "-" where one side lacks it
};

class ProfileLibrary {
 public:
  // The search path described above.
  static ProfileLibrary standard();
  // The same, its directories listed once per search path and process: files added later are not in it. For any thread.
  static const ProfileLibrary& shared();
  static std::vector<std::string> standard_directories();
  explicit ProfileLibrary(const std::vector<std::string>& directories);

  // Sorted by kind, then name. Files that can't be read as a profile are left out (check() tells why). Reads them all,
  // the first time; what names one profile (find(), load_*(), a base, a component) reads that one alone.
  [[nodiscard]] const std::vector<ProfileEntry>& list() const;
  // Throws InputError with the nearest names when there is none.
  [[nodiscard]] ProfileEntry find(std::string_view name) const;
  // Throws InputError where `name` may be in a folder or file that the system would not open.
  void check_readable(std::string_view name) const;

  // Throw InputError naming file, JSON pointer, cause and remedy. Faults are a unit that does not fit, NaN, a negative
  // or out-of-range value, an unknown key, a missing one, a dangling or cyclic reference. A text for load_system may be
  // what machine_choice.h takes ("16xh100"): its answer to a text without a file is kept. The name of a GPU is one such
  // GPU in its usual host, "generic-pcie5-host" where its profile names none; load_named_system takes that, a system's
  // name, or a file, alone.
  [[nodiscard]] HardwareProfile load_system(std::string_view machine) const;
  [[nodiscard]] HardwareProfile load_named_system(std::string_view name_or_path) const;
  [[nodiscard]] GpuProfile load_gpu(std::string_view name_or_path) const;
  [[nodiscard]] NvmeProfile load_nvme(std::string_view name_or_path) const;
  [[nodiscard]] HostProfile load_host(std::string_view name_or_path) const;
  [[nodiscard]] NetworkProfile load_network(std::string_view name_or_path) const;

  // The systems of list() that can be loaded, read once.
  [[nodiscard]] const std::vector<HardwareProfile>& systems() const;

  // Every problem of one file, not the first alone; empty when sound.
  [[nodiscard]] std::vector<std::string> check(const std::string& path) const;
  // Leaves of any kind of profile, in file order of the schema; of a machine that load_system() takes, too.
  [[nodiscard]] std::vector<ProfileLeaf> show(std::string_view name_or_path) const;
  // Leaves that differ in value. Throws when the two are of different kinds.
  [[nodiscard]] std::vector<ProfileDifference> diff(std::string_view left, std::string_view right) const;

 private:
  [[nodiscard]] bool has(std::string_view name_or_path) const;

  class Files;  // what the directories hold, and what was read of it so far
  std::shared_ptr<Files> files_;
};

std::vector<ProfileLeaf> leaves_of(const HardwareProfile& profile);

// A what-if on one value: path as in leaves_of, e.g. "gpu.memory_bandwidth", "drives.0.drive.write_bandwidth",
// "gpu_count"; a trailing "*" takes every leaf with that prefix ("gpu.peak_flops.*").
// "gpu.speed" takes a factor only and scales peaks, achieved rates and memory bandwidth together.
// "gpu.pcie_generation" and "gpu.pcie_lanes" drop the copy rates measured on the former link,
// "host.pcie_payload_efficiency" scales them, and a network's rates and latency scale its measured collectives
// (measured_collectives.h).
// More GPUs or drives than the host has slots for get slots like the existing ones (assign_slots).
// text: "x0.5" a factor, else an absolute value with unit ("3.35TB/s", "24 GiB"); curves take factors only. The
// leaf becomes `assumed`, a measured curve stays `measured`; the source tells the override. Throws InputError for an
// unknown path (nearest names offered) or a bad value.
void apply_override(HardwareProfile& profile, std::string_view path, std::string_view text);

}  // namespace spillway::hwprofiles
