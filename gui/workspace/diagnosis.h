// The whole answer of a step: why a recorded one is slow, who holds memory, memory over time. Slower to find than
// figures, and looked for beside the window.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "gui/workspace/outcome.h"
#include "gui/workspace/worker.h"
#include "studies/answer/answer.h"
#include "studies/diagnosis/held_tree.h"
#include "studies/diagnosis/step_diagnosis.h"

namespace spillway::gui {

struct Diagnosed {
  std::shared_ptr<const Outcome> of;
  std::optional<studies::StepDiagnosis> step;      // none: no capture with recorded times
  std::optional<studies::MemoryDiagnosis> memory;  // none: no snapshot with call stacks
  studies::Answer answer;                          // with its pictures; without a command
};

// The findings and the answer of `spillway explain`. Reads a capture again for Python's functions.
Diagnosed diagnose(std::shared_ptr<const Outcome> outcome);

class Diagnoser {
 public:
  Diagnoser();
  // Replaces the diagnosis under way.
  void start(std::shared_ptr<const Outcome> outcome);
  void stop();
  [[nodiscard]] bool is_running() const { return worker_.is_running(); }

  std::function<void(std::shared_ptr<const Diagnosed>)> on_found;
  std::function<void(const SimulationError&)> on_failed;

 private:
  Worker worker_{2};
};

}  // namespace spillway::gui
