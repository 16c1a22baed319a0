#include "cli/options/mpi_launch.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/input_error.h"

namespace spillway::cli {
namespace {

// What Open MPI and those of MPICH's kin tell each process they start.
int launched_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"})
    if (const char* text = std::getenv(name)) return std::atoi(text);
  return 1;
}

}  // namespace

void continue_under_mpi() {
  if (launched_processes() < 2) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string companion = (self.parent_path() / "spillway-mpi").string();
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string line{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::vector<char*> arguments;
  for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1) arguments.push_back(line.data() + at);
  arguments.push_back(nullptr);
  if (arguments.size() > 1) ::execv(companion.c_str(), arguments.data());
  throw InputError("mpirun", "", "this spillway was built without MPI",
                   "build it with -Dmpi=enabled (Debian: libboost-mpi-dev, openmpi-bin), or use --shard and merge");
}

}  // namespace spillway::cli
