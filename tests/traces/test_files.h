// Where the tests find inputs: bytes they make themselves, or files of the shared data set beside the checkout.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace spillway::test {

constexpr std::uint64_t no_limit = std::uint64_t{1} << 40;

inline ByteSource source_of(std::string_view bytes) {
  return ByteSource::from_memory("test input", std::as_bytes(std::span(bytes.data(), bytes.size())), no_limit);
}

// Third-party data that is not part of the project; nothing when it is absent.
inline std::optional<std::string> shared_file(const std::string& name) {
  const char* root = std::getenv("SPILLWAY_SOURCE_ROOT");
  std::filesystem::path base = root != nullptr ? root : ".";
  const char* elsewhere = std::getenv("SPILLWAY_SHARED_DATA");
  const std::filesystem::path folder = elsewhere != nullptr ? elsewhere : (base / "../shared/data");
  const auto path = folder / name;
  if (!std::filesystem::exists(path)) return {};
  return path.string();
}

// A file inside an archive of the shared data, unpacked with tar on first use.
inline std::optional<std::string> unpacked_file(const std::string& member, const std::string& archive) {
  const auto packed = shared_file(archive);
  if (!packed) return {};
  const auto folder =
      std::filesystem::temp_directory_path() / ("spillway_test_" + std::to_string(::getuid()) + "_unpacked");
  std::filesystem::create_directories(folder);
  const auto path = folder / member;
  const std::string command = "tar -xzf '" + *packed + "' -C '" + folder.string() + "'";
  if (!std::filesystem::exists(path) && std::system(command.c_str()) != 0) return {};
  if (!std::filesystem::exists(path)) return {};
  return path.string();
}

inline std::string temporary_path(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("spillway_test_" + std::to_string(::getpid()) + "_" + name))
      .string();
}

}  // namespace spillway::test
