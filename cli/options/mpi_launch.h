// From the plain program to its companion that knows MPI.
#pragma once

namespace spillway::cli {

// Under an MPI launcher with more than one process: replaces this process by spillway-mpi beside it, with the same
// arguments. Returns where there is no launcher. Throws InputError where the companion wasn't built.
void continue_under_mpi();

}  // namespace spillway::cli
