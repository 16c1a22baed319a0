// Rate of one large transfer on a bundled machine: published rates of copies and of GPUDirect storage.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace spillway::validation {

// host_to_device, device_to_host: pinned copies of GPU 0. peer, peer_duplex: GPU 0 to 1, and back at once, both
// directions counted. drive_read, drive_write: between GPU 0 and one RAID-0 set.
struct LinkQuestion {
  std::string system;  // system or GPU profile
  std::string path;    // as above
  std::string drive;   // drive profile in place of the system's own; empty: its own
  std::int64_t drive_count = 1;
};

// Bytes a second of a transfer of 64 GiB on an idle machine (sim/devices/machine.h), drives at their first rate. Throws
// InputError for unknown profiles and paths, and where the machine has no such path.
double link_rate(const LinkQuestion& question);

}  // namespace spillway::validation
