// The table of published errors against the file that pins them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "studies/fit/published_errors.h"

namespace spillway::studies {
namespace {

using Key = std::pair<std::string, std::string>;

nlohmann::json pinned() {
  const char* const root = std::getenv("SPILLWAY_SOURCE_ROOT");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/tests/goldens/published.json");
  return nlohmann::json::parse(file).at("whole");
}

// "SC'21 Table 1 | iteration_time | validation" of steps' times and peaks; closed forms are no measurements.
// STAlloc's and SSDTrain's set-ups are stated in part.
bool is_wanted(const std::string& source, const std::string& metric, const std::string& role) {
  return role == "validation" && source.find("projection") == std::string::npos &&
         source.find("STAlloc") == std::string::npos && source.find("SSDTrain") == std::string::npos &&
         (metric == "iteration_time" || metric == "throughput" || metric == "peak_allocated" ||
          metric == "peak_reserved");
}

TEST(PublishedErrors, AreThePinnedOnes) {
  std::map<Key, const PublishedError*> table;
  for (const PublishedError& one : published_errors()) table[{std::string(one.source), std::string(one.metric)}] = &one;
  ASSERT_EQ(table.size(), published_errors().size());
  std::size_t found = 0;
  const nlohmann::json groups = pinned();
  for (const auto& [key, row] : groups.items()) {
    const std::size_t first = key.find(" | "), second = key.rfind(" | ");
    const std::string source = key.substr(0, first), metric = key.substr(first + 3, second - first - 3);
    if (!is_wanted(source, metric, key.substr(second + 3))) continue;
    const auto at = table.find({source, metric});
    ASSERT_NE(at, table.end()) << key << " is not in studies/fit/published_errors.cc";
    EXPECT_EQ(at->second->cases, row.at("n")) << key;
    EXPECT_EQ(at->second->median, row.at("median_error")) << key;
    EXPECT_EQ(at->second->p90, row.at("p90_abs_error")) << key;
    ++found;
  }
  EXPECT_EQ(found, table.size());
}

TEST(PublishedErrors, TheWidestOfAKindCounts) {
  for (const PublishedError& one : published_errors()) {
    const PublishedError* widest = widest_error(one.kind, one.is_memory());
    ASSERT_NE(widest, nullptr);
    EXPECT_GE(widest->p90, one.p90);
    EXPECT_EQ(widest->kind, one.kind);
  }
  EXPECT_EQ(widest_error(MeasuredKind::one_gpu, true), nullptr);
}

}  // namespace
}  // namespace spillway::studies
