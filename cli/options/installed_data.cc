#include "cli/options/installed_data.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace spillway::cli {

void use_installed_data() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return;
  const fs::path data = (program.parent_path() / SPILLWAY_DATA_FROM_PROGRAM).lexically_normal();
  constexpr int keep_the_users = 0;
  if (fs::is_directory(data, error)) setenv("SPILLWAY_DATA", data.c_str(), keep_the_users);
}

}  // namespace spillway::cli
