#include "base/named_file.h"

#include <filesystem>
#include <system_error>

namespace spillway {

bool names_file(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".json"); }

bool is_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

std::string name_seen_from(const std::string& folder, const std::string& name) {
  if (!names_file(name) || name.front() == '/') return name;
  return (std::filesystem::path(folder) / name).lexically_normal().string();
}

}  // namespace spillway
