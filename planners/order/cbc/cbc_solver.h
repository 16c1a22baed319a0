// CBC (COIN-OR branch and cut) as the solver of integer programs: what links this room links CBC, under the EPL.
#pragma once

namespace spillway::planners {

// Programs are solved by CBC from here on; nothing in a build without it (meson -Dcbc=).
void use_cbc();

}  // namespace spillway::planners
