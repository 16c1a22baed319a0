// How much a test that draws its cases at random does: SPILLWAY_TEST_SIZE is "quick" (also when unset), a few seeded
// cases for every run, or "full", as many as the property is claimed for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

namespace spillway::test {

// Throws std::runtime_error for another word.
inline bool is_full_size() {
  const char* const given = std::getenv("SPILLWAY_TEST_SIZE");
  const std::string size = given == nullptr || *given == '\0' ? "quick" : given;
  if (size != "quick" && size != "full")
    throw std::runtime_error("SPILLWAY_TEST_SIZE is '" + size + "': it must be quick or full");
  return size == "full";
}

// How many cases are drawn, one after the other: the quick ones are the first of the full ones.
inline int cases(int quick, int full) { return is_full_size() ? full : quick; }
// The same for cases that have a seed each: the first one and the end. SPILLWAY_TEST_CASES=525 and =500-600 name some.
inline std::pair<int, int> case_range(int quick, int full) {
  const char* const given = std::getenv("SPILLWAY_TEST_CASES");
  if (given == nullptr) return {0, cases(quick, full)};
  const std::string range = given;
  const std::size_t dash = range.find('-');
  const int first = std::stoi(range);
  return {first, dash == std::string::npos ? first + 1 : std::stoi(range.substr(dash + 1))};
}
inline std::uint64_t seeds(std::uint64_t quick, std::uint64_t full) { return is_full_size() ? full : quick; }

}  // namespace spillway::test
