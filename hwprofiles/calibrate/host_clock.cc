#include "hwprofiles/calibrate/host_clock.h"

#include <chrono>

namespace spillway::hwprofiles {

double host_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace spillway::hwprofiles
