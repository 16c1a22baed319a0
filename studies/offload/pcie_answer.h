// The demand of a step's offloading on every link between GPUs and drives, and what would have to be bought.
#pragma once

#include <string>
#include <vector>

#include "studies/offload/ssd_answer.h"

namespace spillway::studies {

struct LinkAnswer {
  std::string name;
  Rate capacity{};
  double copied = 0;             // bytes a step of copies and collectives that the replay put on it
  double written = 0, read = 0;  // bytes a step of offloading
  double required = 0;           // bytes a second: writing in one half of the step, reading in the other
  [[nodiscard]] double headroom() const { return required > 0 ? to_bytes_per_second(capacity) / required : 1e9; }
};

struct PcieAnswer {
  OffloadTraffic traffic;
  std::int64_t gpus_per_machine = 1;
  double required_rate = 0;              // bytes a second of the GPU that writes most
  std::string drives;                    // what stands at the other end
  std::vector<LinkAnswer> links;         // least headroom first
  double write_rate = 0, read_rate = 0;  // bytes a second of the GPU that writes most, all at once
  std::string cannot_tell;
  std::optional<StepOnDrives> step;  // where the question replays it
  // The step's time on endless drives, if it moves its own tensors and the question replays it; 0: not asked. The
  // demand is traffic.load.step's: that of drives and links that are infinitely fast.
  Picos on_endless_drives{};
  [[nodiscard]] bool waits_for_links() const { return is_held_up(on_endless_drives, traffic.load.step); }
  [[nodiscard]] bool waits_for_drives() const { return is_held_up(traffic.replayed, on_endless_drives); }
  // All that moves goes to host memory (traffic.to_host): links are those that the replay used, at the step's own pace.
  [[nodiscard]] bool is_on_host() const { return traffic.to_host > Bytes(0); }
  Bytes kept_by_plan{};  // what a plan might have moved and chose to keep, where it moves nothing
  [[nodiscard]] std::vector<JudgedTest> tests() const;
  [[nodiscard]] bool is_yes() const;
};

// The machine's own drives, or the question's first. `ran` as answer_ssd() takes it.
PcieAnswer answer_pcie(const LoadedScenario& loaded, const ScenarioRun& ran, const SsdQuestion& question);

}  // namespace spillway::studies
