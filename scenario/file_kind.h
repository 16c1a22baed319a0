// Kind of a file or folder, by its content, whatever its name: for a command that takes others.
#pragma once

#include <cstdint>
#include <string>

namespace spillway::scenario {

enum class FileKind : std::uint8_t {
  scenario,
  sweep,
  sweep_store,
  profile,
  prices,
  plan,    // of steps, memory or modules
  model,   // ours, a Hugging Face config.json, or a folder with one
  result,  // what a command answered with --format json
  snapshot,
  trace,
  launch,  // a script, configuration or program of a framework
  notebook,
  weights,
  other
};

// Looks at the first 64 KiB. Throws InputError where it can't be read.
FileKind file_kind(const std::string& path);

struct FileKindWords {
  std::string what;    // "a sweep"
  std::string remedy;  // what to type: "spillway sweep X.json"
};
FileKindWords words_of(FileKind kind, const std::string& path);

}  // namespace spillway::scenario
