// Diagnosis of a recorded step at the level where people act: which kernels, operators and modules take the GPU's time,
// and what the host did while the GPU was idle. It also has how much of collectives is waiting, and what each would
// give.
//
// Times are the recorded ones. Rows of one table may lie inside each other: a synchronising call in an operator in an
// annotation is a part of all three.
//
//   recorded        the annotated steps (without any: the whole capture) and whatever else a host call, an operator or
//                   device work was recorded in, each instant once. The annotations alone end when the host's step
//                   does; the last step's device work lies behind it
//   GPU idle        time in which no device work of the capture ran, on any stream
//   wait of NCCL    a collective's time beyond the shortest of the same kind, size and group in the capture: an
//                   estimate, as a capture of one process doesn't show when the others came
//   launch-bound    work that met an idle stream and began as soon as a launch allows, several in a row
//   gain            1 - step time / the replayed step time, with that row's time taken away and all else as it was:
//                   a replay each, so what hides behind other work gives nothing
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenario/scenario_run.h"

namespace spillway::studies {

struct DiagnosisRow {
  std::string name;
  std::uint64_t count = 0;
  Picos time{};      // of all of them
  Picos gpu_idle{};  // of that, host rows only
};

struct CollectiveRow {
  std::string name;
  std::uint64_t count = 0;
  Bytes bytes{};  // of one; 0 unknown
  Picos time{}, wait{};
};

struct LaunchBoundStretch {
  std::string where;  // the operator that launched its first work
  Picos begin{}, length{}, busy{};
  std::uint64_t works = 0;
};

struct Relief {
  std::string what;  // "without DataLoader"
  Picos step_time{};
  double gain = 0;
};

// What is worked out: `short_form` is cheap beside a replay and has neither frames, modules nor reliefs.
enum class DiagnosisDepth { short_form, full };

struct StepDiagnosis {
  DiagnosisDepth depth = DiagnosisDepth::full;
  Picos recorded{};  // what shares are of
  Picos active{};    // of that, in host calls, operators or device work
  Picos gpu_busy{};  // of that, in device work
  // By the recorded allocator on the device that the result is about; -1 where the capture doesn't say. A replay begins
  // with what was alive then, not with what was cached.
  Bytes recorded_reserved{-1}, replayed_reserved{-1};
  std::uint64_t steps = 0;                       // annotated
  std::vector<DiagnosisRow> kernels, operators;  // most time first
  std::vector<DiagnosisRow> host;                // most GPU idle first
  std::vector<DiagnosisRow> frames;              // Python's own time where it was recorded, most GPU idle first
  std::vector<DiagnosisRow> modules;             // GPU time launched in nn.Module calls where they were recorded
  std::vector<CollectiveRow> collectives;        // most wait first
  Picos launch_bound{};                          // of all `stretches`
  std::vector<LaunchBoundStretch> stretches;     // longest first
  std::vector<Relief> reliefs;                   // largest gain first
};

// Diagnosis of a capture with recorded times; rows beyond `most` of a table are left out. `with_python`: the same
// capture read with ReadOptions::keep_python, for frames and modules; null: none. Throws what replays throw.
StepDiagnosis diagnose_step(const LoadedScenario& loaded, const Result& result, const Trace* with_python,
                            std::size_t most = 10, DiagnosisDepth depth = DiagnosisDepth::full);

// The diagnosis of a scenario's run, read again for Python's functions where the format may have them. None: it is no
// capture with recorded times, or the run is of another trace.
std::optional<StepDiagnosis> diagnose_capture(const LoadedScenario& loaded, const ScenarioRun& run,
                                              DiagnosisDepth depth = DiagnosisDepth::full);

// "caller;callee microseconds" a line, as flame graphs take them: the host's operators and annotations, and Python's
// frames where they were kept, each with its own time. Names are cleaned of ';' and of line ends.
std::string folded_host_stacks(const Trace& trace);

}  // namespace spillway::studies
