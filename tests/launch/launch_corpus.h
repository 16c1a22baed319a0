// The launches of tests/launch/data with what is to become of them (tests/launch/corpus.json).
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/launch/launch_fixture.h"

namespace spillway::test {

struct CorpusLaunch {
  std::string file, launcher, model, machine;
  Keys keys;  // "(none)": not in the scenario
  std::vector<std::string> open, unsayable;
  std::vector<std::string> refused;  // words of the refusal; empty: it is read
};

inline std::vector<CorpusLaunch> corpus() {
  std::ifstream file(fixture("../corpus.json"));
  const auto root = nlohmann::json::parse(file);
  std::vector<CorpusLaunch> all;
  for (const auto& each : root.at("launches")) {
    CorpusLaunch made{.file = each.at("file"),
                      .launcher = each.value("launcher", ""),
                      .model = each.value("model", ""),
                      .machine = each.value("on", "dgx-h100"),
                      .keys = {},
                      .open = each.value("open", std::vector<std::string>()),
                      .unsayable = each.value("unsayable", std::vector<std::string>()),
                      .refused = each.value("refused", std::vector<std::string>())};
    const nlohmann::json keys = each.value("keys", nlohmann::json::object());
    for (const auto& [path, value] : keys.items())
      made.keys[path] = value.is_null() ? "(none)" : value.is_string() ? value.get<std::string>() : value.dump();
    all.push_back(std::move(made));
  }
  return all;
}

// Its files, or others in their place.
inline launch::LaunchImport import_of(const CorpusLaunch& launch, const std::vector<std::string>& paths) {
  launch::ImportRequest asked = request(paths, launch.model);
  asked.machine = launch.machine;
  return launch::import_launch(asked);
}

// What decides the answer: the scenario without who says so, its model, what is open.
inline nlohmann::json answer(const launch::LaunchImport& import) {
  nlohmann::json scenario = nlohmann::json::parse(import.scenario);
  scenario.erase("import");
  nlohmann::json open = nlohmann::json::array();
  for (const launch::UnstatedKey& each : import.unstated) open.push_back(each.key);
  return {scenario, import.model, open};
}

// With the corpus in it, so that what its files name is there.
class CorpusFolder : public Folder {
 public:
  CorpusFolder() {
    for (const auto& each : std::filesystem::directory_iterator(fixture("")))
      std::filesystem::create_symlink(std::filesystem::absolute(each.path()), path(each.path().filename()));
  }
};

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace spillway::test
