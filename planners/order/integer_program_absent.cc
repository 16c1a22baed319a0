// Solving integer programs in a build without CBC.
#include "base/input_error.h"
#include "planners/order/integer_program.h"

namespace spillway::planners {

bool IntegerProgram::can_solve() { return false; }

IntegerProgramResult IntegerProgram::solve(int, double) const {
  throw InputError("", "", "this build has no CBC to solve integer programs with",
                   "install coinor-libcbc-dev and build again, or choose a method without integer programs");
}

}  // namespace spillway::planners
