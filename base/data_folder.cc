#include "base/data_folder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace spillway {
namespace {

namespace fs = std::filesystem;

constexpr const char* variable = "SPILLWAY_DATA";

fs::path program_folder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

// The build folder of a program that was not installed: the first above it with the file that names the source tree
// beside what builds it, as that file alone says nothing (a stray copy of it in /tmp would lend its data to all there).
struct BuildTree {
  fs::path folder, source;  // both empty: installed
};

BuildTree find_build_tree() {
  const fs::path start = program_folder();
  for (fs::path folder = start; !folder.empty(); folder = folder.parent_path()) {
    if (std::ifstream named(folder / "spillway-source"), builds(folder / "build.ninja"); named && builds)
      if (std::string source; std::getline(named, source)) return {folder, source};
    if (folder == folder.root_path()) break;
  }
  return {};
}

const BuildTree& build_tree() {
  static const BuildTree tree = find_build_tree();
  return tree;
}

fs::path beside_program(const char* from_program) { return (program_folder() / from_program).lexically_normal(); }

}  // namespace

std::vector<std::string> data_places(std::string_view installed, std::string_view in_source) {
  std::vector<std::string> places;
  if (const char* data = std::getenv(variable); data != nullptr && *data != '\0')
    places.push_back((fs::path(data) / installed).string());
  if (!build_tree().source.empty()) places.push_back((build_tree().source / in_source).string());
  places.push_back((beside_program(SPILLWAY_DATA_FROM_PROGRAM) / installed).string());
  return places;
}

std::vector<std::string> module_places(std::string_view file, std::string_view in_build) {
  std::vector<std::string> places;
  if (!build_tree().folder.empty()) places.push_back((build_tree().folder / in_build / file).string());
  places.push_back((beside_program(SPILLWAY_MODULES_FROM_PROGRAM) / file).string());
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
  const fs::path data = beside_program(SPILLWAY_DATA_FROM_PROGRAM);
  constexpr int keep_the_users = 0;
  if (fs::is_directory(data, error)) setenv(variable, data.c_str(), keep_the_users);
  if (const fs::path fonts = data / "fonts/fonts.conf"; fs::exists(fonts, error))
    setenv("FONTCONFIG_FILE", fonts.c_str(), keep_the_users);
}

}  // namespace spillway
