// What a NAME_fuzz.cc defines, on any bytes; it returns 0:
//
//   SPILLWAY_FUZZ_TARGET(NAME) { ... data, size ... }
//
// A libFuzzer program (-Dfuzz=true: SPILLWAY_LIBFUZZER) has one target, the ordinary suite's replay has all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace spillway::fuzz {

using Target = int (*)(const std::uint8_t* data, std::size_t size);

// Of the targets in this program, by name.
inline std::map<std::string, Target, std::less<>>& targets() {
  static std::map<std::string, Target, std::less<>> all;
  return all;
}

}  // namespace spillway::fuzz

#ifdef SPILLWAY_LIBFUZZER
#define SPILLWAY_FUZZ_TARGET(name) extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
#else
#define SPILLWAY_FUZZ_TARGET(name)                                                                    \
  static int name##_target(const std::uint8_t* data, std::size_t size);                               \
  static const bool name##_is_known = spillway::fuzz::targets().emplace(#name, name##_target).second; \
  static int name##_target(const std::uint8_t* data, std::size_t size)
#endif
