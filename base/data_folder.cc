#include "base/data_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr const char* variable = "SPILLWAY_DATA";

}  // namespace

std::vector<std::string> data_places(std::string_view installed, std::string_view in_source) {
  std::vector<std::string> places;
  if (const char* data = std::getenv(variable); data != nullptr && *data != '\0')
    places.push_back((fs::path(data) / installed).string());
  places.push_back((fs::path(SPILLWAY_SOURCE_ROOT) / in_source).string());
  places.push_back((fs::path(SPILLWAY_INSTALLED_DATA) / installed).string());
  return places;
}

std::vector<std::string> json_files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".json") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

void use_installed_data() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (error) return;
  const fs::path data = (program.parent_path() / SPILLWAY_DATA_FROM_PROGRAM).lexically_normal();
  constexpr int keep_the_users = 0;
  if (fs::is_directory(data, error)) setenv(variable, data.c_str(), keep_the_users);
}

}  // namespace spillway
