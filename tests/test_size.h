// How much a test that draws its cases at random does: SPILLWAY_TEST_SIZE is "quick" (also when unset), a few seeded
// cases for every run, or "full", as many as the property is claimed for.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

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
inline std::uint64_t seeds(std::uint64_t quick, std::uint64_t full) { return is_full_size() ? full : quick; }

}  // namespace spillway::test
