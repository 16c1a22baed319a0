// Runs a program with the recording library injected: `spillway record -- COMMAND`.
#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace spillway::validation {

struct RecordOptions {
  std::vector<std::string> command;  // the program, found on PATH, and its arguments
  std::string files;                 // recordings are written to this name with ".<process>" behind it
};

// One process of the program that used CUDA.
struct Recording {
  std::string file;
  bool whole = false;        // the program ended in order; else the last quarter of a second may be missing
  Picos overhead{};          // of recording, as CUPTI says; only of whole ones
  std::int64_t dropped = 0;  // records that found no room
};

struct RecordOutcome {
  int exit_code = 0;                  // of the program; 128 + signal when one ended it
  std::vector<Recording> recordings;  // by name
};

// Standard streams are the program's. Interrupts go to the program; this waits for it. Throws InputError: built without
// CUDA, the library not found, the command can't be started.
RecordOutcome record(const RecordOptions& options);

// A recording by its last line. Throws InputError when it can't be read.
Recording inspect_recording(const std::string& file);

// $SPILLWAY_CUDA_INJECTION, the build tree's, the installed one. Throws InputError when there is none.
std::string injection_library();

}  // namespace spillway::validation
