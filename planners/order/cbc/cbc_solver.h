// CBC (COIN-OR branch and cut, under the EPL) as the solver of integer programs: a module of its own, which is loaded
// for the first program that is solved.
#pragma once

namespace spillway::planners {

// Programs are solved by CBC from here on; nothing in a build without it (meson -Dcbc=).
void use_cbc();

}  // namespace spillway::planners
