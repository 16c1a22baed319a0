// HardwareProfile: the second input of every replay, what the step runs on.
//
// A machine's profile names components (a GPU model and count, a host, drive groups, networks) in separate files; this
// is the composed whole. Files are JSON (docs/schemas/hardware-profile.schema.json); hwprofiles/profile_library.h loads
// them. A new machine is a new file, never code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hwprofiles/gpu_profile.h"
#include "hwprofiles/host_profile.h"
#include "hwprofiles/network_profile.h"
#include "hwprofiles/nvme_profile.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

// Equal drives; with `raid0` they form one stripe set, else each is addressed alone.
struct DriveGroup {
  std::string name;
  NvmeProfile drive;
  std::int64_t count = 1;
  bool raid0 = true;
  Bytes stripe{524288};
  std::vector<std::size_t> slots;  // indices of drive slots in host.pcie, one per drive
};

struct HardwareProfile {
  std::string name, title, path, note;
  GpuProfile gpu;
  std::int64_t gpu_count = 1;          // in one machine
  std::vector<std::size_t> gpu_slots;  // indices of GPU slots in host.pcie, one per GPU
  HostProfile host;
  std::vector<DriveGroup> drives;
  std::optional<NetworkProfile> scale_up;   // between the GPUs of one machine, or of several
  Maybe<std::int64_t> scale_up_gpus;        // that it joins, a multiple of gpu_count; absent: those of one machine
  std::optional<NetworkProfile> scale_out;  // between machines
  std::int64_t machines = 1;
  Maybe<double> price_usd, price_usd_per_hour, power_watts, electricity_usd_per_kwh;
  // Choices that a few letters left open (machine_choice.h), "host: DGX H100 host, 2048 GiB"; empty: a profile was
  // named.
  std::vector<std::string> assumed;

  [[nodiscard]] std::int64_t total_gpus() const { return gpu_count * machines; }
  [[nodiscard]] std::int64_t joined_gpus() const { return scale_up_gpus ? scale_up_gpus->value : gpu_count; }
};

// Gives GPUs and drives their slots in the host's tree, in order. Slots that the host lacks: with `extend` they
// are added beside the existing ones (same parents in turn, same links, provenance assumed), else InputError.
void assign_slots(HardwareProfile& profile, bool extend);

}  // namespace spillway::hwprofiles
