// Finds the bundled profile of the very GPU that a driver names.
#pragma once

#include <string>
#include <vector>

#include "hwprofiles/gpu_points.h"
#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

// A profile fits if the words of its model ("h100", "rtx 4090") are in the device's name. Words of another model ("ti",
// "super") are in both or neither. Its multiprocessors are as many, and its memory is what a driver leaves of the
// profile's. The form factor is that of the name if it tells one (NVL and PCIe are cards, SXM and HBM3 modules). The
// nearest memory decides between several. Throws InputError with the place "--base": none fits, or two fit alike; the
// remedy names those that come near.
std::string matching_gpu(const ProfileLibrary& library, const GpuIdentity& device);

}  // namespace spillway::hwprofiles
