// The launches in tests/launch/data, and files of a test's own.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/input_error.h"
#include "launch/launch_import.h"
#include "scenario/scenario.h"

namespace spillway::test {

inline std::string fixture(const std::string& name) {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/tests/launch/data/" + name;
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "spillway-launch-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (path_ / name).string(); }

  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name) << text;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline launch::ImportRequest request(const std::vector<std::string>& files, const std::string& model = "") {
  launch::ImportRequest made{.model = model};
  made.launch.paths = files;
  return made;
}

inline launch::LaunchImport import_fixture(const std::string& name, const std::string& model = "") {
  return launch::import_launch(request({fixture(name)}, model));
}

inline std::string key(const launch::LaunchImport& import, const std::string& path) {
  return scenario::setting_of(import.scenario, path).value_or("(none)");
}

using Keys = std::map<std::string, std::string>;

inline void expect_keys(const launch::LaunchImport& import, const Keys& wanted) {
  for (const auto& [path, value] : wanted) EXPECT_EQ(key(import, path), value) << path;
}

inline bool warns(const launch::LaunchImport& import, const std::string& of) {
  return std::any_of(import.warnings.begin(), import.warnings.end(),
                     [&](const std::string& text) { return text.find(of) != std::string::npos; });
}

// flag -> effect, of what is ignored.
inline std::map<std::string, std::string> ignored(const launch::LaunchImport& import) {
  std::map<std::string, std::string> made;
  for (const auto& each : import.ignored) made[each.flag] = std::string(to_string(each.kind));
  return made;
}

inline std::map<std::string, std::string> defaulted(const launch::LaunchImport& import) {
  std::map<std::string, std::string> made;
  for (const auto& each : import.defaulted) made[each.key] = each.value;
  return made;
}

// What is wrong with bad input, as people read it; empty: nothing is.
template <class Call>
std::string complaint(Call call) {
  try {
    static_cast<void>(call());
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace spillway::test
