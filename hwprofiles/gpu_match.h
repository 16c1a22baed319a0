// Which bundled profile is of the very GPU that a driver names.
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/gpu_points.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

// The words of the profile's model ("h100", "rtx 4090") are in the device's name, its memory is what a driver leaves of
// the profile's, its multiprocessors are as many, and the form factor is that of the name where the name tells one (NVL
// and PCIe are cards, SXM and HBM3 modules). Of several the one whose memory is nearest. Throws InputError with the
// place "--base": none fits, or two fit alike; the remedy names those that come near.
std::string matching_gpu(const ProfileLibrary& library, const GpuIdentity& device);

}  // namespace spillway::hwprofiles
