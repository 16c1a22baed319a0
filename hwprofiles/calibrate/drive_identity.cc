#include "hwprofiles/calibrate/drive_identity.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <filesystem>
#include <system_error>

#include "hwprofiles/calibrate/sysfs.h"

namespace spillway::hwprofiles {

namespace fs = std::filesystem;

DriveIdentity drive_identity(const std::string& folder, const std::string& sysfs) {
  struct stat status {};
  if (::stat(folder.empty() ? "." : folder.c_str(), &status) != 0) return {};
  return drive_identity(major(status.st_dev), minor(status.st_dev), sysfs);
}

DriveIdentity drive_identity(unsigned major, unsigned minor, const std::string& sysfs) {
  std::error_code error;
  fs::path block = fs::canonical(fs::path(sysfs) / fmt::format("dev/block/{}:{}", major, minor), error);
  if (error) return {};
  if (fs::exists(block / "partition", error)) block = block.parent_path();
  DriveIdentity identity;
  identity.device = block.filename();
  identity.model = sysfs_text(block / "device/model");
  constexpr std::int64_t sector = 512;  // whatever the drive's own, sysfs counts in these
  identity.capacity = Bytes(sysfs_number(block / "size") * sector);
  // The first PCI function above it that states a link.
  for (fs::path above = block; above.has_relative_path() && above != fs::path(sysfs); above = above.parent_path()) {
    const std::int64_t lanes = sysfs_number(above / "current_link_width");
    const std::int64_t generation = pcie_generation_of(sysfs_text(above / "current_link_speed"));
    if (lanes <= 0 || generation <= 0) continue;
    identity.pcie_generation = generation;
    identity.pcie_lanes = lanes;
    break;
  }
  return identity;
}

}  // namespace spillway::hwprofiles
