// The machines that a few letters mean: "16xh100", "8xa100-40gb", "dgx-h100x2", "2xdgx-h100", "rtx-4090", a profile's
// name or its file.
//
//   COUNTxGPU        so many GPUs of that kind, in machines of the library that have them: one with exactly as many,
//                    else as few of the largest as hold them, alike; one GPU without a system of its own: its profile
//   SYSTEMxCOUNT     so many machines
//   COUNTxSYSTEM     the same; SYSTEM may be a file ("4xmine.json", unless a file has that whole name)
//
// GPU: words of a GPU profile's name, in any order ("h100", "rtx4090", "a100-pcie", "a100-40gb"). Of several that have
// them all, the module (SXM) before the card, then the one with most memory, then the shortest name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hwprofiles/profile_library.h"

namespace spillway::hwprofiles {

struct MachineChoice {
  std::string profile;                                         // for ProfileLibrary::load_system()
  std::vector<std::pair<std::string, std::string>> overrides;  // apply_override(): machines, gpu_count
  std::int64_t gpus = 1;                                       // in all machines
  std::string words;                                           // "2 x DGX H100: 8x H100 SXM5 80 GB"
};

// Throws InputError (place: the text) with the nearest names where nothing is called so, so many GPUs don't make
// machines that are alike, or several machines have no network between them. Reads every system profile of the library.
MachineChoice choose_machine(const ProfileLibrary& library, std::string_view text);

}  // namespace spillway::hwprofiles
