// spillway check --from RECORDING SCENARIO: a recorded step beside the generated one, and the GPU's profile that comes
// of it.
#pragma once

#include <string>

#include "cli/options/context.h"

namespace spillway::cli {

struct RecordingCheck {
  std::string recording, scenario;  // a scenario, or a framework's launch file
  std::string machine, output;      // empty: the scenario's; none
};

// Throws InputError.
void check_recording(const RecordingCheck& call, Context& context);

}  // namespace spillway::cli
