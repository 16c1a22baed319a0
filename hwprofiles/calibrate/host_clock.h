// The host's clock as measurements see it. A separate function, so that tests can link one that runs on their time.
#pragma once

namespace spillway::hwprofiles {

// Monotonic, from any origin.
double host_seconds();

}  // namespace spillway::hwprofiles
