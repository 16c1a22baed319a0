// In a build without CBC.
#include "planners/order/cbc/cbc_solver.h"

namespace spillway::planners {

void use_cbc() {}

}  // namespace spillway::planners
