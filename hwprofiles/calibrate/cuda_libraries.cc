#include "hwprofiles/calibrate/cuda_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace spillway::hwprofiles {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (std::error_code of_entry; entry->is_directory(of_entry)) found.push_back(entry->path());
  std::sort(found.begin(), found.end());
  return found;
}

// lib/python3.*/site-packages of a prefix, and what Debian and Ubuntu call it.
std::vector<fs::path> python_packages(const fs::path& prefix) {
  std::vector<fs::path> found;
  for (const fs::path& folder : folders_in(prefix / "lib"))
    if (folder.filename().string().starts_with("python3"))
      for (const char* packages : {"site-packages", "dist-packages"}) found.push_back(folder / packages);
  return found;
}

std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders;
  const std::string listed = variable("SPILLWAY_CUDA_LIBRARIES");
  for (std::string_view rest = listed; !rest.empty();) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) folders.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (const std::string& toolkit : {variable("CUDA_HOME"), variable("CUDA_PATH"), std::string("/usr/local/cuda")})
    if (!toolkit.empty())
      for (const char* below : {"lib64", "extras/CUPTI/lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
        folders.push_back(fs::path(toolkit) / below);
  const std::string home = variable("HOME");
  for (const std::string& prefix :
       {variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), home.empty() ? home : home + "/.local",
        std::string("/usr/local"), std::string("/usr"), std::string("/opt/conda")})
    if (!prefix.empty())
      for (const fs::path& packages : python_packages(prefix))
        for (const fs::path& package : folders_in(packages / "nvidia")) folders.push_back(package / "lib");
  return folders;
}

}  // namespace

std::vector<std::string> cuda_library_files(const std::string& name) {
  std::vector<std::string> files;
  for (const fs::path& folder : library_folders())
    if (std::error_code error; fs::is_regular_file(folder / name, error)) files.push_back(folder / name);
  return files;
}

bool load_cuda_library(const std::string& name) {
  if (dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return true;
  const std::vector<std::string> files = cuda_library_files(name);
  return std::any_of(files.begin(), files.end(),
                     [](const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr; });
}

}  // namespace spillway::hwprofiles
