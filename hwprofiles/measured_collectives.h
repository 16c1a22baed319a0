// Measured collectives of a network with an edited link.
#pragma once

#include <string>

#include "hwprofiles/network_profile.h"

namespace spillway::hwprofiles {

// Scales tables measured on a network that was as `before` to what it is now; what is as it was leaves them bit for
// bit. A curve's smallest message tells its fixed time: what the curve's largest bandwidth doesn't explain of it. That
// goes with latency, all other time with the inverse of bandwidth x efficiency, of all-reduces also x switch_reduction.
// `why` becomes the beginning of a changed table's source. Throws InputError (place "latency") where there are tables
// and latency was 0 and isn't now.
void retime_collectives(NetworkProfile& network, const NetworkProfile& before, const std::string& why);

}  // namespace spillway::hwprofiles
