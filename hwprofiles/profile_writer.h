// Profiles back to files: the form that profile_library.h reads.
#pragma once

#include <string>

#include "hwprofiles/gpu_profile.h"
#include "hwprofiles/host_profile.h"
#include "hwprofiles/nvme_profile.h"
#include "hwprofiles/sourced.h"

namespace spillway::hwprofiles {

// JSON text of one component. `file_origin` stands at the head of the file; leaves state what differs from it. Numbers
// keep nine digits (sizes: fifteen) in the unit they read best in. O(leaves).
std::string profile_text(const NvmeProfile& drive, const Origin& file_origin);
std::string profile_text(const HostProfile& host, const Origin& file_origin);
std::string profile_text(const GpuProfile& gpu, const Origin& file_origin);

}  // namespace spillway::hwprofiles
