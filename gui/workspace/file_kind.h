// A file's kind, by its content: it decides what opening or dropping the file means.
#pragma once

#include <string>

namespace spillway::gui {

enum class FileKind : std::uint8_t {
  scenario,
  sweep,      // a sweep's file, or its store
  workspace,  // variants
  model,      // a model file, or a Hugging Face config.json
  hardware,   // a profile
  trace,      // all else: read_trace() says what is wrong with it
};

// Throws InputError where it can't be read.
FileKind kind_of_file(const std::string& path);

// A scenario of a model on a machine, as text.
std::string new_scenario(const std::string& model, const std::string& hardware);

}  // namespace spillway::gui
