#include "validation/published/case_sample.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/digest.h"
#include "base/input_error.h"
#include "validation/published/case_work.h"

namespace spillway::validation {
namespace {

// One of a group of cases.
struct Candidate {
  double work = 0;
  std::uint64_t hash = 0;
  std::string setup;
};

std::uint64_t hash_of(const std::string& setup) {
  Digest digest;
  for (const char c : setup) digest.add(std::uint64_t{static_cast<unsigned char>(c)});
  return digest.value();
}

// The settings to keep of one group.
std::set<std::string> chosen(std::vector<Candidate> group, std::size_t count) {
  std::sort(group.begin(), group.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.work, a.hash, a.setup) < std::tie(b.work, b.hash, b.setup);
  });
  const auto same = [](const Candidate& a, const Candidate& b) { return a.setup == b.setup; };
  group.erase(std::unique(group.begin(), group.end(), same), group.end());
  group.resize((group.size() + 1) / 2);
  std::sort(group.begin(), group.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.hash, a.setup) < std::tie(b.hash, b.setup);
  });
  group.resize(std::min(count, group.size()));
  std::set<std::string> setups;
  for (const Candidate& one : group) setups.insert(one.setup);
  return setups;
}

}  // namespace

void keep_sample(std::vector<CaseFile>& files, std::size_t per_group) {
  SPILLWAY_ASSERT(per_group > 0);
  using Group = std::tuple<std::string, Metric, std::string>;  // source, metric, role
  const auto group_of = [](const Case& one) { return Group(one.source, one.metric, one.role); };
  std::map<Group, std::vector<Candidate>> groups;
  for (const CaseFile& file : files)
    for (const Case& one : file.cases)
      if (one.skip.empty()) groups[group_of(one)].push_back({work_of(file, one), hash_of(one.setup), one.setup});
  std::map<Group, std::set<std::string>> kept;
  for (auto& [group, candidates] : groups) kept[group] = chosen(std::move(candidates), per_group);
  for (CaseFile& file : files)
    std::erase_if(file.cases,
                  [&](const Case& one) { return one.skip.empty() && !kept[group_of(one)].contains(one.setup); });
}

}  // namespace spillway::validation
