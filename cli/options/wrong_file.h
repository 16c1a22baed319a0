// A file of another kind than a command takes: what it is, and what to type instead.
#pragma once

#include <optional>

#include "base/input_error.h"

namespace spillway::cli {

class Command;

// A file that a command would both read and write: whatever kind it is of.
class WouldOverwrite : public InputError {
 public:
  using InputError::InputError;
};

// For the command that was chosen and failed with `said`: an error about the first file of a kind that it doesn't take.
// A command that takes scenarios says nothing_there() of a word that no file lies at. Gives nullopt where all are
// of the right kind, or of none that is known.
std::optional<InputError> wrong_file(const Command& app, const InputError& said);

}  // namespace spillway::cli
