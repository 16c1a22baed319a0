// spillway as one process of an MPI job: only the first has a voice.
#include <cstdio>
#include <memory>

#include "cli/command_line.h"
#include "studies/sweep/mpi/mpi_job.h"

int main(int argc, char** argv) {
  spillway::studies::MpiJob job(argc, argv);
  if (!job.leads()) {
    if (std::freopen("/dev/null", "w", stdout) == nullptr || std::freopen("/dev/null", "w", stderr) == nullptr)
      return 3;
  }
  const int code = spillway::cli::run_command_line(argc, argv, &job);
  return job.leads() ? code : 0;
}
