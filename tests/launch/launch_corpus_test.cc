// Every launch of the corpus has the right keys, or is refused by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/launch/launch_corpus.h"

namespace spillway::launch {
namespace {

using test::complaint;
using test::corpus;
using test::CorpusLaunch;
using test::fixture;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

TEST(LaunchCorpus, HasEveryFile) {
  std::set<std::string> listed = {"cluster.env"};  // a part of another
  for (const CorpusLaunch& each : corpus()) listed.insert(each.file);
  std::set<std::string> there;
  for (const auto& each : std::filesystem::directory_iterator(fixture(""))) there.insert(each.path().filename());
  EXPECT_EQ(listed, there);
}

TEST(LaunchCorpus, IsReadRightOrRefusedByName) {
  for (const CorpusLaunch& each : corpus()) {
    SCOPED_TRACE(each.file);
    const std::vector<std::string> paths = {fixture(each.file)};
    if (!each.refused.empty()) {
      std::string words = complaint([&] { return test::import_of(each, paths); });
      for (std::size_t at = 0; (at = words.find(paths[0])) != std::string::npos;) words.erase(at, paths[0].size());
      for (const std::string& word : each.refused) EXPECT_THAT(words, HasSubstr(word));
      continue;
    }
    const LaunchImport import = test::import_of(each, paths);
    EXPECT_EQ(import.format, each.launcher);
    test::expect_keys(import, each.keys);
    std::vector<std::string> open, unsayable;
    for (const UnstatedKey& key : import.unstated) open.push_back(key.key);
    for (const scenario::UnsayableFlag& flag : import.unsayable) unsayable.push_back(flag.flag);
    EXPECT_THAT(open, UnorderedElementsAreArray(each.open));
    EXPECT_THAT(unsayable, UnorderedElementsAreArray(each.unsayable));
  }
}

}  // namespace
}  // namespace spillway::launch
