// Kind of a file or folder, by its content, whatever its name: for a command that takes others.
#pragma once

#include <cstdint>
#include <string>

#include "base/input_error.h"

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
  empty,
  other
};

// Looks at the first 64 KiB. Throws InputError where it can't be read.
FileKind file_kind(const std::string& path);

struct FileKindWords {
  std::string what;    // "a sweep"
  std::string remedy;  // what to type: "spillway sweep X.json"
};
FileKindWords words_of(FileKind kind, const std::string& path);

// The error of every command about a word that no file lies at and that is no model's name. An id of a published model
// has the remedy of find_model(). A path can't be opened.
InputError nothing_there(const std::string& word);

}  // namespace spillway::scenario
