// Identity of the drive under a file, from sysfs.
#pragma once

#include <string>

#include "hwprofiles/calibrate/drive_measurement.h"

namespace spillway::hwprofiles {

// `folder`: where the file lies or will lie. `sysfs`: "/sys", or a copy of it for tests. Empty fields where the system
// doesn't say: file systems over several drives or the network, virtual drives without a link.
DriveIdentity drive_identity(const std::string& folder, const std::string& sysfs = "/sys");
// The same by device number.
DriveIdentity drive_identity(unsigned major, unsigned minor, const std::string& sysfs);

}  // namespace spillway::hwprofiles
