#include "base/named_file.h"

#include <filesystem>
#include <system_error>

namespace spillway {

bool names_file(std::string_view name) { return name.find('/') != std::string_view::npos || name.ends_with(".json"); }

bool may_be_published(std::string_view name) {
  if (name.starts_with("hf:")) return true;
  const std::size_t slash = name.find('/');
  return slash != std::string_view::npos && slash > 0 && slash + 1 < name.size() && name.front() != '.' &&
         name.front() != '~' && name.find('/', slash + 1) == std::string_view::npos && !name.ends_with(".json");
}

bool is_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

bool lies_at(const std::string& path) {
  std::error_code error;
  const bool is_there = std::filesystem::exists(path, error);
  return is_there || (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory &&
                      error != std::errc::filename_too_long);
}

std::string file_title(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

namespace {

// "dgx-h100+gpu=mine.json": the name before the first "+", and the value of each "WHAT=VALUE".
std::string parts_seen_from(const std::string& folder, const std::string& name) {
  std::string seen;
  for (std::size_t from = 0; from != std::string::npos;) {
    const std::size_t plus = name.find('+', from);
    const std::string part = name.substr(from, plus == std::string::npos ? plus : plus - from);
    const std::size_t value = part.find('=') + 1;  // 0: no "="
    seen += (from > 0 ? "+" : "") + part.substr(0, value) + name_seen_from(folder, part.substr(value));
    from = plus == std::string::npos ? plus : plus + 1;
  }
  return seen;
}

}  // namespace

std::string name_seen_from(const std::string& folder, const std::string& name) {
  if (!names_file(name) || name.front() == '/') return name;
  const std::filesystem::path seen = (std::filesystem::path(folder) / name).lexically_normal();
  std::error_code none;
  const std::size_t plus = name.find('+');
  if (plus != std::string::npos && name.find('=', plus) != std::string::npos && !std::filesystem::exists(seen, none))
    return parts_seen_from(folder, name);
  return may_be_published(name) && !std::filesystem::exists(seen, none) ? name : seen.string();
}

}  // namespace spillway
