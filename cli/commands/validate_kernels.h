// spillway validate kernels
#pragma once

#include <string>
#include <vector>

#include "cli/options/context.h"

namespace spillway::cli {

struct ValidateKernelsArguments {
  std::string backend;  // "cpu" or "cuda"; empty: cpu
  std::string file;     // for what goes to drives; empty: a new name in the temporary folder
  std::string hardware;
  std::vector<std::string> techniques;  // empty: all
  std::vector<std::string> models;      // words that names of models hold; empty: all
  int steps = 3;
  std::string output;   // CSV
  std::string plot;     // SVG
  std::string results;  // folder to keep DATE-BACKEND.csv, .json and .svg in; empty: none
};

// Exit code 1 when a run's numbers, order or bytes are not the predicted ones.
void validate_kernels(const ValidateKernelsArguments& arguments, Context& context);

}  // namespace spillway::cli
